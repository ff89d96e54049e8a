"""Baselines: findings that are known and not to be reported again.

A baseline is JSON: how often a (path, code, context) occurs. It holds no line numbers, so edits
elsewhere in a file leave it valid. Paths are relative to the baseline file.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from aliaslint.findings import Finding
from aliaslint.report import Lines
from aliaslint.report.fingerprint import context
from aliaslint.source.config import ConfigError

Key = tuple[str, str, str]
_VERSION = 1


def load(path: Path) -> Counter[Key]:
    """Read a baseline. Raises ConfigError if it is missing or not one."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        hint = "; --write-baseline makes it" if isinstance(error, FileNotFoundError) else ""
        raise ConfigError(f"{path}: cannot be read: {error.strerror}{hint}") from None
    except ValueError as error:
        raise ConfigError(f"{path}: is not a baseline: {error}") from None
    try:
        if content["version"] != _VERSION:
            raise ConfigError(f"{path}: is a baseline of version {content['version']}, not 1")
        entries = content["findings"]
        return Counter(
            {(str(e["path"]), str(e["code"]), str(e["context"])): int(e["count"]) for e in entries}
        )
    except (KeyError, TypeError, ValueError):
        raise ConfigError(f"{path}: is not a baseline of aliaslint") from None


def split(
    findings: Iterable[Finding], baseline: Counter[Key], path: Path, lines: Lines
) -> tuple[list[Finding], list[Finding], int]:
    """Return the new findings, the known ones, and how many entries match nothing any more."""
    left = Counter(baseline)
    new: list[Finding] = []
    known: list[Finding] = []
    for finding in findings:
        key = _key(finding, path, lines)
        if left[key] > 0:
            left[key] -= 1
            known.append(finding)
        else:
            new.append(finding)
    return new, known, sum(left.values())


def dump(findings: Iterable[Finding], path: Path, lines: Lines) -> str:
    """Return the text of a baseline at `path` that knows all `findings`."""
    counts = Counter(_key(finding, path, lines) for finding in findings)
    entries = [
        {"path": file, "code": code, "context": text, "count": count}
        for (file, code, text), count in sorted(counts.items())
    ]
    return json.dumps({"version": _VERSION, "findings": entries}, indent=2) + "\n"


def _key(finding: Finding, baseline: Path, lines: Lines) -> Key:
    relative = os.path.relpath(finding.path, os.path.abspath(baseline.parent))
    return (relative.replace(os.sep, "/"), finding.code, context(finding, lines))
