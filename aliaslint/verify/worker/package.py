"""Makes `import mlx_lm.models.x` mean the tree under test, without running its `__init__`.

The package's own `__init__` imports tokenizers and download code that no model needs; a bare
module whose `__path__` is the tree gives the models and caches alone, in a tenth of the time,
and shadows any installed package of the same name.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import mlx.core as mx

from aliaslint.verify.worker import semantics
from aliaslint.verify.worker.semantics import Force

_OPERATORS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "Add": (operator.add, operator.iadd),
    "Sub": (operator.sub, operator.isub),
    "Mult": (operator.mul, operator.imul),
    "Div": (operator.truediv, operator.itruediv),
    "FloorDiv": (operator.floordiv, operator.ifloordiv),
    "Mod": (operator.mod, operator.imod),
    "Pow": (operator.pow, operator.ipow),
    "MatMult": (operator.matmul, operator.imatmul),
    "BitAnd": (operator.and_, operator.iand),
    "BitOr": (operator.or_, operator.ior),
    "BitXor": (operator.xor, operator.ixor),
    "LShift": (operator.lshift, operator.ilshift),
    "RShift": (operator.rshift, operator.irshift),
}


def install(
    name: str,
    folder: Path,
    replaced: Mapping[Path, bytes],
    forces: Mapping[Path, Sequence[Force]] | None = None,
) -> None:
    """Register `folder` as package `name`.

    `replaced` gives other text for some of its files. With `forces` (an empty mapping too) the
    modules get value semantics: cache classes everywhere, other code in the lines named.
    """
    package: Any = ModuleType(name)
    package.__path__ = [str(folder)]
    package.__file__ = str(folder / "__init__.py")
    package.__version__ = _version(folder)
    sys.modules[name] = package
    sys.meta_path.insert(0, _Finder(name, _Source(replaced, forces)))


def rebind(current: Any, other: Any, operation: str) -> Any:
    """`current op other`, in a new handle if `current` is an array, in place otherwise."""
    fresh, in_place = _OPERATORS[operation]
    return fresh(current, other) if isinstance(current, mx.array) else in_place(current, other)


def snapshot(value: Any) -> Any:
    """`value` with every array in it (also inside tuples, lists, dictionaries) copied."""
    if isinstance(value, mx.array):
        return mx.array(value)
    if type(value) in (tuple, list):
        return type(value)(snapshot(item) for item in value)
    if type(value) is dict:
        return {key: snapshot(item) for key, item in value.items()}
    return value


def detach(owner: Any, attribute: str | None) -> Any:
    """Give `owner.attribute` (or, without attribute, the returned value) an array of its own."""
    if attribute is None:
        return mx.array(owner) if isinstance(owner, mx.array) else owner
    current = getattr(owner, attribute, None)
    if isinstance(current, mx.array):
        with contextlib.suppress(AttributeError):  # A property without setter keeps its array.
            setattr(owner, attribute, mx.array(current))
    return None


class _Source:
    """Compiles the files of the tree, some of them with other text or other semantics."""

    def __init__(
        self, replaced: Mapping[Path, bytes], forces: Mapping[Path, Sequence[Force]] | None
    ) -> None:
        self.replaced = replaced
        self.forces = forces

    def compiled(self, path: Path) -> CodeType:
        data = self.replaced.get(path)
        text = importlib.util.decode_source(path.read_bytes() if data is None else data)
        if self.forces is None:
            return compile(text, str(path), "exec", dont_inherit=True)
        tree = semantics.force_value_semantics(text, str(path), self.forces.get(path, ()))
        return compile(tree, str(path), "exec", dont_inherit=True)

    def wants(self, path: Path) -> bool:
        return self.forces is not None or path in self.replaced


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, name: str, source: _Source) -> None:
        self.prefix = f"{name}."
        self.source = source

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(self.prefix):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is None or not spec.origin or not spec.origin.endswith(".py"):
            return spec
        origin = Path(spec.origin)
        if self.source.wants(origin):
            spec.loader = _Loader(fullname, str(origin), self.source)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, fullname: str, path: str, source: _Source) -> None:
        super().__init__(fullname, path)
        self.source = source

    def get_code(self, fullname: str) -> CodeType:
        return self.source.compiled(Path(self.path))

    def exec_module(self, module: ModuleType) -> None:
        vars(module)[semantics.REBIND] = rebind
        vars(module)[semantics.SNAPSHOT] = snapshot
        vars(module)[semantics.DETACH] = detach
        super().exec_module(module)


def _version(folder: Path) -> str:
    """The text of `__version__` in the package's `_version.py`, "0" if there is none."""
    try:
        text = (folder / "_version.py").read_text(encoding="utf-8")
    except OSError:
        return "0"
    for line in text.splitlines():
        if line.startswith("__version__"):
            return line.partition("=")[2].strip().strip("\"'")
    return "0"
