"""Which releases of a package read stale captures of their own, and where.

The tables are the output of `python -m benchmarks.stale_captures`, which runs `aliaslint check`
on each release. `digest` tells whether source at hand is that of a release.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent


def packages() -> tuple[str, ...]:
    """Return the import names of the packages that there are tables of."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.json")))


@cache
def table(name: str) -> Mapping[str, Any]:
    """Return the table of a package, without releases if there is none.

    `{"releases": {VERSION: {"digest": TEXT, "captures": [{"path", "line", "code", "read"}]}}}`;
    paths are relative to the package's folder, `read` is the line of the first stale read.
    """
    path = _FOLDER / f"{name}.json"
    if not path.is_file():
        return {"releases": {}}
    content: Mapping[str, Any] = json.loads(path.read_bytes())
    return content


def releases(name: str) -> tuple[str, ...]:
    """Return the releases that were checked, lowest first."""
    from aliaslint.program.declared import in_order

    return tuple(in_order(table(name)["releases"]))


def places(name: str, version: str) -> tuple[str, ...]:
    """Return the stale captures of a release as "models/x.py:12"; none if it was not checked."""
    entry = table(name)["releases"].get(version, {"captures": []})
    return tuple(f"{c['path']}:{c['line']}" for c in entry["captures"])


def is_release(name: str, version: str, root: Path) -> bool:
    """Whether the source in `root` is that of the release, file by file."""
    entry = table(name)["releases"].get(version)
    return entry is not None and entry["digest"] == digest(root)


def digest(root: Path) -> str:
    """Return a digest of the Python files of a package's folder."""
    state = hashlib.blake2b(digest_size=16)
    for path in sorted(root.rglob("*.py")):
        state.update(path.relative_to(root).as_posix().encode() + b"\0")
        state.update(path.read_bytes() + b"\0")
    return state.hexdigest()
