"""Requirements files of pip: what they declare, what they include, and what constrains it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from os.path import isfile
from pathlib import Path

from aliaslint.program.declared import Declared, Tier, narrowed, parsed, spelled

_INCLUDE = re.compile(
    r"^[ \t]*(?:--(requirement|constraint)(?:[ \t]*=[ \t]*|[ \t]+)|-([rc])[ \t]*)(\S+)",
    re.MULTILINE,
)
_DEVELOPMENT = re.compile(r"dev|test|doc|lint|ci|bench|example", re.IGNORECASE)


def text_of(path: Path) -> str:
    """Return the text of a file, an empty one if there is no such file that can be read."""
    try:
        # Path.is_file raises for names that no path can have; others would wait for input.
        return path.read_text(encoding="utf-8-sig", errors="replace") if isfile(path) else ""
    except OSError:
        return ""


def included(path: Path, text: str) -> list[tuple[Path, bool]]:
    """Return the files that a requirements file names, with whether each one only constrains."""
    return [
        (Path(os.path.normpath(path.parent / m[3].strip("\"'"))), (m[1] or m[2])[0] == "c")
        for m in _INCLUDE.finditer(text)
    ]


def read_list(path: Path, text: str, wanted: str, tier: Tier) -> list[Declared]:
    """Return what a file declares about a package, without what it includes."""
    screen = re.compile(spelled(wanted), re.IGNORECASE)
    if not screen.search(text):
        return []
    rows = [(n, row) for n, row in _rows(text) if screen.search(row) and not row.startswith("-")]
    # What follows are options of the one requirement: its hashes.
    found = [parsed(re.split(r"\s--?\w", row)[0], path, n, tier) for n, row in rows]
    return [item for items in found for item in items if item.name == wanted]


def read_files(texts: Mapping[Path, str], wanted: str, apart: Iterable[Path]) -> list[Declared]:
    """Return what the requirements files of a folder, given with their texts, declare.

    A file is read with those that it includes, and its requirements are narrowed by the
    constraints that it names. What several files include is narrowed only if all of them do.
    Files `apart` count elsewhere.
    """
    starts = _starts(texts)
    reader = _Reader(dict(texts), wanted, frozenset([*starts, *apart]))
    found: dict[tuple[Path, int], list[Declared]] = {}
    for start in [*starts, *texts]:  # Files that include each other are none of the starts.
        for item, left in reader.tree(start) if start not in reader.reached else ():
            place = (item.path, item.line)
            if place not in found or item in left:
                found[place] = left
    return list(dict.fromkeys(item for left in found.values() for item in left))


def _starts(texts: Mapping[Path, str]) -> list[Path]:
    """Return the files that are installed from: those that no other one includes.

    One that only files for development include is installed from too; constraints are not.
    """
    owned: set[Path] = set()
    for path, text in texts.items():
        for other, bounds in included(path, text):
            if other != path and (_is_constraints(other) if bounds else not _develops(path)):
                owned.add(other)
    return [path for path in texts if path not in owned]


class _Reader:
    """Reads requirements files for one package, each file once."""

    def __init__(self, texts: dict[Path, str], wanted: str, apart: frozenset[Path]) -> None:
        self.texts = texts
        self.wanted = wanted
        self.apart = apart
        self.reached: set[Path] = set()

    def tree(self, start: Path) -> Iterator[tuple[Declared, list[Declared]]]:
        """Yield what a file and those that it includes declare, with what constraints leave."""
        items: list[Declared] = []
        bounds: list[Declared] = []
        pending = [(start, False)]
        for path, only_bounds in pending:  # It grows on the way.
            text = self._text(path)
            if not only_bounds or _is_constraints(path):
                self.reached.add(path)
            (bounds if only_bounds else items).extend(self._read(path, text))
            new = [i for i in included(path, text) if i not in pending]
            pending += [(p, limits) for p, limits in new if limits or p not in self.apart]
        for item in items:
            yield item, _with_tiers(item, narrowed(item, bounds))
        for bound in bounds if not items else ():
            tier: Tier = "pin" if bound.pinned else "constraint"
            yield bound, [replace(bound, tier=tier)]

    def _text(self, path: Path) -> str:
        if path not in self.texts:
            self.texts[path] = text_of(path)
        return self.texts[path]

    def _read(self, path: Path, text: str) -> list[Declared]:
        found = read_list(path, text, self.wanted, "required")
        # Pins with different versions are alternatives.
        return [replace(item, marker=item.marker or (item.pinned or "")) for item in found]


def _with_tiers(item: Declared, left: Iterable[Declared]) -> list[Declared]:
    """Give the tier that their file has to what constraints left of a requirement.

    Constraints that nothing names count only as pins.
    """
    if _is_constraints(item.path):
        left = [one for one in left if one.pinned]
    tier: Tier = "optional" if _develops(item.path) else "required"
    return [replace(one, tier="pin" if one.pinned else tier) for one in left]


def _is_constraints(path: Path) -> bool:
    return "constraint" in path.name.lower()


def _develops(path: Path) -> bool:
    return _DEVELOPMENT.search(path.stem.replace("requirements", "")) is not None


def _rows(text: str) -> Iterator[tuple[int, str]]:
    """Yield the rows that say something, without comments, with the line on which each starts."""
    parts: list[str] = []
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        parts.append(line)
        if line.endswith("\\") and not line.lstrip().startswith("#"):
            parts[-1] = line[:-1]
            continue
        if row := re.sub(r"(^|\s)#.*", "", "".join(parts)).strip():
            yield number + 1 - len(parts), row
        parts = []
