"""Asks the fixer, in memory, what it would write."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aliaslint.verify.model import Edit

if TYPE_CHECKING:
    from aliaslint.findings import Finding
    from aliaslint.fix import Change
    from aliaslint.report import Report
    from aliaslint.source.files import SourceFile


@dataclasses.dataclass(frozen=True, slots=True)
class Rewrite:
    """New contents by path, the lines of the tree on disk that they rewrite, and why.

    `findings` are those of the tree on disk, whichever repair cures them.
    """

    contents: Mapping[Path, bytes]
    edits: tuple[Edit, ...]
    findings: tuple[Finding, ...]


def rewrite_in_memory(folder: Path) -> Rewrite:
    """What `fix` would make of `folder`, beside the packages of the environment that runs it.

    Only safe fixes, as `fix` without options. Raises UserError as `check` does.
    """
    from aliaslint import fix
    from aliaslint.engine import Request, examine, judge, prepare

    request = Request(paths=(folder,), python=Path(sys.executable))
    run = prepare(request)

    def analyse(files: Sequence[SourceFile]) -> Report:
        edited = dataclasses.replace(run, files=tuple(files))
        return judge(edited, examine(edited, request))

    report = fix.run(run.files, analyse, fix.FixOptions(codes=run.codes))
    contents = {change.after.path: change.after.data for change in report.changes}
    return Rewrite(contents, edits_of(report.changes), report.found)


def edits_of(changes: Iterable[Change]) -> tuple[Edit, ...]:
    """The lines of the tree on disk that the applied repairs of some changes rewrite."""
    return tuple(
        Edit(
            change.before.path,
            *applied.lines,
            repair.owner if repair.action == "store-back" else "",
        )
        for change in changes
        for applied in change.applied
        if (repair := applied.finding.repair)
    )
