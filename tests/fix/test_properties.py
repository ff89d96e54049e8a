"""What holds for every fix of every fixture, with the real analysis."""

from __future__ import annotations

import ast
import difflib
import io
import shutil
import sys
import tokenize
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aliaslint import fix
from aliaslint.analysis import AnalysisOptions, analyse
from aliaslint.findings import Repair, Result
from aliaslint.fix import FixOptions, FixReport
from aliaslint.source.files import SourceFile, read

sys.path.append(str(Path(__file__).parents[1] / "fixtures"))
from fixture_loader import Fixture, collect, expected_findings, run_demo

STRATEGIES: list[fix.Strategy] = ["auto", "snapshot"]
_JUDGED_BY_THE_ENGINE = ("AL3", "AL9")
_UPDATES = ("AL001", "AL002")  # They harm nobody when every capture is a copy.
_CAPTURES = ("AL101", "AL102", "AL201")
# Captures that the analysis does not find, and so nobody copies.
_MISSED = {("AL101/flag/factories_and_types", "snapshot")}
PROGRAMS = [
    f
    for f in collect("flag") + collect("fix")
    if not f.rule.startswith(_JUDGED_BY_THE_ENGINE) and not f.path.stem.endswith(".fixed")
]
CLEAN = [
    f
    for f in collect("clean")
    if not f.rule.startswith(_JUDGED_BY_THE_ENGINE) and not expected_findings(f)
]


def sources(paths: Sequence[Path]) -> list[SourceFile]:
    return [source for path in paths if isinstance(source := read(path), SourceFile)]


def fixed(fixture: Fixture, files: Sequence[SourceFile], strategy: fix.Strategy) -> FixReport:
    """Fix all that can be fixed, unsafe repairs and rules that are off by default included."""
    options = AnalysisOptions(dependency_roots=fixture.dependencies)

    def analysis(edited: Sequence[SourceFile]) -> Result:
        return analyse(edited, options)

    return fix.run(files, analysis, FixOptions(strategy=strategy, unsafe=True))


def after(report: FixReport, files: Sequence[SourceFile]) -> list[SourceFile]:
    edited = {change.before.path: change.after for change in report.changes}
    return [edited.get(file.path, file) for file in files]


def tokens(text: str, kind: int) -> list[str]:
    stream = tokenize.generate_tokens(io.StringIO(text).readline)
    return [token.string for token in stream if token.type == kind]


@pytest.fixture(scope="module")
def reports() -> dict[tuple[str, str], FixReport]:
    """Each fixture is fixed once a strategy; the tests look at what came out."""
    return {
        (fixture.name, strategy): fixed(fixture, sources(fixture.files), strategy)
        for fixture in PROGRAMS
        for strategy in STRATEGIES
    }


Reports = dict[tuple[str, str], FixReport]
every_strategy = pytest.mark.parametrize("strategy", STRATEGIES)
every_program = pytest.mark.parametrize("fixture", PROGRAMS, ids=lambda f: f.name)


@every_strategy
@every_program
def test_the_result_parses(reports: Reports, fixture: Fixture, strategy: str) -> None:
    for change in reports[fixture.name, strategy].changes:
        assert ast.parse(change.after.text)
        assert change.after.text.encode(change.after.encoding) == change.after.data


@every_strategy
@every_program
def test_fixing_twice_is_fixing_once(
    reports: Reports, fixture: Fixture, strategy: fix.Strategy
) -> None:
    edited = after(reports[fixture.name, strategy], sources(fixture.files))

    assert fixed(fixture, edited, strategy).changes == ()


@every_strategy
@every_program
def test_comments_survive(reports: Reports, fixture: Fixture, strategy: str) -> None:
    for change in reports[fixture.name, strategy].changes:
        before = tokens(change.before.text, tokenize.COMMENT)
        assert tokens(change.after.text, tokenize.COMMENT) == before


@every_strategy
@every_program
def test_only_planned_tokens_change(reports: Reports, fixture: Fixture, strategy: str) -> None:
    """What differs stands on the lines of a repair, is put beside them, or is an import."""
    for change in reports[fixture.name, strategy].changes:
        planned = {n for a in change.applied for n in range(a.lines[0], a.lines[1] + 1)}
        old, new = token_lines(change.before.text), token_lines(change.after.text)
        matcher = difflib.SequenceMatcher(
            None, [words for _, words in old], [words for _, words in new], autojunk=False
        )
        for tag, i, j, m, n in matcher.get_opcodes():
            beside = [old[i : j + 1], old[max(i - 1, 0) : j]] if tag == "insert" else [old[i:j]]
            if tag != "equal" and not all(is_import(words) for _, words in new[m:n]):
                assert any({line for line, _ in lines} <= planned for lines in beside), new[m:n]


def token_lines(text: str) -> list[tuple[int, tuple[str, ...]]]:
    """Return the tokens of each line of a program that has any, with its number."""
    found: dict[int, list[str]] = {}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.string.strip():
            found.setdefault(token.start[0], []).append(token.string)
    return [(line, tuple(words)) for line, words in found.items()]


def is_import(words: Sequence[str]) -> bool:
    """Whether a line is the import that a copy needs."""
    return " ".join(words) in ("import mlx . core as mx", "import copy")


@every_program
def test_no_safe_repair_is_left(reports: Reports, fixture: Fixture) -> None:
    left = [f for f in reports[fixture.name, "auto"].remaining if f.fixable == "safe"]

    assert [(f.code, f.path.name, f.span.line) for f in left] == []


@every_strategy
@every_program
def test_what_the_analysis_offers_can_be_carried_out(
    reports: Reports, fixture: Fixture, strategy: str
) -> None:
    skipped = reports[fixture.name, strategy].skipped
    reasons = {s.reason for s in skipped if s.reason != s.finding.obstacle}

    assert {r for r in reasons if not r.startswith(("not part of --strategy", "`/=` on"))} == set()


@pytest.mark.parametrize("fixture", CLEAN, ids=lambda f: f.name)
def test_a_clean_program_stays_as_it_is(fixture: Fixture) -> None:
    assert fixed(fixture, sources(fixture.files), "auto").changes == ()


@every_strategy
@every_program
def test_a_program_without_findings_means_what_it_should(
    reports: Reports, fixture: Fixture, strategy: str, tmp_path: Path
) -> None:
    mx = pytest.importorskip("mlx.core")
    report = reports[fixture.name, strategy]
    harmless = _UPDATES if fixture.rule in _CAPTURES else ()
    if any(f.severity == "error" and f.code not in harmless for f in report.remaining):
        pytest.skip("something is left that cannot be fixed in the program itself")
    if any(_keeps_an_update(a.finding.repair) for a in report.applied):
        pytest.skip("by design the owner keeps, or loses, the update that was made to it")
    copy = _copied(fixture, tmp_path)
    for change in report.changes:
        relative = change.after.path.relative_to(fixture.path.parent)
        (tmp_path / relative).write_bytes(change.after.data)

    class Cache:
        """What a program is given that does not say which cache it is used with."""

        def __init__(self, padding: list[int]) -> None:
            self.offset = mx.array([-p for p in padding])

        def update_and_fetch(self, *arrays: Any) -> Any:
            self.offset += 1
            return arrays[0] if len(arrays) == 1 else arrays

    intended, observed = run_demo(copy, Cache)

    assert (intended == observed) is ((fixture.name, strategy) not in _MISSED)


def _keeps_an_update(repair: Repair | None) -> bool:
    assert repair is not None
    return repair.action == "store-back" or (repair.action, repair.safety) == ("rebind", "unsafe")


def _copied(fixture: Fixture, folder: Path) -> Fixture:
    """Copy a program, so that its edited files can stand in it."""
    if fixture.path.is_dir():
        shutil.copytree(fixture.path, folder / fixture.path.name)
    else:
        for path in fixture.path.parent.glob(f"{fixture.path.stem}*.py"):
            shutil.copy(path, folder)
    return replace(fixture, path=folder / fixture.path.name)
