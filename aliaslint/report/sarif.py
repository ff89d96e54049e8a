"""SARIF 2.1.0, with the trace of a finding as a code flow.

Fingerprints hold no line numbers, so that code scanning recognises a finding after edits above
it. Findings that a comment or the baseline hides are in the log too, marked as suppressed: a
result that disappears would be taken for fixed, and reopened later.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from aliaslint import __version__
from aliaslint.findings import FileError, Finding, Span, Step
from aliaslint.report import Lines, Report, relative
from aliaslint.report.fingerprint import numbered
from aliaslint.report.render import Style
from aliaslint.rules import Rule, rules
from aliaslint.rules.page import page

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_ROOT = "%SRCROOT%"


def render(report: Report, style: Style) -> str:
    return json.dumps(document(report), indent=2)


def document(report: Report) -> dict[str, Any]:
    """Return the log as an object."""
    driver = {"name": "aliaslint", "version": __version__, "rules": [_rule(r) for r in rules()]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"uri": Path.cwd().as_uri().rstrip("/") + "/"}},
        "invocations": [_invocation(report)],
        "results": list(_results(report)),
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.what},
        "help": {"text": page(rule), "markdown": page(rule)},
        "defaultConfiguration": {"enabled": rule.default, "level": rule.severity},
    }


def _invocation(report: Report) -> dict[str, Any]:
    return {
        "executionSuccessful": not report.errors,
        "toolExecutionNotifications": [_notification(error) for error in report.errors],
    }


def _notification(error: FileError) -> dict[str, Any]:
    span = (
        Span(error.line, error.column or 1, error.line, error.column or 1) if error.line else None
    )
    place = _location(error.path, span)
    return {"level": "error", "message": {"text": error.message}, "locations": [place]}


def _results(report: Report) -> Iterator[dict[str, Any]]:
    order = {rule.code: index for index, rule in enumerate(rules())}
    everything = sorted([*report.findings, *report.hidden, *report.known], key=Finding.sort_key)
    known, hidden = set(map(id, report.known)), set(map(id, report.hidden))
    for finding, fingerprint in numbered(everything, Lines(report.sources)):
        result = _result(finding, order[finding.code], fingerprint)
        if id(finding) in hidden:
            result["suppressions"] = [{"kind": "inSource"}]
        elif id(finding) in known:
            result["suppressions"] = [{"kind": "external", "justification": "in the baseline"}]
            result["baselineState"] = "unchanged"
        elif report.has_baseline:
            result["baselineState"] = "new"
        yield result


def _result(finding: Finding, index: int, fingerprint: str) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": finding.severity,
        "message": {"text": finding.message},
        "locations": [_location(finding.path, finding.span)],
        "partialFingerprints": {"aliaslintContext/v1": fingerprint},
    }
    if finding.trace:
        steps = [{"location": _step(step), "kinds": [step.role]} for step in finding.trace]
        result["codeFlows"] = [{"threadFlows": [{"locations": steps}]}]
    return result


def _step(step: Step) -> dict[str, Any]:
    text = f"{step.role}: {step.message}" if step.message else step.role
    return {**_location(step.path, step.span), "message": {"text": text}}


def _location(path: Path, span: Span | None) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": _artifact(path)}
    if span:
        place["region"] = {
            "startLine": span.line,
            "startColumn": span.column,
            "endLine": span.end_line,
            "endColumn": span.end_column,
        }
    return {"physicalLocation": place}


def _artifact(path: Path) -> dict[str, str]:
    name = relative(path)
    if name == str(path):  # Not below the working directory.
        return {"uri": path.as_uri()}
    return {"uri": quote(os.fsencode(name)), "uriBaseId": _ROOT}
