"""Reports: what a run found, as text for people and in the formats of other tools.

Rendering only reads. Every format is one function in a module of its own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from aliaslint.findings import Finding, Result
from aliaslint.source.files import SourceFile, split_lines


@dataclass(slots=True)
class Report(Result):
    """A result with what a report needs beside the findings.

    `hidden` are the findings that a comment suppresses, `known` those that the baseline lists;
    neither is in `findings`. `sources` are the files of the run by path. `codes` are the rules
    that ran. `has_baseline`: a baseline was given; `stale` counts its entries that match
    nothing any more.
    """

    hidden: list[Finding] = field(default_factory=list)
    known: list[Finding] = field(default_factory=list)
    sources: Mapping[Path, SourceFile] = field(default_factory=dict)
    codes: frozenset[str] = frozenset()
    has_baseline: bool = False
    stale: int = 0

    @property
    def status(self) -> int:
        """The exit status: 2 for errors, 1 for findings of severity error, else 0."""
        if self.errors:
            return 2
        return int(any(finding.severity == "error" for finding in self.findings))


def relative(path: Path) -> str:
    """Return `path` with forward slashes, relative if it lies below the working directory."""
    text = str(path)
    base = os.getcwd().rstrip(os.sep) + os.sep
    return text.removeprefix(base).replace(os.sep, "/")


class Lines:
    """The source lines of files, in memory or on disk, for reports that quote them."""

    def __init__(self, sources: Mapping[Path, SourceFile]) -> None:
        self._sources = sources
        self._read: dict[Path, list[str]] = {}

    def of(self, path: Path) -> list[str]:
        """Return the lines of a file; none if it cannot be read."""
        if path not in self._read:
            self._read[path] = self._load(path)
        return self._read[path]

    def get(self, path: Path, line: int) -> str:
        """Return one line (from 1), empty if there is no such line."""
        lines = self.of(path)
        return lines[line - 1] if 0 < line <= len(lines) else ""

    def _load(self, path: Path) -> list[str]:
        from aliaslint.source.files import read

        source = self._sources.get(path) or read(path)
        return split_lines(source.text) if isinstance(source, SourceFile) else []
