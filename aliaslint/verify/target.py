"""Finds the package to verify in what the user named, and its architectures, importing nothing."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TypeGuard

from aliaslint.errors import UserError


class TargetError(UserError):
    """There is nothing to verify in the place that was named; the message says why."""


@dataclass(frozen=True, slots=True)
class Target:
    """A package folder by its import name.

    Its architectures are decoded, if it has any; without them only its caches are tested.
    """

    name: str
    folder: Path

    @property
    def cache_package(self) -> str:
        """The package whose `models/cache.py` makes the caches: itself, or else mlx_lm."""
        return self.name if _has_models(self.folder) else "mlx_lm"

    def architectures(self) -> list[str]:
        """Model types in order: modules of `models/` that give both `Model` and `ModelArgs`.

        One that cannot be parsed counts too: left out it would look as if it had passed.
        """
        return [name for name, path in self._modules() if {"Model", "ModelArgs"} <= _names(path)]

    def module(self, model_type: str) -> Path:
        """The file that defines an architecture: a module, or the `__init__` of a package."""
        return dict(self._modules())[model_type]

    def files(self, model_type: str) -> list[Path]:
        """All files of an architecture: its module, or those of its package."""
        path = self.module(model_type)
        return sorted(path.parent.rglob("*.py")) if path.stem == "__init__" else [path]

    def model_type(self, name: str) -> str:
        """The architecture that runs model type `name`, which may be mapped to another's module."""
        mapped = (module for module, names in self.aliases().items() if name in names)
        return name if name in dict(self._modules()) else next(mapped, name)

    def _modules(self) -> list[tuple[str, Path]]:
        models = self.folder / "models"
        packages = [(path.parent.name, path) for path in models.glob("*/__init__.py")]
        modules = [(path.stem, path) for path in models.glob("*.py") if path.stem != "__init__"]
        return sorted([*modules, *packages])

    def aliases(self) -> dict[str, tuple[str, ...]]:
        """Other model types by the module that they are mapped to in the package's `utils.py`."""
        try:
            tree = ast.parse((self.folder / "utils.py").read_bytes())
        except (OSError, SyntaxError, ValueError):
            return {}
        found: dict[str, tuple[str, ...]] = {}
        for node in tree.body:
            match node:
                case (
                    ast.Assign(targets=[ast.Name("MODEL_REMAPPING")], value=value)
                    | ast.AnnAssign(target=ast.Name("MODEL_REMAPPING"), value=value)
                ):
                    for alias, module in _string_pairs(value):
                        found[module] = (*found.get(module, ()), alias)
        return found


def _string_pairs(node: ast.expr | None) -> Iterator[tuple[str, str]]:
    if not isinstance(node, ast.Dict):
        return
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(value, ast.Constant):
            yield str(key.value), str(value.value)


def find_target(path: Path) -> Target:
    """The package in `path`: the folder itself, one around it, or one or two levels below it.

    The nearest counts. Raises TargetError where there is none, or where several are as near.
    """
    if not os.path.exists(path):
        raise TargetError(f"{path}: no such file or folder")
    start = path if path.is_dir() else path.parent
    for wanted in (_has_models, _has_caches, _has_architectures):
        for level in _levels(start):
            found = [folder.resolve() for folder in level if wanted(folder)]
            if len(found) > 1:
                raise TargetError(f"{path}: name one of {', '.join(map(str, found))}")
            if found:
                return Target(found[0].name, found[0])
    raise TargetError(f"{path}: no package with models or with cache classes to verify")


def _has_models(folder: Path) -> bool:
    return os.path.isfile(folder / "models" / "cache.py")


def _has_caches(folder: Path) -> bool:
    """Whether this is a package that defines a cache class somewhere in it."""
    if not os.path.isfile(folder / "__init__.py") or os.path.isfile(folder.parent / "__init__.py"):
        return False
    return any(defines_cache(path) for path in folder.rglob("*.py"))


def defines_cache(path: Path) -> bool:
    """Whether a file looks as if it defined a cache class."""
    try:
        return b"def update_and_fetch" in path.read_bytes()
    except OSError:
        return False


def _has_architectures(folder: Path) -> bool:
    package = os.path.isfile(folder / "__init__.py")
    return package and bool(Target(folder.name, folder).architectures())


def _levels(start: Path) -> Iterator[list[Path]]:
    """Folders to look at, the nearest first; those of one list are as near as each other."""
    yield [start]
    yield from ([parent] for parent in start.resolve().parents[:2])
    below = _folders(start)
    yield below
    yield [inner for folder in below for inner in _folders(folder)]


def _folders(folder: Path) -> list[Path]:
    """The folders in `folder` that are not hidden; none where it may not be read."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    inner = (folder / name for name in names if not name.startswith("."))
    return [path for path in inner if os.path.isdir(path)]


def _names(path: Path, reached_from: frozenset[Path] = frozenset()) -> set[str]:
    """Names that a module binds when it is imported; those of a model if it cannot be parsed."""
    try:
        tree = ast.parse(path.read_bytes())
    except OSError:
        return set()
    except (SyntaxError, ValueError):
        return {"Model", "ModelArgs"}
    names: set[str] = set()
    for node in _at_import(tree.body):
        match node:
            case ast.ImportFrom(names=[ast.alias("*")], module=str(module), level=level) if level:
                star = path.parents[level - 1].joinpath(*module.split(".")).with_suffix(".py")
                if star not in reached_from:
                    names |= _names(star, reached_from | {path})
            case ast.Import() | ast.ImportFrom():
                names |= {alias.asname or alias.name for alias in node.names}
            case ast.ClassDef():
                names.add(node.name)
            case ast.Assign() | ast.AnnAssign():
                names |= {name.id for name in ast.walk(node) if _is_bound(name)}
    return names


def _is_bound(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _at_import(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a module that run at import, those in `if` and `try` too."""
    for node in body:
        yield node
        if isinstance(node, (ast.If, ast.Try, ast.With)):
            handlers = (line for each in getattr(node, "handlers", ()) for line in each.body)
            blocks = (getattr(node, name, ()) for name in ("body", "orelse", "finalbody"))
            yield from _at_import([*chain.from_iterable(blocks), *handlers])


def installed_package(name: str) -> Path:
    """Folder of an installed package, without importing it; raises TargetError if there is none."""
    from importlib.util import find_spec

    spec = find_spec(name.partition(".")[0])
    if spec is None or not spec.submodule_search_locations:
        raise TargetError(f"no package named {name} is installed")
    return Path(next(iter(spec.submodule_search_locations)))
