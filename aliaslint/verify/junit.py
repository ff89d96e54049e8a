"""The report as JUnit XML: one test case an architecture, for the test tabs of CI systems."""

from __future__ import annotations

from xml.etree import ElementTree

from aliaslint.verify.model import MEANINGS, ArchitectureResult, VerifyReport

FAILURES = frozenset({"fixed", "broken"})
SKIPPED = frozenset({"unsupported", "no-power"})


def as_junit(report: VerifyReport, *, strict: bool = False) -> str:
    """XML in the form that CI systems agree on; an alias-broken tree on disk is a failure.

    With `strict` other divergences are failures too.
    """
    results = report.architectures
    failures = FAILURES | {"other-divergence"} if strict else FAILURES
    counts = {
        "tests": len(results),
        "failures": sum(r.verdict in failures for r in results),
        "errors": sum(r.verdict == "error" for r in results),
        "skipped": sum(r.verdict in SKIPPED for r in results),
    }
    root = ElementTree.Element("testsuites", {"name": "aliaslint verify"})
    numbers = {name: str(count) for name, count in counts.items()}
    name = f"verify {report.device} {report.dtype}"
    suite = ElementTree.SubElement(root, "testsuite", {"name": name, **numbers})
    for result in results:
        _case(suite, result, failures)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, "unicode") + "\n"


def _case(suite: ElementTree.Element, result: ArchitectureResult, failures: frozenset[str]) -> None:
    attributes = {
        "classname": f"aliaslint.verify.{result.architecture}",
        "name": result.title,
        "time": f"{result.seconds:.3f}",
    }
    case = ElementTree.SubElement(suite, "testcase", attributes)
    kind = _element(result, failures)
    if kind is not None:
        message = f"{result.verdict}: {MEANINGS[result.verdict]}"
        ElementTree.SubElement(case, kind, {"message": message}).text = _clean(result.reason)
    elif result.reason:
        ElementTree.SubElement(case, "system-out").text = _clean(result.reason)


def _element(result: ArchitectureResult, failures: frozenset[str]) -> str | None:
    if result.verdict in failures:
        return "failure"
    if result.verdict == "error":
        return "error"
    return "skipped" if result.verdict in SKIPPED else None


def _clean(text: str) -> str:
    """Without the control characters that XML does not admit."""
    return "".join(c for c in text if c >= " " or c in "\t\n\r")
