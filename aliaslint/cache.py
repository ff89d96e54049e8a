"""Stored results of whole runs, so that an unchanged run costs no analysis.

A result is stored under a key over everything that it depends on: the tool's own source, the
Python version, the options, the content of all files of the run, the files of the dependencies
that were located, and the metadata files of the project. Nothing is ever reused across keys.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

from aliaslint.analysis import AnalysisOptions
from aliaslint.findings import FileError, Finding, Named, Repair, Result, Span, Step
from aliaslint.source.files import SourceFile

_KEPT = 50
_FORMAT = 1


def folder() -> Path:
    """Return where results are stored: `ALIASLINT_CACHE_DIR`, or the user's cache folder."""
    own = os.environ.get("ALIASLINT_CACHE_DIR")
    if own:
        return Path(own)
    if sys.platform.startswith("linux"):  # Where platformdirs would put it, without its import.
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "aliaslint"
    from platformdirs import user_cache_path

    return user_cache_path("aliaslint", appauthor=False)


def key(
    files: Iterable[SourceFile], options: AnalysisOptions, roots: Iterable[Path], *more: object
) -> str:
    """Return the key of a run over `files`; `roots` are the folders with project metadata.

    `more` is whatever else the result depends on, by its `repr`.
    """
    state = hashlib.blake2b(digest_size=20)
    shadow = {str(source.path) for source in files}
    for part in (_FORMAT, sys.version, options, *more):
        state.update(repr(part).encode("utf-8", "surrogatepass") + b"\0")
    for place in (str(Path(__file__).parent), *map(str, options.dependency_roots.values())):
        for line in _stats(place, shadow):
            state.update(line.encode("utf-8", "surrogatepass"))
    for root in roots:
        for line in _beside(root):
            state.update(line.encode("utf-8", "surrogatepass"))
    for source in files:
        state.update(f"{source.path}\0{len(source.data)}\0".encode("utf-8", "surrogatepass"))
        state.update(source.data)
    return state.hexdigest()


def load(name: str) -> Result | None:
    """Return the result that is stored under a key, None if there is none that can be read."""
    try:
        with open(folder() / f"{name}.json", encoding="utf-8") as file:
            return _result(json.load(file))
    except (OSError, ValueError, KeyError, TypeError, RuntimeError):
        return None


def store(name: str, result: Result) -> None:
    """Store a result under a key; a folder that cannot be written to is no error."""
    place = folder()
    with contextlib.suppress(OSError, RuntimeError, TypeError):
        text = json.dumps(_document(result))
        place.mkdir(parents=True, exist_ok=True)
        temporary = place / f"{name}.{os.getpid()}.tmp"
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, place / f"{name}.json")
        _prune(place)


def _prune(place: Path) -> None:
    """Keep only the results that were stored last."""
    entries = [entry for entry in os.scandir(place) if entry.name.endswith((".json", ".tmp"))]
    entries.sort(key=lambda entry: entry.stat().st_mtime_ns, reverse=True)
    for entry in entries[_KEPT:]:
        os.unlink(entry.path)


def _stats(root: str, shadow: set[str]) -> Iterator[str]:
    """Yield name, size and time of each source file below a folder that is not in the run."""
    pending = [root]
    while pending:
        try:
            entries = sorted(os.scandir(pending.pop()), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            if entry.name == "__pycache__" or entry.path in shadow:
                continue
            if entry.is_dir(follow_symlinks=False):
                pending.append(entry.path)
            elif entry.name.endswith((".py", ".json", ".toml")):
                yield _stat(entry)


def _beside(root: Path) -> Iterator[str]:
    """Yield name, size and time of the files directly in a folder: metadata and lock files.

    A folder `requirements` counts as well.
    """
    with contextlib.suppress(OSError):
        for entry in sorted(os.scandir(root), key=lambda entry: entry.name):
            if entry.is_file():
                yield _stat(entry)
            elif entry.name.startswith("requirements"):
                yield from _beside(Path(entry.path))


def _stat(entry: os.DirEntry[str]) -> str:
    about = entry.stat()
    return f"{entry.path}\0{about.st_size}\0{about.st_mtime_ns}\0"


def _document(result: Result) -> dict[str, Any]:
    return {
        "findings": [_plain_finding(finding) for finding in result.findings],
        "errors": [(str(e.path), e.line, e.column, e.message) for e in result.errors],
        "summary": result.summary,
    }


def _plain_finding(finding: Finding) -> list[Any]:
    return [
        finding.code,
        finding.name,
        finding.message,
        finding.severity,
        str(finding.path),
        _plain_span(finding.span),
        [(s.role, str(s.path), _plain_span(s.span), s.message) for s in finding.trace],
        finding.repair and _plain_repair(finding.repair),
        finding.obstacle,
    ]


def _plain_repair(repair: Repair) -> list[Any]:
    return [*astuple(repair)[:-1], repair.path and str(repair.path)]


def _plain_span(span: Span) -> tuple[int, int, int, int]:
    return (span.line, span.column, span.end_line, span.end_column)


def _result(document: dict[str, Any]) -> Result:
    return Result(
        findings=[_finding(*plain) for plain in document["findings"]],
        errors=[FileError(Path(path), *rest) for path, *rest in document["errors"]],
        summary=dict(document["summary"]),
    )


def _finding(
    code: str,
    name: str,
    message: str,
    severity: Any,
    path: str,
    span: list[int],
    trace: list[Any],
    repair: list[Any] | None,
    obstacle: str,
) -> Finding:
    steps = tuple(Step(role, Path(p), Span(*where), text) for role, p, where, text in trace)
    mend = _repair(repair) if repair else None
    return Finding(code, name, message, severity, Path(path), Span(*span), steps, mend, obstacle)


def _repair(plain: list[Any]) -> Repair:
    action, span, *rest, names, also, path = plain
    return replace(
        Repair(action, Span(*span), *rest),
        names=tuple(Named(*name) for name in names),
        also=tuple(Span(*where) for where in also),
        path=path and Path(path),
    )
