"""The third check: what `fix` makes of a program does what value semantics asks for."""

from __future__ import annotations

from collections.abc import Sequence

from aliaslint import fix
from aliaslint.analysis import AnalysisOptions, analyse
from aliaslint.findings import Result
from aliaslint.source.files import SourceFile
from benchmarks.fuzz.compare import JUDGED, PATH
from benchmarks.fuzz.oracle import values_used
from benchmarks.fuzz.tree import Program, as_written, with_value_semantics

RUNS = 12


def _analysed(files: Sequence[SourceFile]) -> Result:
    return analyse(files, AnalysisOptions())


def _fixed(text: str, strategy: fix.Strategy) -> tuple[str, fix.FixReport]:
    source = SourceFile(PATH, text.encode(), text, "utf-8")
    options = fix.FixOptions(strategy=strategy, unsafe=True, line_length=200)
    report = fix.run([source], _analysed, options)
    return report.text_of(source), report


def check(program: Program, strategy: fix.Strategy = "auto") -> str:
    """Return what is wrong with the fixed program, or "".

    "unrepaired" says that findings are left, so that its values say nothing.
    """
    try:
        text, report = _fixed(as_written(program), strategy)
        again, _ = _fixed(text, strategy)
    except Exception as error:
        return f"fix raises {type(error).__name__}: {error}"[:80]
    if any(finding.code in JUDGED for finding in report.remaining):
        return "unrepaired"
    if again != text:
        return "a second fix changes it again"
    for number in range(RUNS):
        wanted = values_used(with_value_semantics(program), f"0/{number}", real=False)
        try:
            values = values_used(text, f"0/{number}", real=False)
        except Exception as error:
            return f"fixed program raises {type(error).__name__}: {error}"[:80]
        if values != wanted:
            return "fixed program reads other values"
    return ""
