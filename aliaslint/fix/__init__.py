"""Turns the repairs of findings into edits, as one transaction; prints nothing.

    report = fix.run(files, analyse, fix.FixOptions(strategy="auto", unsafe=False))
    for change in report.changes:
        click.echo(change.diff(shown_path), nl=False)      # --diff: stop here
    errors = fix.write(report.changes)                     # atomic, file by file

`analyse` takes source files (with edited text) and returns what `check` would show for them:
an object with `findings` (selected and not suppressed) and `errors`. With the engine:

    def analyse(files):
        edited = dataclasses.replace(run, files=tuple(files))
        return engine.judge(edited, engine.examine(edited, request))

`run` touches no file: the caller shows, verifies or writes. Exit status: 2 if there are errors
(`report.errors`, or what `write` returns), else 1 if `report.remaining` holds a finding of
severity error, else 0. `fix -`: pass the one SourceFile of standard input, print
`report.text_of(source)`, do not call `write`.
"""

from __future__ import annotations

from aliaslint.fix.model import (
    Analyse,
    Analysed,
    Applied,
    Change,
    FixOptions,
    FixReport,
    Skipped,
    Strategy,
)
from aliaslint.fix.run import run
from aliaslint.fix.transaction import sweep, write

__all__ = [
    "Analyse",
    "Analysed",
    "Applied",
    "Change",
    "FixOptions",
    "FixReport",
    "Skipped",
    "Strategy",
    "run",
    "sweep",
    "write",
]
