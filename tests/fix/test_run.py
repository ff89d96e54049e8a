"""A fix run: which repairs are carried out, in which order, and what is reported."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from analyst import analyse, finding, source, with_error

from aliaslint import fix
from aliaslint.findings import FileError, Repair, Result, Span
from aliaslint.fix import FixOptions, FixReport
from aliaslint.fix.apply import Edit
from aliaslint.source.files import SourceFile, split_lines

CACHE = "class Cache:\n    def update(self, n):\n        self.offset += n\n"
CAPTURE = "import mlx.core as mx\n\noffset = cache.offset\n"
COPIED = "import mlx.core as mx\n\noffset = mx.array(cache.offset)\n"
REBOUND = CACHE.replace("+= n", "= self.offset + n")


def texts(report: FixReport) -> dict[str, str]:
    return {change.after.path.name: change.after.text for change in report.changes}


def codes(report: FixReport) -> list[str]:
    return sorted(finding.code for finding in report.remaining)


def reasons(report: FixReport) -> list[str]:
    return [skipped.reason for skipped in report.skipped]


def test_auto_rebinds_and_then_has_nothing_left_to_copy() -> None:
    report = fix.run([source("cache.py", CACHE), source("model.py", CAPTURE)], analyse)

    assert texts(report) == {"cache.py": REBOUND}
    assert [applied.finding.code for applied in report.applied] == ["AL001"]
    assert report.remaining == ()
    assert report.skipped == ()


def test_what_was_found_before_is_kept_with_what_was_cured_elsewhere() -> None:
    report = fix.run([source("cache.py", CACHE), source("model.py", CAPTURE)], analyse)

    assert sorted(finding.code for finding in report.found) == ["AL001", "AL101"]


def test_auto_copies_what_rebinding_does_not_reach() -> None:
    model = CAPTURE + "setattr(cache, 'offset', 0)\n"

    report = fix.run([source("cache.py", CACHE), source("model.py", model)], analyse)

    assert texts(report) == {
        "cache.py": REBOUND,
        "model.py": COPIED + "setattr(cache, 'offset', 0)\n",
    }
    assert report.remaining == ()


def test_auto_copies_where_rebinding_is_unsafe() -> None:
    cache = CACHE.replace("+= n", "+= n  # unsafe: shared on purpose")

    report = fix.run([source("cache.py", cache), source("model.py", CAPTURE)], analyse)

    assert texts(report) == {"model.py": COPIED}
    assert codes(report) == ["AL001"]
    assert reasons(report) == ["unsafe (shared on purpose)"]


STRATEGIES = {
    "rebind": ({"cache.py": REBOUND}, []),
    "snapshot": ({"model.py": COPIED}, ["AL001"]),
    "both": ({"cache.py": REBOUND, "model.py": COPIED}, []),
}


@pytest.mark.parametrize(
    ("strategy", "expected", "remaining"),
    [(name, *case) for name, case in STRATEGIES.items()],
    ids=STRATEGIES,
)
def test_a_forced_strategy(
    strategy: fix.Strategy, expected: dict[str, str], remaining: list[str]
) -> None:
    files = [source("cache.py", CACHE), source("model.py", CAPTURE)]

    report = fix.run(files, analyse, FixOptions(strategy=strategy))

    assert texts(report) == expected
    assert codes(report) == remaining


def test_what_a_strategy_leaves_is_said() -> None:
    files = [source("cache.py", CACHE), source("model.py", CAPTURE)]

    report = fix.run(files, analyse, FixOptions(strategy="snapshot"))

    assert reasons(report) == ["not part of --strategy snapshot"]


def test_unsafe_repairs_wait_to_be_asked_for() -> None:
    file = source("cache.py", CACHE.replace("+= n", "+= n  # unsafe"))

    assert fix.run([file], analyse).changes == ()
    assert reasons(fix.run([file], analyse)) == ["unsafe"]
    assert texts(fix.run([file], analyse, FixOptions(unsafe=True))) == {
        "cache.py": REBOUND.replace("+ n", "+ n  # unsafe")
    }


def test_only_selected_codes_are_repaired() -> None:
    files = [source("cache.py", CACHE), source("model.py", CAPTURE)]

    report = fix.run(files, analyse, FixOptions(codes=frozenset({"AL101"})))

    assert texts(report) == {"model.py": COPIED}


def test_only_given_files_are_edited() -> None:
    other = source("cache.py", CACHE)

    def wider(files: Sequence[SourceFile]) -> Result:
        return analyse([*files, other])

    report = fix.run([source("model.py", CAPTURE)], wider)

    assert texts(report) == {"model.py": COPIED}
    assert reasons(report) == ["its file is not among those given"]


def test_a_division_is_left_to_the_user() -> None:
    file = source("cache.py", "self.offset /= 2\n")

    def unrepairable(files: Sequence[SourceFile]) -> Result:
        return Result([replace(f, repair=None) for f in analyse(files).findings])

    report = fix.run([file], unrepairable)

    assert report.changes == ()
    assert "`/=` on an array of integers raises" in reasons(report)[0]


def test_two_findings_of_one_statement_are_one_edit() -> None:
    def twice(files: Sequence[SourceFile]) -> Result:
        result = analyse(files)
        result.findings += [replace(f, code="AL202") for f in result.findings]
        return result

    report = fix.run([source("cache.py", CACHE)], twice)

    assert texts(report) == {"cache.py": REBOUND}
    assert [a.finding.code for a in report.applied] == ["AL001", "AL202"]


def test_storing_back_beats_rebinding() -> None:
    file = source("cache.py", "mine = self.offset\nmine += n\n")
    where = Span(2, 1, 2, 10)

    def both(files: Sequence[SourceFile]) -> Result:
        if "mine += n" not in files[0].text:
            return Result()
        back = Repair("store-back", where, "safe", owner="self.offset")
        return Result(
            [
                finding("AL202", file.path, Repair("rebind", where, "safe")),
                finding("AL004", file.path, back),
            ]
        )

    report = fix.run([file], both)

    assert texts(report) == {"cache.py": "mine = self.offset\nself.offset = mine = mine + n\n"}
    assert report.remaining == ()


def test_an_edit_that_cures_nothing_is_taken_back() -> None:
    def stubborn(files: Sequence[SourceFile]) -> Result:
        repair = Repair("snapshot", Span(3, 10, 3, 22), "safe")
        return Result([finding("AL101", files[0].path, repair)])

    report = fix.run([source("model.py", CAPTURE)], stubborn)

    assert report.changes == ()
    assert reasons(report) == ["an edit was tried, and the finding would still be there"]
    assert codes(report) == ["AL101"]


def test_an_edit_that_python_would_not_take_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """It parses: only the compiler knows that `__future__` has to come first."""

    def careless(file: SourceFile, repairs: Sequence[Repair], line_length: int) -> Edit:
        text = "import mlx.core as mx\n" + file.text
        return Edit(replace(file, text=text, data=text.encode()), {})

    monkeypatch.setattr(sys.modules["aliaslint.fix.run"], "edit", careless)
    file = source("cache.py", "from __future__ import annotations\n" + CACHE)

    report = fix.run([file], analyse)

    assert report.changes == ()
    assert reasons(report) == ["Python would not take the edited text"]


def test_an_edit_that_brings_a_finding_takes_its_file_with_it() -> None:
    def jealous(files: Sequence[SourceFile]) -> Result:
        """Finds something new in a file as soon as its update is rebound."""
        result = analyse(files)
        for file in files:
            if "self.offset = self.offset + n" in file.text:
                repair = Repair("snapshot", Span(1, 1, 1, 6), "unsafe")
                result.findings.append(finding("AL201", file.path, repair))
        return result

    files = [source("a.py", CACHE), source("b.py", CACHE.replace("n", "k"))]

    report = fix.run(files, jealous)

    assert list(texts(report)) == ["b.py"]
    assert reasons(report) == ["an edit would bring a new AL201 at a.py:1"]


def test_what_an_edit_brings_may_be_repaired_in_turn() -> None:
    file = source("cache.py", "a.offset += n\nb.size += n\n")

    def in_turn(files: Sequence[SourceFile]) -> Result:
        result = analyse(files)
        if not result.findings and "b.size += n" in files[0].text:
            repair = Repair("rebind", Span(2, 1, 2, 12), "safe")
            result.findings.append(finding("AL001", file.path, repair))
        return result

    report = fix.run([file], in_turn)

    assert texts(report) == {"cache.py": "a.offset = a.offset + n\nb.size = b.size + n\n"}
    assert report.remaining == ()


def test_an_unused_suppression_that_a_cure_leaves_is_removed() -> None:
    file = source("cache.py", "a.offset += n  # aliaslint: ignore[AL003]\n")

    def judging(files: Sequence[SourceFile]) -> Result:
        result = analyse(files)
        if not result.findings and "#" in files[0].text:
            start = files[0].text.index("#") + 1
            repair = Repair("remove-suppression", Span(1, start, 1, start + 26), "safe")
            result.findings.append(finding("AL901", file.path, repair))
        return result

    report = fix.run([file], judging)

    assert texts(report) == {"cache.py": "a.offset = a.offset + n\n"}
    assert [a.finding.code for a in report.applied] == ["AL001", "AL901"]


def test_a_run_over_what_it_wrote_changes_nothing() -> None:
    files = [source("cache.py", CACHE), source("model.py", CAPTURE + "setattr(c, 'o', 0)\n")]
    once = fix.run(files, analyse)

    again = fix.run([change.after for change in once.changes], analyse)

    assert len(once.changes) == 2
    assert again.changes == ()


def test_errors_of_the_analysis_are_passed_on_once() -> None:
    broken = FileError(Path("/project/broken.py"), 1, 1, "cannot be parsed")
    files = [source("cache.py", CACHE), source("broken.py", "def\n")]

    report = fix.run(files, with_error(broken))

    assert report.errors == (broken,)
    assert texts(report) == {"cache.py": REBOUND}


def test_the_text_of_a_file_after_the_run() -> None:
    changed, same = source("cache.py", CACHE), source("other.py", "x = 1\n")

    report = fix.run([changed, same], analyse)

    assert report.text_of(changed) == REBOUND
    assert report.text_of(same) == "x = 1\n"


def test_a_copy_that_could_be_cured_at_its_source_says_where(tmp_path: Path) -> None:
    (tmp_path / "cache.py").write_text(CACHE)
    other = source("cache.py", CACHE, tmp_path)

    def wider(files: Sequence[SourceFile]) -> Result:
        result = analyse([*files, other])
        return Result([f for f in result.findings if f.path != other.path])

    report = fix.run([source("model.py", CAPTURE, tmp_path)], wider)

    path = str(tmp_path / "cache.py")
    assert [a.hint for a in report.applied] == [f"could be cured at its source: run fix on {path}"]


@pytest.mark.parametrize("installed", ["site-packages", "dist-packages"])
def test_an_installed_package_is_not_to_be_fixed(tmp_path: Path, installed: str) -> None:
    folder = tmp_path / installed
    folder.mkdir()
    (folder / "cache.py").write_text(CACHE)
    other = source("cache.py", CACHE, folder)

    def wider(files: Sequence[SourceFile]) -> Result:
        result = analyse([*files, other])
        return Result([f for f in result.findings if f.path != other.path])

    report = fix.run([source("model.py", CAPTURE, tmp_path)], wider)

    assert [applied.hint for applied in report.applied] == [""]


def test_a_diff_has_the_line_ends_of_the_file() -> None:
    report = fix.run([source("cache.py", "x = 1\r\na.offset += n\r\n")], analyse)

    assert report.changes[0].diff("cache.py") == (
        "--- a/cache.py\n+++ b/cache.py\n@@ -1,2 +1,2 @@\n x = 1\r\n"
        "-a.offset += n\r\n+a.offset = a.offset + n\r\n"
    )


def test_a_diff_notes_a_missing_final_newline() -> None:
    report = fix.run([source("cache.py", "a.offset += n")], analyse)

    assert report.changes[0].diff("cache.py") == (
        "--- a/cache.py\n+++ b/cache.py\n@@ -1 +1 @@\n"
        "-a.offset += n\n\\ No newline at end of file\n"
        "+a.offset = a.offset + n\n\\ No newline at end of file\n"
    )


def test_what_could_not_be_written_is_not_called_fixed() -> None:
    report = fix.run([source("a.py", CACHE), source("b.py", CACHE)], analyse)

    kept = report.without([FileError(Path("/project/a.py"), None, None, "cannot be written")])

    assert list(texts(kept)) == ["b.py"]
    assert [(f.code, f.path.name) for f in kept.remaining] == [("AL001", "a.py")]


def test_the_lines_of_a_repair_are_those_of_the_file_as_it_was() -> None:
    """A hoisted owner moves what the next round copies down by a line."""
    model = "import mlx.core as mx\n\nget().offset += n\nkept = cache.offset\nsetattr(c, 'o', 0)\n"

    (change,) = fix.run([source("model.py", model)], analyse).changes

    assert change.after.text == (
        "import mlx.core as mx\n\nowner = get()\nowner.offset = owner.offset + n\n"
        "kept = mx.array(cache.offset)\nsetattr(c, 'o', 0)\n"
    )
    assert [(a.finding.span.line, a.lines) for a in change.applied] == [(3, (3, 3)), (5, (4, 4))]
    assert split_lines(change.applied[1].met.text)[4] == "kept = cache.offset"
