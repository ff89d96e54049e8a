"""The rules: complete, documented, and selected as ruff's users expect."""

from __future__ import annotations

import pkgutil
import string
from pathlib import Path

import pytest

from aliaslint import rules
from aliaslint.findings import Span
from aliaslint.rules import Rule, Selection, UnknownRule
from aliaslint.rules.page import page

DEFAULT = [
    "AL001",
    "AL003",
    "AL004",
    "AL101",
    "AL201",
    "AL202",
    "AL301",
    "AL302",
    "AL303",
    "AL901",
    "AL902",
]
OFF = ["AL002", "AL102", "AL304"]
EVERY = pytest.mark.parametrize("rule", rules.rules(), ids=lambda rule: rule.code)


def test_every_module_is_a_rule() -> None:
    names = [m.name for m in pkgutil.iter_modules(rules.__path__) if m.name.startswith("al")]
    assert [rule.code.lower() for rule in rules.rules()] == sorted(names)


def test_what_is_on_by_default() -> None:
    assert sorted(rules.select([])) == DEFAULT
    assert sorted({rule.code for rule in rules.rules()} - set(DEFAULT)) == OFF


def test_names_are_unique() -> None:
    names = [rule.name for rule in rules.rules()]
    assert len(set(names)) == len(names)


@EVERY
def test_messages_are_one_line_and_can_be_filled(rule: Rule) -> None:
    fields = {name for _, name, _, _ in string.Formatter().parse(rule.message) if name}
    finding = rule.finding(Path("/a.py"), Span(1, 1, 1, 2), **dict.fromkeys(fields, "x"))
    assert "\n" not in finding.message
    assert (finding.code, finding.name, finding.severity) == (rule.code, rule.name, rule.severity)


@EVERY
def test_pages_have_their_sections_in_order(rule: Rule) -> None:
    titles = [line[3:] for line in page(rule).splitlines() if line.startswith("## ")]
    order = [
        "What it does",
        "Why is this bad?",
        "Known problems",
        "Example",
        "Use instead",
        "Fix safety",
    ]
    assert titles == [title for title in order if title in titles]
    assert {"What it does", "Why is this bad?", "Example", "Use instead"} <= set(titles)
    assert ("Fix safety" in titles) == bool(rule.fix)


@EVERY
def test_examples_are_of_their_language(rule: Rule) -> None:
    if rule.language == "python":
        wrapped = "def f():\n" + "".join(f"    {line}\n" for line in rule.example.splitlines())
        compile(wrapped, rule.code, "exec")
    else:
        assert "=" in rule.example


@pytest.mark.parametrize("text", ["AL101", "al101", "stale-capture", "Stale-Capture"])
def test_looks_up_codes_and_names(text: str) -> None:
    assert rules.lookup(text).code == "AL101"


@pytest.mark.parametrize(
    ("selector", "codes"),
    [
        ("AL101", ["AL101"]),
        ("al10", ["AL101", "AL102"]),
        ("AL1", ["AL101", "AL102"]),
        ("shared-handle", ["AL201"]),
        (" AL9 ", ["AL901", "AL902"]),
    ],
)
def test_selectors_are_codes_prefixes_and_names(selector: str, codes: list[str]) -> None:
    assert sorted(rules.matching(selector)) == codes


def test_all_is_everything() -> None:
    assert rules.matching("ALL") == {rule.code for rule in rules.rules()}


@pytest.mark.parametrize(
    ("selector", "suggestion"),
    [
        ("AL105", "; did you mean AL102?"),
        ("stale-captures", "; did you mean stale-capture?"),
        ("E501", " (`aliaslint rules` lists them)"),
        ("A", " (`aliaslint rules` lists them)"),
        ("", " (`aliaslint rules` lists them)"),
    ],
)
def test_an_unknown_selector_is_an_error_with_a_suggestion(selector: str, suggestion: str) -> None:
    with pytest.raises(UnknownRule) as caught:
        rules.matching(selector)
    assert str(caught.value) == f"unknown rule selector {selector!r}{suggestion}"


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        pytest.param([Selection(select=("AL1",))], ["AL101", "AL102"], id="select replaces"),
        pytest.param(
            [Selection(select=("AL1",), ignore=("AL102",))], ["AL101"], id="ignore takes away"
        ),
        pytest.param(
            [Selection(select=("AL102",), ignore=("AL1",))],
            ["AL102"],
            id="the longer selector wins",
        ),
        pytest.param([Selection(select=("AL101",), ignore=("AL101",))], [], id="ignore wins a tie"),
        pytest.param(
            [Selection(select=("ALL",), ignore=("AL0", "AL2", "AL3", "AL9"))],
            ["AL101", "AL102"],
            id="ALL is the shortest",
        ),
        pytest.param(
            [Selection(extend_select=("AL102",), ignore=("AL0", "AL2", "AL3", "AL9"))],
            ["AL101", "AL102"],
            id="extend-select adds to the defaults",
        ),
        pytest.param(
            [Selection(select=("AL1",)), Selection(select=("AL2",))],
            ["AL201", "AL202"],
            id="select of a later layer replaces",
        ),
        pytest.param(
            [Selection(select=("AL1",)), Selection(ignore=("AL102",))],
            ["AL101"],
            id="a later layer changes an earlier one",
        ),
        pytest.param(
            [Selection(ignore=("AL102",)), Selection(select=("AL1",))],
            ["AL101"],
            id="ignore of a layer without select is carried over",
        ),
        pytest.param(
            [Selection(select=("AL2",), ignore=("AL102",)), Selection(select=("AL1",))],
            ["AL101", "AL102"],
            id="ignore of a layer with select is not",
        ),
    ],
)
def test_selection_is_that_of_ruff(layers: list[Selection], expected: list[str]) -> None:
    assert sorted(rules.select(layers)) == expected
