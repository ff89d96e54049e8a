"""The last lines of a text report: how many, how fixable, what the result rests on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from aliaslint.report import Report


def summary(report: Report, statistics: bool) -> str:
    """Return the closing lines of a text report."""
    return "\n".join([*(_statistics(report) if statistics else ()), *_closing(report)])


def _closing(report: Report) -> Iterator[str]:
    number = int(str(report.summary.get("files", 0)))
    # No path gave a file: that is the problem, and not how many there were.
    files = f" in {count(number, 'file')}" if number or not report.errors else ""
    yield f"{_found(report)}{files}.{_fixable(report)}"
    for number, what in ((len(report.hidden), "by comments"), (len(report.known), "by baseline")):
        if number:
            yield f"{count(number, 'finding')} hidden {what}."
    if report.stale:
        stale = count(report.stale, "baseline entry", "baseline entries")
        yield f"{stale} no longer found: run again with --write-baseline."
    yield from _dependencies(report)


def _found(report: Report) -> str:
    levels = Counter(finding.severity for finding in report.findings)
    parts = [count(levels[level], level) for level in ("error", "warning") if levels[level]]
    if report.errors:
        parts.append(count(len(report.errors), "problem") + " with input")
    return "Found " + ", ".join(parts) if parts else "No findings"


def _fixable(report: Report) -> str:
    levels = Counter(finding.fixable for finding in report.findings)
    parts = []
    if levels["safe"]:
        parts.append(f"{levels['safe']} fixable with `aliaslint fix`")
    if levels["unsafe"]:
        parts.append(f"{levels['unsafe']} with `--unsafe-fixes`")
    return f" {', '.join(parts)}." if parts else ""


def _dependencies(report: Report) -> Iterator[str]:
    dependencies = report.summary.get("dependencies")
    for entry in dependencies if isinstance(dependencies, list) else ():
        if not isinstance(entry, dict):
            continue
        if entry.get("hint"):
            yield f"{entry['hint']}."
        else:
            version = f" {entry['version']}" if entry.get("version") else ""
            yield f"{entry.get('name')}{version}: {entry.get('origin')}."


def _statistics(report: Report) -> Iterator[str]:
    codes = Counter((f.code, f.name, f.fixable or "") for f in report.findings)
    for (code, name, fixable), number in sorted(codes.items()):
        yield f"{number:>5}  {code}  {name:<28}{fixable and f'{fixable} fix'}".rstrip()
    yield f"{report.summary.get('unresolved', 0):>5}  calls not resolved"
    yield ""


def count(number: int, one: str, many: str = "") -> str:
    """Return "1 file", "2 files"."""
    return f"{number} {one if number == 1 else many or one + 's'}"
