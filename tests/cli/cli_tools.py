"""Runs the command line in this process, and stands in for the analysis where a test needs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from aliaslint.analysis import AnalysisOptions
from aliaslint.cli.main import cli
from aliaslint.findings import FileError, Finding, Repair, Result, Span, Step
from aliaslint.rules import lookup
from aliaslint.source.files import SourceFile, split_lines

Analyse = Callable[[Sequence[SourceFile], AnalysisOptions], Result]


# Before click 8.2 the two streams were mixed by default.
APART: dict[str, Any] = (
    {"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}
)


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    status: int
    raw: bytes
    err: str

    @property
    def out(self) -> str:
        return self.raw.decode()


def run(*arguments: object, stdin: bytes = b"") -> Ran:
    result = CliRunner(**APART).invoke(
        cli, [str(argument) for argument in arguments], input=stdin, prog_name="aliaslint"
    )
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout_bytes, result.stderr)


def find_marks(files: Sequence[SourceFile], options: AnalysisOptions, *, jobs: int = 1) -> Result:
    """Report each line with a word like `AL001!` as a finding of that rule."""
    result = Result(summary={"unresolved": 3})
    for source in files:
        for number, line in enumerate(split_lines(source.text), 1):
            if line == "syntax error":
                result.errors.append(FileError(source.path, number, 1, "invalid syntax"))
            if "!" in line:
                code = line[line.index("!") - 5 : line.index("!")]
                column = len(line) - len(line.lstrip()) + 1
                result.findings.append(finding(code, source.path, number, column))
    return result


def finding(
    code: str,
    path: Path,
    line: int,
    column: int = 1,
    trace: tuple[Step, ...] = (),
    repair: Repair | None = None,
) -> Finding:
    rule = lookup(code)
    message = f"what {rule.name} does to you"
    span = Span(line, column, line, column + 5)
    return Finding(code, rule.name, message, rule.severity, path, span, trace, repair)


def write(root: Path, name: str, text: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
