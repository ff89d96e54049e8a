"""Workflow commands of GitHub Actions: findings become annotations of the changed files."""

from __future__ import annotations

from aliaslint.findings import FileError, Finding
from aliaslint.report import Report, relative
from aliaslint.report.render import Style


def render(report: Report, style: Style) -> str:
    return "\n".join([*map(_finding, report.findings), *map(_error, report.errors)])


def _finding(finding: Finding) -> str:
    span = finding.span
    fields = {
        "title": f"{finding.code} {finding.name}",
        "file": relative(finding.path),
        "line": span.line,
        "endLine": span.end_line,
    }
    if span.line == span.end_line:  # GitHub drops an annotation with columns over several lines.
        fields |= {"col": span.column, "endColumn": span.end_column}
    place = f"{relative(finding.path)}:{span.line}:{span.column}"
    return _command(finding.severity, fields, f"{place}: {finding.code} {finding.message}")


def _error(error: FileError) -> str:
    fields: dict[str, object] = {"title": "aliaslint", "file": relative(error.path)}
    if error.line is not None:
        fields["line"] = error.line
    return _command("error", fields, f"{relative(error.path)}: {error.message}")


def _command(level: str, fields: dict[str, object], message: str) -> str:
    properties = ",".join(f"{key}={_property(str(value))}" for key, value in fields.items())
    return f"::{level} {properties}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
