"""Builds one architecture small: its `ModelArgs` from names and types, its weights from a seed."""

from __future__ import annotations

import ast
import copy
import dataclasses
import importlib
import inspect
import math
import re
import sys
import types
import typing
import zlib
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import mlx.core as mx
from mlx.utils import tree_flatten, tree_unflatten

from aliaslint.verify.worker.learn import learned

MOST_PARAMETERS = 20_000_000
_TYPE_VALUES: dict[type, Any] = {int: 4, float: 1.0, bool: False, str: "", list: [], dict: {}}


class Unsupported(Exception):
    """The architecture cannot be verified here, for a reason that the message gives."""


class TooBig(Exception):
    """The model has more parameters than may be allocated; nothing has been yet."""

    def __init__(self, size: int) -> None:
        super().__init__(f"has {size / 1e6:.0f} million parameters even when made small")


def build(
    package: str,
    caches: ModuleType,
    model_type: str,
    names: Mapping[str, Any],
    given: Mapping[str, Any],
    seed: int,
) -> tuple[Any, dict[str, Any]]:
    """Return the model with seeded weights, and the configuration that made it.

    `caches` is the module that makes its plain caches.
    """
    module = importlib.import_module(f"{package}.models.{model_type}")

    def attempt(config: dict[str, Any]) -> Any:
        mx.random.seed(seed)
        model = module.Model(module.ModelArgs.from_dict(copy.deepcopy(config)))
        size = sum(math.prod(array.shape) for _, array in leaves(model))
        if size > MOST_PARAMETERS:
            raise TooBig(size)
        given_back = model(mx.array([[3, 4, 5]]), cache=caches.make_prompt_cache(model))
        mx.eval(getattr(given_back, "logits", given_back))
        return model

    config = configuration(module, module.ModelArgs, names, given, model_type)
    kinds = layer_kinds(module, int(names.get("num_hidden_layers", 4)))
    try:
        model, config = learned(config, attempt, names, given, kinds)
    except TooBig as error:
        raise Unsupported(str(error)) from None
    seed_weights(model, seed)
    model.eval()
    return model, config


def configuration(
    module: ModuleType,
    args: type,
    names: Mapping[str, Any],
    given: Mapping[str, Any],
    model_type: str,
) -> dict[str, Any]:
    """Values for the fields of `args`: given ones, named ones, defaults, then by type."""
    config: dict[str, Any] = {"model_type": model_type}
    hints = _hints(args)
    for name, default in _parameters(args).items():
        hint = hints.get(name)
        required = default is inspect.Parameter.empty
        if name == "model_type":
            continue
        nested = _nested_arguments(module, args, name, hint)
        if nested is not None:
            inner = given.get(name, {})
            config[name] = configuration(*nested, names, inner, nested[0].__name__.split(".")[-1])
        elif name in given:
            config[name] = given[name]
        elif name in names and _fits(hint, names[name]):
            config[name] = names[name]
        elif required:
            config[name] = _by_type(name, hint, module, names)
        elif _worth_naming(default):
            config[name] = default
    return config | {name: value for name, value in given.items() if name not in config}


def seed_weights(model: Any, seed: int) -> None:
    """Replace the weights by seeded ones that give logits a spread of order one.

    Matrices are drawn afresh; vectors (norms, biases) and special parameters of recurrences
    keep their meaning and get a little noise, so that no two channels are alike.
    """
    seeded = [
        (path, _seeded(path, array, mx.random.key(zlib.crc32(path.encode()) ^ seed)))
        for path, array in leaves(model)
    ]
    model.update(tree_unflatten(seeded))


def leaves(model: Any) -> list[tuple[str, mx.array]]:
    """Parameters of a model by path."""
    return cast("list[tuple[str, mx.array]]", tree_flatten(model.parameters()))


def _seeded(path: str, array: mx.array, key: mx.array) -> mx.array:
    if not mx.issubdtype(array.dtype, mx.floating):
        return array
    noise = mx.random.normal(array.shape, key=key)
    name = path.rsplit(".", 1)[-1]
    if array.ndim >= 2 and ("weight" in name or "proj" in name):
        fan_in = array.shape[-1] if array.shape[-1] > 1 else array.shape[-2]
        scale = 0.3 if "embed" in path or "wte" in path else 1.3 / math.sqrt(fan_in)
        return (noise * scale).astype(array.dtype)
    return (array + 0.1 * noise).astype(array.dtype)


def _parameters(args: type) -> dict[str, Any]:
    """Names of the fields of `args` in order, with their defaults."""
    return {item.name: item.default for item in inspect.signature(args).parameters.values()}


def _worth_naming(default: Any) -> bool:
    """Whether a default may have to be mended: nothing where something is needed, or a size."""
    return default is None or type(default) is int


def _hints(args: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(args)
    except Exception:  # A hint that does not evaluate says nothing; the name still may.
        return {}


def _kinds(hint: Any) -> set[Any]:
    """The classes that a hint admits: the members of a union, a generic's origin."""
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return set().union(*(_kinds(item) for item in typing.get_args(hint)))
    return {origin or hint}


def _fits(hint: Any, value: Any) -> bool:
    """Whether a named value suits a field by its hint; a hint that says nothing suits all."""
    kinds = _kinds(hint)
    if not kinds & set(_TYPE_VALUES):
        return True
    return type(value) in kinds or (isinstance(value, int) and float in kinds)


def _by_type(name: str, hint: Any, module: ModuleType, names: Mapping[str, Any]) -> Any:
    """A value for a required field that nothing names."""
    kinds = _kinds(hint)
    if str in {k for item in typing.get_args(hint) for k in _kinds(item)} and list in kinds:
        return layer_kinds(module, int(names.get("num_hidden_layers", 4)))
    if type(None) in kinds:
        return None
    return next((_TYPE_VALUES[kind] for kind in _TYPE_VALUES if kind in kinds), None)


def layer_kinds(module: ModuleType, layers: int) -> list[str]:
    """Kinds of layers, in turn: the names of such kinds that the module compares with."""
    text = Path(module.__file__ or "").read_text(encoding="utf-8")
    found = re.findall(r"""["']([a-z_]*(?:attention|mamba|conv|recurrent)[a-z_]*)["']""", text)
    kinds = sorted(set(found) & _compared(ast.parse(text)), reverse=True)
    kinds = ["other", *kinds] if len(kinds) == 1 else kinds  # What is not that kind is another.
    return [kinds[i % len(kinds)] for i in range(layers)] if kinds else []


def _compared(tree: ast.Module) -> set[str]:
    """String constants that a module compares with or searches for in a list."""
    sides: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides += [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            sides += node.args if node.func.attr == "index" else []
    return {s.value for s in sides if isinstance(s, ast.Constant) and isinstance(s.value, str)}


def _nested_arguments(
    module: ModuleType, args: type, name: str, hint: Any
) -> tuple[ModuleType, type] | None:
    """Module and arguments class behind a field such as `text_config`, if there is one."""
    for kind in typing.get_args(hint) or (hint,):
        if dataclasses.is_dataclass(kind) and isinstance(kind, type):
            return module, kind
    if not name.endswith("config") or hint not in (dict, typing.Dict, Any):  # noqa: UP006
        return None
    if name not in ("text_config", "language_config", "llm_config"):
        return None
    for near in _modules_near(module):
        for value in vars(near).values():
            if isinstance(value, type) and value is not args and _is_text_arguments(value):
                return near, value
    return None


def _modules_near(module: ModuleType) -> list[ModuleType]:
    """The module, modules that it imports by name, and those that its classes come from."""
    package = module.__name__.rpartition(".")[0]
    values = list(vars(module).values())
    near = [value for value in values if isinstance(value, ModuleType)]
    near += [sys.modules[value.__module__] for value in values if isinstance(value, type)]
    inside = [item for item in near if item.__name__.startswith(f"{package}.")]
    return list(dict.fromkeys([module, *inside]))


def _is_text_arguments(value: type) -> bool:
    return dataclasses.is_dataclass(value) and "vocab_size" in _parameters(value)
