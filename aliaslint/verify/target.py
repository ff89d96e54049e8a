"""Finds the package to verify in what the user named, and its architectures, importing nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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
        """Model types in order: modules of `models/` that give both `Model` and `ModelArgs`."""
        files = sorted((self.folder / "models").glob("*.py"))
        return [path.stem for path in files if {"Model", "ModelArgs"} <= _top_names(path)]

    def aliases(self) -> dict[str, tuple[str, ...]]:
        """Other model types by the module that they are mapped to in the package's `utils.py`."""
        try:
            tree = ast.parse((self.folder / "utils.py").read_bytes())
        except (OSError, SyntaxError, ValueError):
            return {}
        found: dict[str, tuple[str, ...]] = {}
        for node in tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "MODEL_REMAPPING":
                for alias, module in _string_pairs(node.value):
                    found[module] = (*found.get(module, ()), alias)
        return found


def _string_pairs(node: ast.expr) -> Iterator[tuple[str, str]]:
    if not isinstance(node, ast.Dict):
        return
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(value, ast.Constant):
            yield str(key.value), str(value.value)


def find_target(path: Path) -> Target:
    """The package in `path`: the folder itself, one around it, or one or two levels below it.

    Raises TargetError where there is none.
    """
    if not path.exists():
        raise TargetError(f"{path}: no such file or folder")
    start = path if path.is_dir() else path.parent
    for wanted in (_has_models, _has_caches, _has_architectures):
        around = (start, *start.resolve().parents[:2], *_below(start))
        found = next((folder for folder in around if wanted(folder)), None)
        if found is not None:
            return Target(found.resolve().name, found.resolve())
    raise TargetError(f"{path}: no package with models or with cache classes to verify")


def _has_models(folder: Path) -> bool:
    return (folder / "models" / "cache.py").is_file()


def _has_caches(folder: Path) -> bool:
    """Whether this is a package that defines a cache class somewhere in it."""
    if not (folder / "__init__.py").is_file() or (folder.parent / "__init__.py").is_file():
        return False
    return any(b"def update_and_fetch" in path.read_bytes() for path in folder.rglob("*.py"))


def _has_architectures(folder: Path) -> bool:
    package = (folder / "__init__.py").is_file()
    return package and bool(Target(folder.name, folder).architectures())


def _below(folder: Path) -> Iterator[Path]:
    for first in sorted(folder.iterdir()):
        if first.is_dir() and not first.name.startswith("."):
            yield first
    for first in sorted(folder.iterdir()):
        if first.is_dir() and not first.name.startswith("."):
            yield from (second for second in sorted(first.iterdir()) if second.is_dir())


def _top_names(path: Path) -> set[str]:
    """Names that a module binds at its top level by class, import or assignment."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return set()
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign):
            inner = (name for target in node.targets for name in ast.walk(target))
            names |= {name.id for name in inner if isinstance(name, ast.Name)}
    return names


def installed_package(name: str) -> Path:
    """Folder of an installed package, without importing it; raises TargetError if there is none."""
    from importlib.util import find_spec

    spec = find_spec(name.partition(".")[0])
    if spec is None or not spec.submodule_search_locations:
        raise TargetError(f"no package named {name} is installed")
    return Path(next(iter(spec.submodule_search_locations)))
