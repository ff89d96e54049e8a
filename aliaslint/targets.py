"""What a run is about: its targets, the project around them, what stands for dependencies."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aliaslint.errors import UserError

if TYPE_CHECKING:
    from aliaslint.program.dependencies import Dependency
    from aliaslint.program.environments import Site
    from aliaslint.source.config import Config
    from aliaslint.source.files import SourceFile

_SITES = ("site-packages", "dist-packages")


def common_folder(targets: Sequence[Path]) -> Path:
    """Return the deepest folder that holds all targets."""
    folders = [target if target.is_dir() else target.parent for target in targets]
    try:
        return Path(os.path.commonpath(folders))
    except ValueError:  # On different drives.
        return folders[0]


def project_roots(targets: Iterable[Path]) -> Iterator[Path]:
    """Yield the nearest folder with project metadata for each target.

    An installed package has none: the project whose environment it lies in is another one.
    """
    from aliaslint.program.requirements import metadata_files

    for target in targets:
        for folder in (target, *target.parents) if target.is_dir() else target.parents:
            if folder.name in _SITES:
                break
            if any(path.is_file() for path in metadata_files(folder)):
                yield folder
                break
            if (folder / ".git").exists():
                break


def installed_package(name: str, python: Path | None) -> Path:
    """Return the folder of an installed package, without importing it.

    Without `python` (an interpreter or an environment): `VIRTUAL_ENV`, then the environment
    that aliaslint itself runs in. Raises UserError if it is not there.
    """
    from aliaslint.program.environments import find_installed

    top, _, rest = name.replace("-", "_").partition(".")
    if not all(part.isidentifier() for part in name.replace("-", "_").split(".")):
        raise UserError(f"{name!r} is not the name of a package")
    found = find_installed(top, _sites(python))
    folder = found and found.root.joinpath(*rest.split(".")) if rest else found and found.root
    if not folder or not folder.is_dir():
        where = str(python) if python else "this environment (--python names another one)"
        raise UserError(f"package {name!r} is not installed in {where}")
    return folder


def _sites(python: Path | None) -> Sequence[Site]:
    from aliaslint.program.environments import Site, site_folders

    if python:
        return site_folders(python)
    own = [Site(Path(entry)) for entry in sys.path if entry and Path(entry).name in _SITES]
    active = os.environ.get("VIRTUAL_ENV")
    return [*(site_folders(Path(active)) if active and Path(active).is_dir() else ()), *own]


def dependencies(
    targets: Sequence[Path], files: Sequence[SourceFile], python: Path | None, config: Config
) -> list[Dependency]:
    """Return what stands for mlx_lm and for whatever else of MLX the files import.

    Raises UserError if the interpreter that was named does not exist.
    """
    from aliaslint.program.dependencies import imported_packages, locate

    configured: Mapping[str, str] = {"mlx_lm": config.mlx_lm} if config.mlx_lm else {}
    imported = imported_packages(source.data for source in files) - sys.stdlib_module_names
    return locate(
        targets,
        python=python or config.python,
        configured=configured,
        imported=imported,
    )


def own_packages(targets: Iterable[Path], files: Iterable[SourceFile]) -> dict[str, Path]:
    """Return the packages that the files belong to and that reach beyond the targets.

    A file that is checked alone runs with the rest of its package.
    """
    given = set(targets)
    found: dict[str, Path] = {}
    for folder in {source.path.parent for source in files}:
        top = _top_package(folder)
        if top and given.isdisjoint((top, *top.parents)):
            found.setdefault(top.name, top)
    return found


def _top_package(folder: Path) -> Path | None:
    top = None
    while (folder / "__init__.py").is_file():
        top, folder = folder, folder.parent
    return top


def resting_on(
    dependencies: Iterable[Dependency], files: Sequence[SourceFile], protocol: Iterable[str]
) -> list[Dependency]:
    """Return the dependencies that files may rest on: they name it, or call the cache protocol."""
    calls = any(word.encode() in source.data for word in protocol for source in files)
    return [d for d in dependencies if calls or any(d.name.encode() in s.data for s in files)]
