"""JSON, the tool's own shape: `docs/schema/check.json`. A public interface: additions only."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from aliaslint import __version__
from aliaslint.findings import FileError, Finding, Step
from aliaslint.report import Report, relative
from aliaslint.report.render import Style


def render(report: Report, style: Style) -> str:
    return json.dumps(document(report), indent=2)


def document(report: Report) -> dict[str, Any]:
    """Return the report as the object that is printed."""
    by_code = Counter(finding.code for finding in report.findings)
    return {
        "version": __version__,
        "findings": [finding_object(finding) for finding in report.findings],
        "errors": [error_object(error) for error in report.errors],
        "summary": {**report.summary, "by_code": dict(sorted(by_code.items()))},
    }


def finding_object(finding: Finding) -> dict[str, Any]:
    span = finding.span
    return {
        "code": finding.code,
        "name": finding.name,
        "message": finding.message,
        "severity": finding.severity,
        "path": relative(finding.path),
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
        "fixable": finding.fixable,
        "trace": [_step(step) for step in finding.trace],
    }


def error_object(error: FileError) -> dict[str, Any]:
    return {
        "path": relative(error.path),
        "line": error.line,
        "column": error.column,
        "message": error.message,
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "role": step.role,
        "path": relative(step.path),
        "line": step.span.line,
        "column": step.span.column,
        "message": step.message,
    }
