"""Text for people: every finding with the lines that are its evidence.

Without `--show-trace` the capture, the mutation and the reads take one line each; with it every
step is shown, calls included, with its message and a marked source line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from aliaslint.findings import FileError, Finding, Span, Step
from aliaslint.report import Lines, Report, relative
from aliaslint.report.render import Style
from aliaslint.report.summary import count, summary

_COLORS = {"error": "31;1", "warning": "33;1", "path": "1", "role": "36", "dim": "2", "fix": "32"}
_EVIDENCE = ("capture", "hand-over", "mutation", "read")
_READS = 3
_MARGIN = "    "


class Painter:
    """Adds colour, or none."""

    def __init__(self, color: bool) -> None:
        self._color = color

    def __call__(self, kind: str, text: str) -> str:
        return f"\x1b[{_COLORS[kind]}m{text}\x1b[0m" if self._color else text


def render(report: Report, style: Style) -> str:
    paint = Painter(style.color)
    lines = Lines(report.sources)
    blocks = ["\n".join(block(f, lines, paint, style.trace)) for f in report.findings]
    blocks += ["\n".join(error(e, paint) for e in report.errors)] if report.errors else []
    return "\n\n".join([*blocks, summary(report, style.statistics)])


def heading(finding: Finding, paint: Painter) -> str:
    """Return the one line that says where and what."""
    span = finding.span
    place = paint("path", f"{relative(finding.path)}:{span.line}:{span.column}:")
    fix = f", {finding.fixable} fix" if finding.fixable else ""
    level = " warning:" if finding.severity == "warning" else ""
    code = paint(finding.severity, f"{finding.code}{level}")
    return f"{place} {code} {finding.message} {paint('fix', f'[{finding.name}{fix}]')}"


def error(problem: FileError, paint: Painter) -> str:
    """Return the one line for a file that was not analysed."""
    place = [relative(problem.path), problem.line, problem.column]
    where = ":".join(str(part) for part in place if part is not None)
    return f"{paint('path', where + ':')} {paint('error', 'error:')} {problem.message}"


def block(finding: Finding, lines: Lines, paint: Painter, full: bool) -> Iterator[str]:
    """Yield the lines that tell of one finding; `full` shows every step of its trace."""
    yield heading(finding, paint)
    if all(step.path == finding.path and step.span == finding.span for step in finding.trace):
        yield from _excerpt(finding.path, finding.span, lines, paint)
    elif full:
        for number, step in enumerate(finding.trace, 1):
            place = f"{relative(step.path)}:{step.span.line}:{step.span.column}"
            role = paint("role", f"{step.role:<9}")
            yield f"{_MARGIN}{number}. {role} {place}  {step.message}".rstrip()
            yield from _excerpt(step.path, step.span, lines, paint, _MARGIN + "   ")
    else:
        yield from _evidence(finding.trace, lines, paint)
    if finding.repair and finding.repair.reason:
        yield f"{_MARGIN}{finding.fixable} fix: {finding.repair.reason}"


def _evidence(trace: Sequence[Step], lines: Lines, paint: Painter) -> Iterator[str]:
    """One line for each step that is evidence; of many reads only the first ones."""
    shown: list[Step] = []
    reads = 0
    for step in trace:
        reads += step.role == "read"
        if step.role in _EVIDENCE and (step.role != "read" or reads <= _READS):
            shown.append(step)
    places = [f"{relative(step.path)}:{step.span.line}" for step in shown]
    width = max(map(len, places), default=0)
    for step, place in zip(shown, places, strict=True):
        source = printable(lines.get(step.path, step.span.line)).strip()
        yield f"{_MARGIN}{paint('role', f'{step.role:<9}')} {place:<{width}}  {source}"
    if reads > _READS:
        more = count(reads - _READS, "more read")
        yield f"{_MARGIN}{'':<9} and {more} (--show-trace)"


def _excerpt(
    path: Path, span: Span, lines: Lines, paint: Painter, margin: str = _MARGIN
) -> Iterator[str]:
    """The source line of a span with the span marked below it."""
    line = printable(lines.get(path, span.line))
    if not line.strip():
        return
    number = str(span.line)
    end = span.end_column if span.end_line == span.line else len(line) + 1
    before = "".join("\t" if c == "\t" else " " for c in line[: span.column - 1])
    mark = "^" * max(1, end - span.column)
    yield f"{margin}{paint('dim', number + ' |')} {line}"
    yield f"{margin}{paint('dim', ' ' * len(number) + ' |')} {before}{paint('error', mark)}"


def printable(text: str) -> str:
    """Replace control characters, which a terminal would obey."""
    return "".join(c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
