"""JUnit XML: one suite a file, one failing case a finding."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from aliaslint.findings import FileError, Finding
from aliaslint.report import Report, relative
from aliaslint.report.render import Style
from aliaslint.report.text import printable


def render(report: Report, style: Style) -> str:
    root = ElementTree.Element("testsuites", name="aliaslint")
    paths = {*report.sources, *(f.path for f in report.findings), *(e.path for e in report.errors)}
    for path in sorted(paths):
        _suite(root, path, report)
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    ElementTree.indent(root)
    header = '<?xml version="1.0" encoding="utf-8"?>\n'
    return header + ElementTree.tostring(root, encoding="unicode")


def _suite(root: ElementTree.Element, path: Path, report: Report) -> None:
    findings = [finding for finding in report.findings if finding.path == path]
    errors = [error for error in report.errors if error.path == path]
    suite = ElementTree.SubElement(root, "testsuite", name=_clean(relative(path)))
    for finding in findings:
        _failure(suite, finding)
    for error in errors:
        _error(suite, error)
    if not findings and not errors:
        _case(suite, "no findings", None)
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(len(findings)))
    suite.set("errors", str(len(errors)))


def _failure(suite: ElementTree.Element, finding: Finding) -> None:
    place = f"{relative(finding.path)}:{finding.span.line}:{finding.span.column}"
    case = _case(suite, f"{finding.code} {finding.name} ({place})", finding.span.line)
    failure = ElementTree.SubElement(
        case, "failure", type=finding.code, message=_clean(finding.message)
    )
    steps = [f"{s.role} {relative(s.path)}:{s.span.line}: {s.message}" for s in finding.trace]
    failure.text = _clean("\n".join([f"{place}: {finding.message}", *steps]))


def _error(suite: ElementTree.Element, error: FileError) -> None:
    case = _case(suite, "input", error.line)
    ElementTree.SubElement(case, "error", type="input", message=_clean(error.message))


def _case(suite: ElementTree.Element, name: str, line: int | None) -> ElementTree.Element:
    path = suite.get("name", "")
    place = {} if line is None else {"line": str(line)}
    return ElementTree.SubElement(
        suite, "testcase", {"name": _clean(name), "classname": path, "file": path, **place}
    )


def _clean(text: str) -> str:
    """Replace what XML 1.0 cannot hold."""
    return "\n".join(map(printable, text.split("\n")))
