"""The data of a fix run: what was asked for, what became of each finding, what changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from aliaslint.findings import FileError, Finding
from aliaslint.source.files import SourceFile

Strategy = Literal["auto", "rebind", "snapshot", "both"]


class Analysed(Protocol):
    """What an analysis returns: `aliaslint.findings.Result` and the engine's report both fit."""

    @property
    def findings(self) -> Sequence[Finding]: ...

    @property
    def errors(self) -> Sequence[FileError]: ...


Analyse = Callable[[Sequence[SourceFile]], Analysed]


@dataclass(frozen=True, slots=True)
class FixOptions:
    """`unsafe` carries out the unsafe repairs too; `codes` limits what is repaired (None: all).

    `line_length` is that of the project's formatter; None reads it from the nearest
    pyproject.toml (black, then ruff), and takes black's 88 where there is none.
    """

    strategy: Strategy = "auto"
    unsafe: bool = False
    codes: frozenset[str] | None = None
    line_length: int | None = None


@dataclass(frozen=True, slots=True)
class Applied:
    """A finding whose repair was carried out. `hint` says where it could be cured at its source.

    `met` is its file as the repair met it, which the spans are about: earlier rounds may have
    edited it. `lines` are the first and the last line of the repair in the file as it was.
    """

    finding: Finding
    met: SourceFile
    lines: tuple[int, int]
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A finding that was not repaired, and why, in words for the user."""

    finding: Finding
    reason: str


@dataclass(frozen=True, slots=True)
class Change:
    """One file before and after. `applied` holds findings with the spans of the text they met."""

    before: SourceFile
    after: SourceFile
    applied: tuple[Applied, ...]

    def diff(self, name: str, context: int = 3) -> str:
        """Return a unified diff under `name`, in the file's own line ends; "" if equal."""
        from aliaslint.fix.diff import unified

        return unified(self.before.text, self.after.text, name, context)

    def patch(self, name: str) -> bytes:
        """Return the diff as a program wants it that changes the file: in the file's own bytes."""
        from aliaslint.fix.diff import patch

        return patch(self.before.data, self.after.data, name)


@dataclass(frozen=True, slots=True)
class FixReport:
    """What a run did. `remaining` is what `check` would show afterwards, in stable order.

    `found` is what it would have shown before: also what a fix elsewhere has cured.
    """

    changes: tuple[Change, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    remaining: tuple[Finding, ...] = ()
    errors: tuple[FileError, ...] = ()
    found: tuple[Finding, ...] = ()

    @property
    def applied(self) -> tuple[Applied, ...]:
        return tuple(applied for change in self.changes for applied in change.applied)

    def without(self, failures: Iterable[FileError]) -> FixReport:
        """Return the report of a run in which some files could not be written."""
        paths = {failure.path for failure in failures}
        if not paths:
            return self
        lost = [a.finding for c in self.changes if c.before.path in paths for a in c.applied]
        return replace(
            self,
            changes=tuple(c for c in self.changes if c.before.path not in paths),
            remaining=tuple(sorted([*self.remaining, *lost], key=Finding.sort_key)),
        )

    def text_of(self, source: SourceFile) -> str:
        """Return the text of a file after the run."""
        for change in self.changes:
            if change.before.path == source.path:
                return change.after.text
        return source.text
