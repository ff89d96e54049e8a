"""Every format on one report: a traced error, an unfixable warning, an error of input."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import jsonschema
import pytest
from referencing import Registry, Resource

from aliaslint.findings import FileError, Finding, Repair, Span, Step
from aliaslint.report import Report
from aliaslint.report.render import FORMATS, Style, render
from aliaslint.source.files import SourceFile, from_bytes

SCHEMAS = Path(__file__).parents[2] / "docs" / "schema"
MODEL = """\
class Attention:
    def __call__(self, x, cache):
        offset = cache.offset
        keys, values = cache.update_and_fetch(x, x)
        return self.rope(x, offset=offset)
"""
CACHE = """\
class Cache:
    def update_and_fetch(self, keys, values):
        self.offset += keys.shape[2]
        return keys, values
"""


START = Span(1, 1, 1, 2)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def source(path: Path, text: str) -> SourceFile:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    loaded = from_bytes(path, text.encode())
    assert isinstance(loaded, SourceFile)
    return loaded


def traced(model: Path, cache: Path, reads: int = 1) -> Finding:
    trace = (
        Step("capture", model, Span(3, 18, 3, 30), "the live array of `cache.offset`"),
        Step("call", model, Span(4, 24, 4, 52), "calls `Cache.update_and_fetch`"),
        Step("mutation", cache, Span(3, 9, 3, 37), "updates `self.offset` in place"),
        *(Step("read", model, Span(5, 36, 5, 42), "reads `offset`") for _ in range(reads)),
    )
    span = Span(3, 18, 3, 30)
    repair = Repair("snapshot", span, "safe", "an int cache would give the same result")
    message = "`offset` is the live array of `cache.offset`, not a copy"
    return Finding("AL101", "stale-capture", message, "error", model, span, trace, repair)


def plain(file: SourceFile, span: Span = START) -> Finding:
    return Finding("AL202", "aliased-operand", "m", "error", file.path, span)


@pytest.fixture
def report(place: Path) -> Report:
    model = source(place / "models" / "a b.py", MODEL)
    cache = source(place / "cache.py", CACHE)
    project = place / "pyproject.toml"
    project.write_text('[tool.ruff.lint]\nselect = ["PLR6104"]\n', encoding="utf-8")
    message = "`PLR6104` selects what undoes fixes: 100%, sure"
    warning = Finding(
        "AL902", "fix-reverting-rule", message, "warning", project, Span(2, 11, 2, 20)
    )
    return Report(
        findings=[traced(model.path, cache.path), warning],
        errors=[FileError(place / "bad.py", 7, 2, "invalid syntax")],
        summary={
            "files": 2,
            "unresolved": 1,
            "dependencies": [
                {"name": "mlx_lm", "version": "0.31.3", "kind": "table", "origin": "locked"}
            ],
            "findings": 2,
            "errors": 1,
            "safe_fixes": 1,
            "unsafe_fixes": 0,
            "suppressed": 0,
            "baselined": 0,
        },
        sources={file.path: file for file in (model, cache)},
    )


# Text


def test_text_shows_the_evidence(report: Report) -> None:
    assert render(report, "text", Style()) == (
        "models/a b.py:3:18: AL101 `offset` is the live array of `cache.offset`, not a copy "
        "[stale-capture, safe fix]\n"
        "    capture   models/a b.py:3  offset = cache.offset\n"
        "    mutation  cache.py:3       self.offset += keys.shape[2]\n"
        "    read      models/a b.py:5  return self.rope(x, offset=offset)\n"
        "    safe fix: an int cache would give the same result\n"
        "\n"
        "pyproject.toml:2:11: AL902 warning: `PLR6104` selects what undoes fixes: 100%, sure "
        "[fix-reverting-rule]\n"
        '    2 | select = ["PLR6104"]\n'
        "      |           ^^^^^^^^^\n"
        "\n"
        "bad.py:7:2: error: invalid syntax\n"
        "\n"
        "Found 1 error, 1 warning, 1 problem with input in 2 files. "
        "1 fixable with `aliaslint fix`.\n"
        "mlx_lm 0.31.3: locked.\n"
    )


def test_text_with_traces_shows_every_step(report: Report) -> None:
    shown = render(report, "text", Style(trace=True)).split("\n\n")[0]
    assert shown.splitlines()[1:] == [
        "    1. capture   models/a b.py:3:18  the live array of `cache.offset`",
        "       3 |         offset = cache.offset",
        "         |                  ^^^^^^^^^^^^",
        "    2. call      models/a b.py:4:24  calls `Cache.update_and_fetch`",
        "       4 |         keys, values = cache.update_and_fetch(x, x)",
        "         |                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
        "    3. mutation  cache.py:3:9  updates `self.offset` in place",
        "       3 |         self.offset += keys.shape[2]",
        "         |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
        "    4. read      models/a b.py:5:36  reads `offset`",
        "       5 |         return self.rope(x, offset=offset)",
        "         |                                    ^^^^^^",
        "    safe fix: an int cache would give the same result",
    ]


def test_text_counts_the_reads_that_it_leaves_out(report: Report) -> None:
    model, cache = sorted(report.sources, reverse=True)
    report.findings = [traced(model, cache, reads=5)]
    lines = render(report, "text", Style()).splitlines()
    assert sum(line.startswith("    read ") for line in lines) == 3
    assert "              and 2 more reads (--show-trace)" in lines


def test_text_has_colour_only_on_request(report: Report) -> None:
    assert "\x1b" not in render(report, "text", Style())
    coloured = render(report, "text", Style(color=True))
    assert "\x1b[31;1mAL101\x1b[0m" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == render(report, "text", Style())


def test_text_replaces_control_characters(place: Path, report: Report) -> None:
    evil = source(place / "evil.py", "x = '\x1b[2J'\n")
    report.findings = [
        Finding("AL901", "unused-suppression", "m", "error", evil.path, Span(1, 1, 1, 2))
    ]
    assert "\x1b" not in render(report, "text", Style())


def test_text_marks_below_tabs(place: Path, report: Report) -> None:
    tabs = source(place / "tabs.py", "\tx += 1\n")
    report.findings = [plain(tabs, Span(1, 2, 1, 8))]
    lines = render(report, "text", Style()).splitlines()
    assert lines[1:3] == ["    1 | \tx += 1", "      | \t^^^^^^"]


def test_concise_is_one_line_a_finding(report: Report) -> None:
    assert render(report, "concise", Style()).splitlines()[:3] == [
        "models/a b.py:3:18: AL101 `offset` is the live array of `cache.offset`, not a copy "
        "[stale-capture, safe fix]",
        "pyproject.toml:2:11: AL902 warning: `PLR6104` selects what undoes fixes: 100%, sure "
        "[fix-reverting-rule]",
        "bad.py:7:2: error: invalid syntax",
    ]


# JSON


def validate(document: Any, name: str) -> None:
    schemas = {path.name: json.loads(path.read_text("utf-8")) for path in SCHEMAS.glob("*.json")}
    registry: Registry[Any] = Registry().with_resources(
        (schema["$id"], Resource.from_contents(schema))
        for schema in schemas.values()
        if "$id" in schema
    )
    validator = jsonschema.Draft202012Validator(schemas[name], registry=registry)
    validator.validate(document)


def test_json_has_the_public_shape(report: Report) -> None:
    document = json.loads(render(report, "json", Style()))
    validate(document, "check.json")
    assert list(document) == ["version", "findings", "errors", "summary"]
    assert document["findings"][0] == {
        "code": "AL101",
        "name": "stale-capture",
        "message": "`offset` is the live array of `cache.offset`, not a copy",
        "severity": "error",
        "path": "models/a b.py",
        "line": 3,
        "column": 18,
        "end_line": 3,
        "end_column": 30,
        "fixable": "safe",
        "trace": [
            {
                "role": "capture",
                "path": "models/a b.py",
                "line": 3,
                "column": 18,
                "message": "the live array of `cache.offset`",
            },
            {
                "role": "call",
                "path": "models/a b.py",
                "line": 4,
                "column": 24,
                "message": "calls `Cache.update_and_fetch`",
            },
            {
                "role": "mutation",
                "path": "cache.py",
                "line": 3,
                "column": 9,
                "message": "updates `self.offset` in place",
            },
            {
                "role": "read",
                "path": "models/a b.py",
                "line": 5,
                "column": 36,
                "message": "reads `offset`",
            },
        ],
    }
    assert document["errors"] == [
        {"path": "bad.py", "line": 7, "column": 2, "message": "invalid syntax"}
    ]
    assert document["summary"]["by_code"] == {"AL101": 1, "AL902": 1}


def test_schemas_refuse_what_is_not_public_shape(report: Report) -> None:
    document = json.loads(render(report, "json", Style()))
    document["findings"][0]["severity"] = "fatal"
    with pytest.raises(jsonschema.ValidationError):
        validate(document, "check.json")


@pytest.mark.parametrize("path", sorted(SCHEMAS.glob("*.json")), ids=lambda path: path.name)
def test_schemas_are_schemas(path: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(path.read_text("utf-8")))


def test_rules_json_has_the_public_shape() -> None:
    from click.testing import CliRunner

    from aliaslint.cli.main import cli

    output = CliRunner().invoke(cli, ["rules", "--output-format", "json"]).stdout
    validate(json.loads(output), "rules.json")


# SARIF


def sarif(report: Report) -> dict[str, Any]:
    log = json.loads(render(report, "sarif", Style()))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert isinstance(run, dict)
    return run


def test_sarif_points_below_the_source_root(place: Path, report: Report) -> None:
    run = sarif(report)
    root = run["originalUriBaseIds"]["%SRCROOT%"]["uri"]
    physical = run["results"][0]["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"] == {"uri": "models/a%20b.py", "uriBaseId": "%SRCROOT%"}
    assert unquote(root.removeprefix("file://")) == f"{place}/"
    assert physical["region"] == {"startLine": 3, "startColumn": 18, "endLine": 3, "endColumn": 30}
    assert run["columnKind"] == "unicodeCodePoints"


def test_sarif_names_files_elsewhere_in_full(
    report: Report, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = source(tmp_path_factory.mktemp("elsewhere") / "c.py", "x\n")
    report.findings = [plain(outside)]
    physical = sarif(report)["results"][0]["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"] == {"uri": outside.path.as_uri()}


def test_sarif_has_the_trace_as_a_code_flow(report: Report) -> None:
    (flow,) = sarif(report)["results"][0]["codeFlows"]
    (thread,) = flow["threadFlows"]
    steps = [
        (
            step["kinds"],
            step["location"]["physicalLocation"]["artifactLocation"]["uri"],
            step["location"]["message"]["text"],
        )
        for step in thread["locations"]
    ]
    assert steps == [
        (["capture"], "models/a%20b.py", "capture: the live array of `cache.offset`"),
        (["call"], "models/a%20b.py", "call: calls `Cache.update_and_fetch`"),
        (["mutation"], "cache.py", "mutation: updates `self.offset` in place"),
        (["read"], "models/a%20b.py", "read: reads `offset`"),
    ]


def test_sarif_refers_to_its_rules(report: Report) -> None:
    run = sarif(report)
    declared = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert declared[result["ruleIndex"]]["id"] == result["ruleId"]
    assert [result["level"] for result in run["results"]] == ["error", "warning"]


def test_sarif_tells_of_files_that_were_not_analysed(report: Report) -> None:
    (invocation,) = sarif(report)["invocations"]
    assert invocation["executionSuccessful"] is False
    (note,) = invocation["toolExecutionNotifications"]
    assert note["message"]["text"] == "invalid syntax"


def test_sarif_keeps_what_is_hidden(report: Report) -> None:
    first, second = report.findings
    report.findings, report.hidden, report.known = [], [first], [second]
    report.has_baseline = True
    results = sarif(report)["results"]
    assert [result["suppressions"][0]["kind"] for result in results] == ["inSource", "external"]
    assert results[1]["baselineState"] == "unchanged"


def test_sarif_states_what_is_new_beside_a_baseline(report: Report) -> None:
    assert "baselineState" not in sarif(report)["results"][0]
    report.has_baseline = True
    assert sarif(report)["results"][0]["baselineState"] == "new"


def fingerprints(report: Report) -> list[str]:
    return [
        result["partialFingerprints"]["aliaslintContext/v1"] for result in sarif(report)["results"]
    ]


def moved(report: Report, text: str, line: int) -> list[str]:
    """Return the fingerprints after the model's text has changed."""
    old = next(path for path in report.sources if path.name == "a b.py")
    file = source(old, text)
    finding = report.findings[0]
    span = Span(line, 18, line, 30)
    report.findings = [
        Finding(finding.code, finding.name, finding.message, "error", old, span, finding.trace)
    ]
    report.sources = {old: file}
    return fingerprints(report)


def test_fingerprints_survive_edits_elsewhere(report: Report) -> None:
    before = fingerprints(report)[:1]
    assert moved(report, "import os\n\n\n" + MODEL.replace("rope", "roped"), 6) == before


def test_fingerprints_tell_statements_and_scopes_apart(report: Report) -> None:
    before = fingerprints(report)[:1]
    assert moved(report, MODEL.replace("offset = cache", "start = cache"), 3) != before
    assert moved(report, MODEL.replace("__call__", "forward"), 3) != before


def test_fingerprints_of_like_findings_differ(report: Report) -> None:
    report.findings = [report.findings[0], report.findings[0]]
    first, second = fingerprints(report)
    assert first != second


# GitHub, GitLab, JUnit


def test_github_writes_commands(report: Report) -> None:
    assert render(report, "github", Style()).splitlines() == [
        "::error title=AL101 stale-capture,file=models/a b.py,line=3,endLine=3,col=18,"
        "endColumn=30::models/a b.py:3:18: AL101 `offset` is the live array of `cache.offset`, "
        "not a copy",
        "::warning title=AL902 fix-reverting-rule,file=pyproject.toml,line=2,endLine=2,col=11,"
        "endColumn=20::pyproject.toml:2:11: AL902 `PLR6104` selects what undoes fixes: 100%25, "
        "sure",
        "::error title=aliaslint,file=bad.py,line=7::bad.py: invalid syntax",
    ]


def test_github_escapes_properties(place: Path, report: Report) -> None:
    odd = source(place / "a,b:c%.py", "x\n")
    report.findings = [plain(odd)]
    assert "file=a%2Cb%3Ac%25.py," in render(report, "github", Style())


def test_gitlab_has_unique_fingerprints_without_lines(report: Report) -> None:
    report.findings.append(report.findings[0])
    issues = json.loads(render(report, "gitlab", Style()))
    assert len({issue["fingerprint"] for issue in issues}) == len(issues) == 4
    assert issues[0]["location"] == {"path": "models/a b.py", "lines": {"begin": 3, "end": 3}}
    assert [issue["severity"] for issue in issues] == ["major", "minor", "major", "blocker"]


def test_junit_counts_and_places(report: Report) -> None:
    root = ElementTree.fromstring(render(report, "junit", Style()))
    assert {name: root.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "4",
        "failures": "2",
        "errors": "1",
    }
    suites = {suite.get("name"): suite for suite in root}
    assert list(suites) == ["bad.py", "cache.py", "models/a b.py", "pyproject.toml"]
    case = suites["models/a b.py"][0]
    assert (case.get("file"), case.get("line")) == ("models/a b.py", "3")
    failure = case.find("failure")
    assert failure is not None
    assert (failure.text or "").splitlines()[1:] == [
        "capture models/a b.py:3: the live array of `cache.offset`",
        "call models/a b.py:4: calls `Cache.update_and_fetch`",
        "mutation cache.py:3: updates `self.offset` in place",
        "read models/a b.py:5: reads `offset`",
    ]
    assert suites["cache.py"][0].get("name") == "no findings"


def test_junit_replaces_what_xml_cannot_hold(report: Report) -> None:
    finding = report.findings[1]
    report.findings = [
        Finding("AL902", finding.name, "bad \x00 <tag>", "warning", finding.path, finding.span)
    ]
    root = ElementTree.fromstring(render(report, "junit", Style()))
    messages = [failure.get("message") for failure in root.iter("failure")]
    assert messages == ["bad \N{REPLACEMENT CHARACTER} <tag>"]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_takes_a_path_that_is_not_unicode(
    place: Path, report: Report, name: str
) -> None:
    path = place / os.fsdecode(b"\xff.py")
    report.findings = [Finding("AL202", "aliased-operand", "m", "error", path, START)]
    text = render(report, name, Style())
    assert text.encode("utf-8", "backslashreplace")


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_takes_an_empty_report(place: Path, name: str) -> None:
    text = render(Report(summary={"files": 0}), name, Style())
    assert text == "" or text.endswith("\n")
