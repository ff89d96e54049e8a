"""Which source, or which effect table, stands for each dependency of the target.

The order: the package inside the target itself, which shadows any installed one; the interpreter
or the version that the user named; the active environment or a virtual environment beside the
target; the built-in effect table for the locked version, or for the lowest version that the
declared requirement admits; none. Nothing of the target's is imported or executed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from aliaslint.program import effect_tables
from aliaslint.program.declared import Declared, admitted, canonical, in_order
from aliaslint.program.environments import (
    Installed,
    Site,
    environments_beside,
    find_installed,
    installed_version,
    is_package,
    metadata_file,
    site_folders,
    source_version,
)
from aliaslint.program.requirements import declaring_files, read_folder, read_metadata

Kind = Literal["shadowed", "source", "table", "none"]

ALWAYS = ("mlx_lm",)
_SITES = frozenset({"site-packages", "dist-packages"})
_SKIPPED = frozenset({"build", "dist", "node_modules", "__pycache__", *_SITES})


@dataclass(frozen=True, slots=True)
class Dependency:
    """What stands for one dependency.

    `root` is the folder of its source ("shadowed", "source"), None otherwise. `version` is the
    one that was found, or the one whose effects the table gives. `origin` says in words where
    this comes from; it stands in the summary and in messages that rest on it.
    """

    name: str
    kind: Kind
    root: Path | None
    version: str | None
    origin: str

    @property
    def hint(self) -> str | None:
        """One line that tells how to name the version, where nothing stands for the package."""
        if self.kind != "none":
            return None
        key = canonical(self.name)
        return (
            f"{key} was not found, so captures are judged without its caches: name it with "
            f'--python PATH, or with `{key} = "VERSION"` in [tool.aliaslint]'
        )


def locate(
    targets: Sequence[Path],
    *,
    python: Path | None,
    configured: Mapping[str, str],
    imported: Iterable[str] = (),
) -> list[Dependency]:
    """Return what stands for mlx_lm, and for each `imported` package that builds on MLX.

    `targets` are the files and folders of the run. `python` is an interpreter or an environment
    folder that the user named. `configured` maps a package to a version or to the folder of its
    source. Of `imported` (import names) those are added whose source is found and whose
    metadata require mlx or mlx-lm. Raises EnvironmentMissing if `python` does not exist.
    """
    places = [Path(os.path.abspath(target)) for target in targets]
    search = _Search(places, python)
    found = [_locate(name, search, configured.get(name)) for name in ALWAYS]
    for name in sorted(set(imported).difference(ALWAYS)):
        extra = _locate_installed(name, search)
        if extra is None or extra.root is None or not _builds_on_mlx(extra.root):
            continue
        if not any(_inside(name, place) for place in places):
            found.append(extra)
    return found


def admitted_versions(targets: Sequence[Path], name: str) -> list[str]:
    """Return one release for each effect table of `name` that the project admits, lowest first.

    Releases with the same effects are alike to the analysis, so the lowest of them stands for
    all. Empty if the project declares nothing about the package, or no table covers it.
    """
    folders = _folders([Path(os.path.abspath(target)) for target in targets])
    releases = admitted(nearest_declared(folders, name), effect_tables.releases(name))
    return effect_tables.distinct(name, releases)


def nearest_declared(folders: Sequence[Path], name: str) -> list[Declared]:
    """Return what the target's project declares about the distribution, locks apart.

    The project is the nearest folder that declares dependencies of any kind: what a project
    around it wants is not its own. Where it has nothing but a lock file, that declares.
    """
    for folder in folders:
        found = [d for d in _declared_in(folder, name) if d.tier != "lock"]
        if found:
            return found
        if _declares_something(folder):
            break
    return nearest_locked(folders, name)


def _declares_something(folder: Path) -> bool:
    marks = {"pyproject.toml": b"dependencies", "setup.cfg": b"install_requires", "setup.py": b""}
    for name, mark in {**marks, "Pipfile": b"", "requirements.txt": b""}.items():
        path = folder / name
        if path.is_file() and (not mark or mark in path.read_bytes()):
            return True
    return False


def nearest_locked(folders: Sequence[Path], name: str) -> list[Declared]:
    """Return the pins of the nearest folder with a lock file (or pinned requirements) for it."""
    for folder in folders:
        found = read_folder(folder, name, locks_only=True)
        if found:
            return found
    for folder in folders:
        found = [d for d in _declared_in(folder, name) if d.tier == "pin"]
        if found:
            return found
    return []


def project_folders(targets: Sequence[Path]) -> list[Path]:
    """Return the folders whose files may declare dependencies of the targets, nearest first.

    The walk up ends at a repository's root, at the home folder, and at `site-packages`.
    """
    return _folders([Path(os.path.abspath(target)) for target in targets])


def declarations_state(targets: Sequence[Path]) -> tuple[str, ...]:
    """Return name, size and time of every file that may declare a dependency of the targets.

    What was located, and what rules say about declarations, is the same while this is.
    """
    found = []
    for folder in project_folders(targets):
        for path in declaring_files(folder):
            about = path.stat()
            found.append(f"{path}\0{about.st_size}\0{about.st_mtime_ns}")
    return tuple(found)


def imported_packages(sources: Iterable[bytes]) -> set[str]:
    """Return the top-level names that sources import, as far as a scan of the bytes can tell."""
    # Anchored at a line end rather than with MULTILINE, which takes twice the time.
    pattern = re.compile(rb"\n[ \t]*(?:from|import)[ \t]+([A-Za-z_]\w*)")
    return {match.decode() for data in sources for match in pattern.findall(b"\n" + data)}


class _Search:
    """Where one run looks for packages; environments are listed once, when they are needed."""

    def __init__(self, places: Sequence[Path], python: Path | None) -> None:
        self.places = places
        self.named = None if python is None else [(site_folders(python), "--python")]

    @cached_property
    def environments(self) -> list[tuple[list[Site], str]]:
        """The named environment, or the active one, those beside the target, conda's."""
        if self.named is not None:
            return self.named
        active, conda = os.environ.get("VIRTUAL_ENV"), os.environ.get("CONDA_PREFIX")
        candidates = [(Path(active), "VIRTUAL_ENV")] if active else []
        for place in self.places:
            start = place if place.is_dir() else place.parent
            candidates += [(env, "beside the target") for env in environments_beside(start)]
        candidates += [(Path(conda), "CONDA_PREFIX")] if conda else []
        unique = dict.fromkeys((path, how) for path, how in candidates if path.is_dir())
        return [(site_folders(path), how) for path, how in unique]


def _locate(name: str, search: _Search, configured: str | None) -> Dependency:
    inside = next(filter(None, (_inside(name, place) for place in search.places)), None)
    if inside is not None:
        version = _version_of(inside)
        return Dependency(name, "shadowed", inside, version, f"{shown(inside)}, in the target")
    if search.named is not None or configured is None:
        dependency = _locate_installed(name, search)
        if dependency is not None:
            return dependency
    if configured is not None:
        return _configured(name, configured)
    return _from_table(name, _folders(search.places))


def _locate_installed(name: str, search: _Search) -> Dependency | None:
    for sites, how in search.environments:
        if found := find_installed(name, sites):
            return _source(name, found, how)
    return None


def _source(name: str, found: Installed, how: str) -> Dependency:
    origin = f"installed in {shown(found.root)} ({how})"
    return Dependency(name, "source", found.root, found.version, origin)


def _configured(name: str, value: str) -> Dependency:
    if not value[:1].isdigit():
        root = Path(os.path.abspath(value))
        origin = f"{shown(root)}, named in the configuration"
        return Dependency(name, "source", root, _version_of(root), origin)
    if not effect_tables.known(name):
        return Dependency(name, "none", None, value, "the configuration; no table knows it")
    origin = "built-in effect table, version named in the configuration"
    return Dependency(name, "table", None, value, origin + _beyond(name, value))


def _from_table(name: str, folders: Sequence[Path]) -> Dependency:
    if not effect_tables.known(name):
        return Dependency(name, "none", None, None, "not found")
    locked = [d for d in nearest_locked(folders, name) if d.pinned]
    if locked:
        version = in_order({d.pinned for d in locked if d.pinned})[0]
        place = next(d for d in locked if d.pinned == version)
        origin = f"built-in effect table, version locked in {shown(place.path)}:{place.line}"
        return Dependency(name, "table", None, version, origin + _beyond(name, version))
    declared = nearest_declared(folders, name)
    releases = admitted(declared, effect_tables.releases(name))
    if not declared:
        return Dependency(name, "none", None, None, "neither installed nor declared")
    place = declared[0]
    if not releases:
        origin = f"`{place.text}` in {shown(place.path)}:{place.line} admits no known release"
        return Dependency(name, "none", None, None, origin)
    version = next(filter(lambda r: effect_tables.batched(name, r), releases), releases[0])
    which = "lowest version" if version == releases[0] else "lowest version with batched caches"
    origin = (
        f"built-in effect table, {which} that `{place.text}` in "
        f"{shown(place.path)}:{place.line} admits"
    )
    return Dependency(name, "table", None, version, origin)


def _beyond(name: str, version: str) -> str:
    """Say so where a version is newer or older than all that the table was made from."""
    releases = effect_tables.releases(name)
    if in_order([version, releases[-1]])[-1] != releases[-1]:
        return f" (newer than the table: the effects of {releases[-1]} are assumed)"
    if in_order([version, releases[0]])[0] != releases[0]:
        return f" (older than the table: the effects of {releases[0]} are assumed)"
    return ""


def _inside(name: str, place: Path) -> Path | None:
    """Return the folder of package `name` in or around the target, None if it is not there."""
    start = place if place.is_dir() else place.parent
    for folder in (start, *start.parents):
        if folder.name == name and is_package(folder) and not _is_test_double(folder):
            return folder
    for folder in _import_roots(start):
        for candidate in (folder / name, folder / "src" / name):
            if is_package(candidate):
                return candidate
    if place.is_dir():
        for child in _children(place):
            for candidate in (child / name, child / "src" / name):
                if is_package(candidate):
                    return candidate
    return None


def _is_test_double(folder: Path) -> bool:
    """A package folder of that name without caches, inside a folder of tests, is a double."""
    return "tests" in folder.parts and not (folder / "models" / "cache.py").is_file()


def _import_roots(start: Path) -> Iterator[Path]:
    """Yield the folder, and those above it up to the project's root or the import root."""
    for folder in (start, *start.parents):
        yield folder
        marks = (".git", "pyproject.toml", "setup.py", "setup.cfg")
        if folder.name in _SITES or any((folder / mark).exists() for mark in marks):
            return
        if not (folder / "__init__.py").is_file() and folder != start:
            return


def _children(place: Path) -> Iterator[Path]:
    try:
        entries = sorted(place.iterdir())
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith(".") or entry.name in _SKIPPED or not entry.is_dir():
            continue
        if not (entry / "pyvenv.cfg").is_file():
            yield entry


def _version_of(root: Path) -> str | None:
    return source_version(root) or installed_version(root.parent, root.name)


def _folders(places: Sequence[Path]) -> list[Path]:
    found: dict[Path, None] = {}
    home = Path.home()
    for place in places:
        start = place if place.is_dir() else place.parent
        for folder in (start, *start.parents):
            if folder == home:
                break
            found[folder] = None
            if (folder / ".git").exists() or folder.name in _SITES:
                break
    return sorted(found, key=lambda folder: -len(folder.parts))


def _declared_in(folder: Path, name: str) -> list[Declared]:
    """Read a folder's files, and the metadata beside it if it is an installed package."""
    found = read_folder(folder, name)
    if not found and is_package(folder):
        metadata = metadata_file(folder.parent, folder.name)
        found = read_metadata(metadata, name) if metadata else []
    return found


def _builds_on_mlx(root: Path) -> bool:
    metadata = metadata_file(root.parent, root.name)
    if metadata is None:
        return False
    declared = [d for name in ("mlx", "mlx-lm") for d in read_metadata(metadata, name)]
    return any(d.tier == "required" for d in declared)


def shown(path: Path) -> str:
    """Return a path as messages show it: relative where it lies below the working directory."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
