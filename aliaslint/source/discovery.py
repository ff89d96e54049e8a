"""Finding the files of a run: folders are walked, files that are named are always taken.

A folder is walked as git sees it (`.gitignore` files of the folder, of its parents up to the
work tree's root, and below) and without the excluded names. Links to folders are not followed
and no file is taken twice, whatever names lead to it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from aliaslint.findings import FileError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

DEFAULT_EXCLUDES = (
    ".bzr",
    ".direnv",
    ".eggs",
    ".git",
    ".hg",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".nox",
    ".pants.d",
    ".pytest_cache",
    ".pytype",
    ".ruff_cache",
    ".svn",
    ".tox",
    ".venv",
    ".vscode",
    "__pycache__",
    "__pypackages__",
    "_build",
    "build",
    "buck-out",
    "dist",
    "node_modules",
    "site-packages",
    "venv",
)
_PLAIN = frozenset("*?[]!/\\ ")


@dataclass(frozen=True, slots=True)
class Excludes:
    """Names and patterns that a walk leaves out, relative to `root` as in a `.gitignore`.

    `forced`: they also apply to files that are named on the command line.
    """

    root: Path
    patterns: tuple[str, ...] = DEFAULT_EXCLUDES
    forced: bool = False

    @property
    def names(self) -> frozenset[str]:
        """The patterns that are plain names: they match at any depth, without a matcher."""
        return frozenset(p for p in self.patterns if not _PLAIN.intersection(p))

    def layers(self) -> list[_Layer]:
        """The other patterns as a layer of ignore rules."""
        rest = [p for p in self.patterns if _PLAIN.intersection(p)]
        return [_Layer(str(self.root), _compile(rest))] if rest else []


@dataclass(frozen=True, slots=True)
class Discovery:
    """The files of a run, absolute and sorted, and the paths that gave none."""

    files: tuple[Path, ...]
    errors: tuple[FileError, ...]


@dataclass(frozen=True, slots=True)
class _Layer:
    """Ignore patterns that hold below `folder`."""

    folder: str
    spec: GitIgnoreSpec

    def verdict(self, path: str, is_folder: bool) -> bool | None:
        """True: ignored; False: explicitly not ignored; None: no pattern speaks of it."""
        if not path.startswith(self.folder.rstrip(os.sep) + os.sep):
            return None
        relative = os.path.relpath(path, self.folder).replace(os.sep, "/")
        return self.spec.check_file(relative + "/" * is_folder).include


def discover(paths: Sequence[Path], excludes: Excludes) -> Discovery:
    """Return the Python files that `paths` stand for.

    A missing path and a folder without Python files are errors, since a green result for
    them would mean nothing.
    """
    found: dict[str, Path] = {}
    errors: list[FileError] = []
    for given in paths:
        path = Path(os.path.abspath(given))
        if path.is_dir():
            before = len(found)
            seen = _take(_walk(str(path), excludes), found)
            if len(found) == before and not seen:
                errors.append(FileError(path, None, None, _why_empty(path)))
        elif path.exists():
            if not (excludes.forced and _is_excluded(path, excludes)):
                _take([(str(path), os.path.realpath(path))], found)
        else:
            errors.append(FileError(path, None, None, "no such file or folder"))
    return Discovery(tuple(sorted(found.values())), tuple(errors))


def _take(entries: Iterable[tuple[str, str]], found: dict[str, Path]) -> bool:
    """Add (path, real path) pairs to `found`; return whether there were any."""
    seen = False
    for path, real in entries:
        seen = True
        found.setdefault(real, Path(path))
    return seen


def _walk(root: str, excludes: Excludes) -> Iterator[tuple[str, str]]:
    """Yield (path, real path) of the Python files below `root`, real files before links."""
    links: list[tuple[str, str]] = []
    names = excludes.names
    fixed = excludes.layers()
    pending = [(root, os.path.realpath(root), fixed + _outer_layers(root))]
    while pending:
        folder, real_folder, layers = pending.pop()
        entries = _entries(folder)
        special = {entry.name for entry in entries}.intersection((".gitignore", "pyvenv.cfg"))
        if "pyvenv.cfg" in special and folder != root:
            continue  # A virtual environment, whatever its name.
        if ".gitignore" in special:
            layers = [*layers, *_layer(folder, ".gitignore")]
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            if not is_folder and not entry.name.endswith(".py"):
                continue
            if entry.name in names or (layers and _ignored(entry.path, is_folder, layers)):
                continue
            if is_folder:
                pending.append((entry.path, os.path.join(real_folder, entry.name), layers))
            elif entry.is_file(follow_symlinks=False):
                yield entry.path, os.path.join(real_folder, entry.name)
            elif os.path.isfile(entry.path):  # Unlike the entry, it takes a circle of links.
                links.append((entry.path, os.path.realpath(entry.path)))
    yield from links


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []  # A folder that may not be read holds no file for us.


def _ignored(path: str, is_folder: bool, layers: Sequence[_Layer]) -> bool:
    """The innermost layer that speaks of a path decides, as in git."""
    for layer in reversed(layers):
        verdict = layer.verdict(path, is_folder)
        if verdict is not None:
            return verdict
    return False


def _outer_layers(root: str) -> list[_Layer]:
    """The ignore files above `root`, outermost first, if `root` is inside a git work tree.

    A folder that is ignored itself but was named is meant: then nothing above it counts.
    """
    chain = [root]
    while not os.path.exists(os.path.join(chain[0], ".git")):
        parent = os.path.dirname(chain[0])
        if parent == chain[0]:
            return []
        chain.insert(0, parent)
    layers = _layer(chain[0], ".git/info/exclude")
    for folder, inner in pairwise(chain):
        layers += _layer(folder, ".gitignore")
        if _ignored(inner, True, layers):
            return []
    return layers


def _layer(folder: str, name: str) -> list[_Layer]:
    try:
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return []
    return [_Layer(folder, _compile(lines))] if lines else []


def _compile(patterns: Iterable[str]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec  # Its import costs as much as click's.

    lines = list(patterns)
    try:
        return GitIgnoreSpec.from_lines(lines)
    except (ValueError, re.error):  # git passes over what is no pattern
        return GitIgnoreSpec.from_lines(filter(_compiles, lines))


def _compiles(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except (ValueError, re.error):
        return False
    return True


def _is_excluded(path: Path, excludes: Excludes) -> bool:
    """Whether a named file is excluded itself or lies in an excluded folder."""
    layers = excludes.layers()
    inside = (excludes.root, *excludes.root.parents)
    for part in (path, *path.parents):
        if part in inside:
            return False
        if part.name in excludes.names or _ignored(str(part), part != path, layers):
            return True
    return False


def _why_empty(path: Path) -> str:
    """Say why a folder gave no file."""
    pending = [str(path)]
    while pending:
        for entry in _entries(pending.pop()):
            if entry.is_dir(follow_symlinks=False):
                pending.append(entry.path)
            elif entry.name.endswith(".py"):
                return "all Python files in this folder are excluded or ignored"
    return "no Python files in this folder"
