"""The table of releases with stale captures: how it is made, stored and asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from aliaslint.program import stale_captures
from benchmarks import stale_captures as generator


def finding(path: Path, line: int, code: str = "AL101", read: int = 9) -> dict[str, Any]:
    steps = [{"role": "capture", "line": line}, {"role": "read", "line": read}]
    return {"code": code, "path": str(path), "line": line, "trace": steps}


def test_captures_are_relative_to_the_package_and_in_order(tmp_path: Path) -> None:
    root = tmp_path / "mlx_lm"
    report = {"findings": [finding(root / "models" / "b.py", 7), finding(root / "a.py", 3)]}
    assert generator.captures(report, root) == [
        {"path": "a.py", "line": 3, "code": "AL101", "read": 9},
        {"path": "models/b.py", "line": 7, "code": "AL101", "read": 9},
    ]


def test_findings_of_other_rules_are_left_out(tmp_path: Path) -> None:
    others = [finding(tmp_path / "a.py", 3, code) for code in ("AL102", "AL201")]
    report = {"findings": others}
    assert generator.captures(report, tmp_path) == []


def test_report_is_made_by_check(tmp_path: Path) -> None:
    root = tmp_path / "mlx_lm"
    root.mkdir()
    (root / "__init__.py").write_text("offset = 1\n")
    assert generator.checked(root)["summary"]["files"] == 1


def test_check_without_a_report_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.aliaslint]\nunknown = 1\n")
    (tmp_path / "a.py").write_text("")
    with pytest.raises(generator.CheckFailed, match="unknown key"):
        generator.checked(tmp_path)


def test_releases_are_added_in_order() -> None:
    old = {"tool": "0", "releases": {"0.31.3": {"digest": "a", "captures": []}}}
    table = generator.merged(old, {"0.9.0": {"digest": "b", "captures": []}})
    assert list(table["releases"]) == ["0.9.0", "0.31.3"]


def test_text_of_a_table_is_its_json(tmp_path: Path) -> None:
    found = generator.captures({"findings": [finding(tmp_path / "a.py", 3)]}, tmp_path)
    entries = {"1.0": {"digest": "a", "captures": found}, "1.1": {"digest": "b", "captures": []}}
    table = generator.merged({"releases": {}}, entries)
    assert json.loads(generator.text_of(table)) == table


def test_digest_changes_with_name_and_content_of_python_files_alone(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    first = stale_captures.digest(tmp_path)
    (tmp_path / "a.txt").write_text("2")
    assert stale_captures.digest(tmp_path) == first
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    assert stale_captures.digest(tmp_path) != first


def test_package_without_a_table_has_no_releases() -> None:
    assert stale_captures.releases("nothing") == ()
    assert stale_captures.places("nothing", "1.0") == ()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["0.31.3"], ["0.31.3"]),
        (["0.30.6..0.31.1"], ["0.30.6", "0.30.7", "0.31.0", "0.31.1"]),
        (["0.99.0", "0.32.2"], ["0.99.0", "0.32.2"]),
        (["0.27..0.28.0"], ["0.27.0", "0.27.1", "0.28.0"]),
        (["0.40..0.50"], []),
    ],
)
def test_words_stand_for_releases(words: list[str], expected: list[str]) -> None:
    assert list(generator.wanted(words)) == expected


def test_all_are_the_releases_with_caches_for_batches() -> None:
    every = list(generator.wanted(["all"]))
    assert every == sorted(every, key=Version)
    assert {"0.28.0", "0.31.3", "0.32.2"} <= set(every)


def test_folder_is_taken_as_it_is(tmp_path: Path) -> None:
    assert list(generator.wanted([str(tmp_path)])) == [str(tmp_path)]
    assert generator.folder_of(str(tmp_path), tmp_path / "elsewhere") == tmp_path


def test_release_that_lies_there_is_not_downloaded_again(tmp_path: Path) -> None:
    (tmp_path / "mlx_lm-0.99.0" / "mlx_lm").mkdir(parents=True)
    assert generator.folder_of("0.99.0", tmp_path) == tmp_path / "mlx_lm-0.99.0"


def test_word_that_is_neither_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        generator.main(["newest"])
    assert "neither a folder nor a version" in capsys.readouterr().err


# The table that is shipped


@pytest.mark.parametrize("version", ["0.30.7", "0.31.0", "0.31.2", "0.31.3"])
def test_shipped_table_has_the_two_models_that_read_stale_offsets(version: str) -> None:
    """Execution shows gemma3n's in a batch; bailing_moe_linear's is carried by its layer loop."""
    places = stale_captures.places("mlx_lm", version)
    assert [place.partition(":")[0] for place in places] == [
        "models/bailing_moe_linear.py",
        "models/gemma3n.py",
    ]


def test_shipped_table_has_no_capture_of_a_release_whose_caches_rebind() -> None:
    assert "0.32.2" in stale_captures.releases("mlx_lm")
    assert stale_captures.places("mlx_lm", "0.32.2") == ()
