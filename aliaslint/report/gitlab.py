"""GitLab's Code Quality report."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from aliaslint.findings import FileError, Finding
from aliaslint.report import Lines, Report, relative
from aliaslint.report.fingerprint import numbered
from aliaslint.report.render import Style


def render(report: Report, style: Style) -> str:
    lines = Lines(report.sources)
    issues = [_finding(*pair) for pair in numbered(report.findings, lines)]
    return json.dumps(issues + [_error(error) for error in report.errors], indent=2)


def _finding(finding: Finding, fingerprint: str) -> dict[str, Any]:
    span = finding.span
    return {
        "description": f"{finding.code} {finding.message}",
        "check_name": f"{finding.code} {finding.name}",
        "fingerprint": _hash(relative(finding.path), fingerprint),
        "severity": "major" if finding.severity == "error" else "minor",
        "location": {
            "path": relative(finding.path),
            "lines": {"begin": span.line, "end": span.end_line},
        },
    }


def _error(error: FileError) -> dict[str, Any]:
    return {
        "description": error.message,
        "check_name": "input",
        "fingerprint": _hash(relative(error.path), error.message),
        "severity": "blocker",
        "location": {"path": relative(error.path), "lines": {"begin": error.line or 1}},
    }


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
