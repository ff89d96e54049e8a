"""`aliaslint check`: what it takes, what it hides, what it says, how it exits."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest
from cli_tools import run, write

pytestmark = pytest.mark.usefixtures("marks")


def codes(*arguments: object, stdin: bytes = b"") -> list[str]:
    """Return `path:line code` of each finding."""
    ran = run("check", "--output-format", "json", *arguments, stdin=stdin)
    findings = json.loads(ran.out)["findings"]
    return [f"{f['path']}:{f['line']} {f['code']}" for f in findings]


# Targets


def test_checks_the_working_directory_by_default(place: Path) -> None:
    write(place, "pkg/a.py", "AL001!\n")
    assert codes() == ["pkg/a.py:1 AL001"]


def test_takes_files_and_folders_together(place: Path) -> None:
    write(place, "a.py", "AL001!\n")
    write(place, "pkg/b.py", "AL101!\n")
    write(place, "c.py", "AL201!\n")
    assert codes("a.py", "pkg") == ["a.py:1 AL001", "pkg/b.py:1 AL101"]


def test_paths_outside_the_working_directory_stay_absolute(
    place: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = write(tmp_path_factory.mktemp("other"), "a.py", "AL001!\n")
    assert codes(other) == [f"{other}:1 AL001"]


def test_findings_are_sorted(place: Path) -> None:
    write(place, "b.py", "AL101!\nAL001!\n")
    write(place, "a.py", "AL201!\n")
    assert codes("b.py", "a.py") == ["a.py:1 AL201", "b.py:1 AL101", "b.py:2 AL001"]


def test_takes_an_installed_package(place: Path) -> None:
    site = "env/lib/python3.11/site-packages"
    write(place, f"{site}/some_models/__init__.py", "AL101!\n")
    write(place, "env/pyvenv.cfg", "")
    expected = [f"{site}/some_models/__init__.py:1 AL101"]
    assert codes("--package", "some-models", "--python", "env") == expected


def test_an_installed_package_is_not_imported(place: Path) -> None:
    site = place / "env/lib/python3.11/site-packages"
    write(site, "boom/__init__.py", f"open({str(place / 'imported')!r}, 'w')\n")
    write(place, "env/pyvenv.cfg", "")
    assert run("check", "--package", "boom", "--python", "env").status == 0
    assert not (place / "imported").exists()


def test_standard_input_has_the_name_that_it_is_given(place: Path) -> None:
    write(place, "pkg/a.py", "\n\nAL101!\n")
    found = codes("-", "--stdin-filename", "pkg/a.py", stdin=b"AL001!\n")
    assert found == ["pkg/a.py:1 AL001"]


def test_standard_input_without_a_name(place: Path) -> None:
    assert codes("-", stdin=b"AL001!\r\n") == ["stdin.py:1 AL001"]


def test_force_exclude_leaves_out_named_files(place: Path) -> None:
    write(place, "build/a.py", "AL001!\n")
    assert codes("build/a.py") == ["build/a.py:1 AL001"]
    ran = run("check", "--force-exclude", "build/a.py")
    assert (ran.status, ran.out) == (0, "No findings in 0 files.\n")


# Exit status


@pytest.mark.parametrize(
    ("text", "arguments", "status"),
    [
        pytest.param("", (), 0, id="an empty file"),
        pytest.param("x = 1\n", (), 0, id="nothing found"),
        pytest.param("AL001!\n", (), 1, id="an error"),
        pytest.param("AL302!\n", (), 0, id="a warning"),
        pytest.param("AL001!\n", ("--exit-zero",), 0, id="an error with --exit-zero"),
        pytest.param("syntax error\n", (), 2, id="a syntax error"),
        pytest.param("syntax error\n", ("--exit-zero",), 2, id="a syntax error, --exit-zero"),
        pytest.param("AL001!\nsyntax error\n", (), 2, id="a syntax error beside an error"),
        pytest.param("AL002!\n", (), 0, id="a rule that is off"),
    ],
)
def test_exit_status(place: Path, text: str, arguments: tuple[str, ...], status: int) -> None:
    write(place, "a.py", text)
    assert run("check", *arguments).status == status


# Bad input: one clear line, status 2, and the other files are still checked


@pytest.mark.parametrize(
    ("name", "data", "line"),
    [
        pytest.param("missing.py", None, "missing.py: error: no such file or folder", id="missing"),
        pytest.param(
            "bad.py",
            b"x = '\xe9'\n",
            "bad.py:1:6: error: cannot be decoded as utf-8: byte 0xe9 "
            "(declare the encoding in the first line: # -*- coding: latin-1 -*-)",
            id="latin-1 without a cookie",
        ),
        pytest.param(
            "bad.py",
            b"# coding: klingon\n",
            "bad.py:1:1: error: cannot be decoded: unknown encoding: klingon",
            id="unknown encoding",
        ),
        pytest.param(
            "bad.py",
            b"x = 1\nsyntax error\n",
            "bad.py:2:1: error: invalid syntax",
            id="syntax error",
        ),
        pytest.param(
            "bad.py",
            b"x\0",
            "bad.py:1:2: error: holds a null byte, which Python source cannot",
            id="null byte",
        ),
        pytest.param(
            "nb.ipynb",
            b'{"cells": [{"source": ["x = 1"]}], "nbformat": 4}\n',
            "nb.ipynb: error: is a notebook, which is not read: write its code to a Python file "
            "first (jupyter nbconvert --to script)",
            id="notebook",
        ),
    ],
)
def test_a_bad_file_is_one_line_and_the_others_are_checked(
    place: Path, name: str, data: bytes | None, line: str
) -> None:
    write(place, "good.py", "AL001!\n")
    if data is not None:
        (place / name).write_bytes(data)
    ran = run("check", "--output-format", "concise", "good.py", name)
    first, second, *_ = ran.out.splitlines()
    assert first.startswith("good.py:1:1: AL001 ")
    assert (second, ran.err, ran.status) == (line, "", 2)


@pytest.mark.parametrize(
    ("paths", "closing"),
    [
        (["syntax.py"], "Found 1 problem with input in 1 file."),
        (["bytes.py"], "Found 1 problem with input in 1 file."),
        (["null.py"], "Found 1 problem with input in 1 file."),
        (["nb.ipynb"], "Found 1 problem with input in 1 file."),
        (["missing.py"], "Found 1 problem with input."),
        (["empty"], "Found 1 problem with input."),
        (["good.py", "bytes.py", "missing.py"], "Found 2 problems with input in 2 files."),
    ],
)
def test_files_that_cannot_be_analysed_are_counted_too(
    place: Path, paths: list[str], closing: str
) -> None:
    write(place, "good.py", "")
    write(place, "syntax.py", "syntax error\n")
    write(place, "nb.ipynb", "{}")
    (place / "bytes.py").write_bytes(b"x = '\xe9'\n")
    (place / "null.py").write_bytes(b"x\0")
    (place / "empty").mkdir()
    ran = run("check", "--output-format", "concise", *paths)
    assert (ran.out.splitlines()[-1], ran.err, ran.status) == (closing, "", 2)


def test_an_unreadable_file_is_one_line(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_bytes(path: Path) -> bytes:
        if path.name == "bad.py":
            raise PermissionError(errno.EACCES, "Permission denied")
        return b"AL001!\n"

    write(place, "bad.py", "")
    write(place, "good.py", "")
    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    ran = run("check", "--output-format", "concise", "bad.py", "good.py")
    first, second, *_ = ran.out.splitlines()
    assert first.startswith("good.py:1:1: AL001 ")
    assert (second, ran.status) == ("bad.py: error: cannot be read: permission denied", 2)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"# coding: latin-1\n'\xe9'; AL001!\n", "a.py:2", id="latin-1 with a cookie"),
        pytest.param(b"x = 1\r\nAL001!\r\n", "a.py:2", id="CRLF"),
        pytest.param(b"\xef\xbb\xbfAL001!\n", "a.py:1", id="byte order mark"),
        pytest.param(b"AL001!", "a.py:1", id="no newline at the end"),
    ],
)
def test_unusual_files_are_checked(place: Path, data: bytes, expected: str) -> None:
    (place / "a.py").write_bytes(data)
    assert codes() == [f"{expected} AL001"]


def test_folders_are_searched_for_no_notebook(place: Path) -> None:
    write(place, "pkg/a.py", "AL001!\n")
    write(place, "pkg/nb.ipynb", '{"cells": [], "nbformat": 4}\n')
    ran = run("check", "pkg", "--output-format", "concise")
    assert (len(ran.out.splitlines()), ran.err, ran.status) == (2, "", 1)
    assert ran.out.endswith("Found 1 error in 1 file.\n")


def test_a_notebook_on_standard_input(place: Path) -> None:
    ran = run("check", "-", stdin=b'{\n "cells": [],\n "nbformat": 4\n}\n')
    assert ran.err.startswith("aliaslint: error: standard input: is a notebook, which is not read:")
    assert (ran.out, ran.status) == ("", 2)


@pytest.mark.parametrize("command", ["check", "fix"])
@pytest.mark.parametrize("paths", [("",), ("a.py", "")])
def test_an_empty_path_is_not_the_working_directory(
    place: Path, command: str, paths: tuple[str, ...]
) -> None:
    write(place, "a.py", "AL001!\n")
    ran = run(command, *paths)
    message = "Invalid value for '[PATHS]...': the path is empty"
    assert ran.err == f"aliaslint: error: {message} (aliaslint {command} --help)\n"
    assert (ran.out, ran.status) == ("", 2)


def test_a_folder_without_python_files(place: Path) -> None:
    (place / "empty").mkdir()
    ran = run("check", "empty")
    assert ran.status == 2
    assert ran.out.splitlines()[0] == "empty: error: no Python files in this folder"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--selct", "AL1"], "No such option"),
        (["--output-format", "xml"], "Invalid value for '--output-format': 'xml' is not one of"),
        (["--select", "AL7"], "unknown rule selector 'AL7' (`aliaslint rules` lists them)"),
        (["--package", "mlx_lm", "."], "give either paths or --package, not both"),
        (["--package", "no_such_package"], "package 'no_such_package' is not installed in"),
        (["--package", "a/b"], "'a/b' is not the name of a package"),
        (["--python", "nowhere"], "nowhere: no such interpreter or environment"),
        (["-", "."], "- is standard input and stands alone"),
        (["--stdin-filename", "a.py"], "--stdin-filename needs the path -"),
        (["--baseline", "none.json"], "none.json: cannot be read: No such file or directory"),
        (["--package", ""], "--package: the name is empty"),
        (["--python", "", "a.py"], "Invalid value for '--python': the path is empty"),
        (["--write-baseline"], "--write-baseline needs --baseline FILE"),
        (["--output-file", "none/report.txt"], "none/report.txt: cannot be written: No such file"),
    ],
)
def test_wrong_use_is_one_line(place: Path, arguments: list[str], message: str) -> None:
    write(place, "a.py", "")
    ran = run("check", *arguments)
    assert ran.err.startswith(f"aliaslint: error: {message}")
    assert (ran.err.count("\n"), ran.out, ran.status) == (1, "", 2)


def test_standard_input_that_cannot_be_decoded(place: Path) -> None:
    ran = run("check", "-", stdin=b"\xff")
    assert ran.err.startswith("aliaslint: error: standard input:1:1: cannot be decoded as utf-8")
    assert ran.status == 2


def test_a_bad_configuration_is_one_line(place: Path) -> None:
    write(place, "pyproject.toml", "[tool.aliaslint]\nselct = []\n")
    write(place, "a.py", "")
    ran = run("check")
    path = place / "pyproject.toml"
    expected = f"{path}:2: unknown key 'selct' in [tool.aliaslint]; did you mean 'select'?"
    assert (ran.err, ran.status) == (f"aliaslint: error: {expected}\n", 2)


def test_an_internal_error_is_one_line(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.delenv("ALIASLINT_TRACEBACK", raising=False)
    monkeypatch.setattr("aliaslint.analysis.analyse", fail)
    write(place, "a.py", "")
    ran = run("check")
    assert ran.err == (
        "aliaslint: internal error: RuntimeError: two lines "
        "(run again with ALIASLINT_TRACEBACK=1 to see where, and please report it)\n"
    )
    assert (ran.out, ran.status) == ("", 2)


def test_a_traceback_is_shown_on_request(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("here")

    monkeypatch.setenv("ALIASLINT_TRACEBACK", "1")
    monkeypatch.setattr("aliaslint.analysis.analyse", fail)
    write(place, "a.py", "")
    with pytest.raises(RuntimeError, match="here"):
        run("check")


# Selection


@pytest.mark.parametrize("command", ["check", "fix"])
@pytest.mark.parametrize("value", ["", " ", ","])
def test_a_selection_that_names_nothing_is_an_error(place: Path, command: str, value: str) -> None:
    write(place, "a.py", "AL001!\n")
    ran = run(command, "--select", value)
    assert ran.err.startswith("aliaslint: error: Invalid value for '--select': no rule is named")
    assert (ran.out, ran.err.count("\n"), ran.status) == ("", 1, 2)


@pytest.mark.parametrize("option", ["--ignore", "--extend-select"])
def test_nothing_ignored_and_nothing_added_is_harmless(place: Path, option: str) -> None:
    write(place, "a.py", "AL001!\n")
    ran = run("check", option, "")
    assert ("AL001" in ran.out, ran.status) == (True, 1)


@pytest.mark.parametrize(
    ("arguments", "table"),
    [
        (("--ignore", "ALL"), ""),
        (("--select", "AL1", "--ignore", "AL1"), ""),
        ((), "select = []\n"),
        ((), 'ignore = ["ALL"]\n'),
    ],
)
def test_a_run_of_no_rule_is_an_error(place: Path, arguments: tuple[str, ...], table: str) -> None:
    write(place, "a.py", "AL001!\n")
    write(place, "pyproject.toml", f"[tool.aliaslint]\n{table}")
    ran = run("check", *arguments)
    message = "aliaslint: error: no rule is selected, so nothing would be checked"
    assert ran.err.startswith(message)
    assert (ran.out, ran.err.count("\n"), ran.status) == ("", 1, 2)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), ["AL001", "AL101"]),
        (("--select", "AL1"), ["AL101", "AL102"]),
        (("--select", "AL101,AL102"), ["AL101", "AL102"]),
        (("--select", "AL101", "--select", "stale-capture"), ["AL101"]),
        (("--ignore", "AL0"), ["AL101"]),
        (("--extend-select", "AL102"), ["AL001", "AL101", "AL102"]),
        (("--select", "ALL", "--ignore", "AL001"), ["AL101", "AL102"]),
    ],
)
def test_selects_rules(place: Path, arguments: tuple[str, ...], expected: list[str]) -> None:
    write(place, "a.py", "AL001!\nAL101!\nAL102!\n")
    assert [line.split()[1] for line in codes(*arguments)] == expected


def test_the_command_line_overrides_the_configuration(place: Path) -> None:
    write(place, "pyproject.toml", '[tool.aliaslint]\nselect = ["AL001"]\n')
    write(place, "a.py", "AL001!\nAL101!\n")
    assert codes() == ["a.py:1 AL001"]
    assert codes("--select", "AL101") == ["a.py:2 AL101"]


def test_per_file_ignores(place: Path) -> None:
    table = '[tool.aliaslint.per-file-ignores]\n"tests/" = ["AL1"]\n"!src/**" = ["AL2"]\n'
    write(place, "pyproject.toml", table)
    for name in ("tests/a.py", "src/a.py"):
        write(place, name, "AL001!\nAL101!\nAL201!\n")
    assert codes() == [
        "src/a.py:1 AL001",
        "src/a.py:2 AL101",
        "src/a.py:3 AL201",
        "tests/a.py:1 AL001",
    ]


def test_excludes_of_the_configuration(place: Path) -> None:
    write(place, "pyproject.toml", '[tool.aliaslint]\nextend-exclude = ["gen", "*_pb2.py"]\n')
    for name in ("a.py", "gen/b.py", "c_pb2.py"):
        write(place, name, "AL001!\n")
    assert codes() == ["a.py:1 AL001"]


# Suppressions and AL901


@pytest.mark.parametrize(
    "comment", ["# aliaslint: ignore[AL001] reason", "# noqa: AL001", "# noqa: E501, AL001"]
)
def test_comments_hide_findings(place: Path, comment: str) -> None:
    write(place, "a.py", f"AL001!  {comment}\nAL001!\n")
    ran = run("check", "--output-format", "json")
    document = json.loads(ran.out)
    assert [finding["line"] for finding in document["findings"]] == [2]
    assert document["summary"]["suppressed"] == 1


def test_skip_file_hides_everything(place: Path) -> None:
    write(place, "a.py", "# aliaslint: skip-file\nAL001!\nAL101!\n")
    assert run("check").status == 0


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        ("x = 1  # aliaslint: ignore[AL001]", 8, "no AL001 here"),
        ("x = 1  # noqa: AL101", 8, "no AL101 here"),
        ("x = 1  # noqa: AL101, E501", 16, "no AL101 here"),
        ("AL001!  # aliaslint: ignore[AL001, AL101]", 36, "no AL101 here"),
        ("x = 1  # aliaslint: ignore[AL001, AL101]", 8, "no AL001 here; no AL101 here"),
        (
            "x = 1  # aliaslint: ignore",
            8,
            "names no rule, so it hides nothing: write `ignore[AL001]`",
        ),
        (
            "x = 1  # aliaslint: ignore[stale-captur]",
            8,
            "unknown rule 'stale-captur'; did you mean stale-capture?",
        ),
    ],
)
def test_an_unused_suppression_is_reported(
    place: Path, line: str, column: int, message: str
) -> None:
    write(place, "a.py", line + "\n")
    (found,) = json.loads(run("check", "--output-format", "json").out)["findings"]
    assert (found["code"], found["column"]) == ("AL901", column)
    assert found["message"] == f"unused suppression: {message}"
    assert found["fixable"] == "safe"


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        pytest.param("AL001!  # noqa: AL001", (), id="used"),
        pytest.param("x = 1  # noqa", (), id="bare noqa"),
        pytest.param("x = 1  # noqa: E501, ALX001", (), id="codes of others"),
        pytest.param("x = 1  # noqa: AL002", (), id="a rule that did not run"),
        pytest.param("x = 1  # noqa: AL001", ("--ignore", "AL001"), id="a rule that was ignored"),
        pytest.param("x = 1  # noqa: AL001", ("--ignore", "AL901"), id="AL901 was ignored"),
        pytest.param("x = 1  # noqa: AL001, AL901", (), id="hidden itself"),
        pytest.param("# aliaslint: skip-file", (), id="skip-file"),
        pytest.param("import mlx_lm  # noqa: AL001", (), id="a dependency that was not found"),
    ],
)
def test_no_unused_suppression(place: Path, line: str, arguments: tuple[str, ...]) -> None:
    write(place, "a.py", line + "\n")
    assert codes(*arguments) == []


def test_per_file_ignored_rules_did_not_run(place: Path) -> None:
    write(place, "pyproject.toml", '[tool.aliaslint.per-file-ignores]\n"a.py" = ["AL001"]\n')
    write(place, "a.py", "x = 1  # noqa: AL001\n")
    assert codes() == []


# AL902 through the command line


def test_a_configuration_that_undoes_fixes_is_a_warning(place: Path) -> None:
    write(place, "ruff.toml", 'lint.select = ["PLR6104"]\n')
    write(place, "pyproject.toml", "")
    write(place, "pkg/a.py", "")
    ran = run("check", "pkg", "--output-format", "concise")
    assert ran.out.startswith("ruff.toml:1:16: AL902 warning: `PLR6104` selects ")
    assert ran.status == 0


# Baseline


def test_a_baseline_survives_edits_elsewhere(place: Path) -> None:
    write(place, "pkg/a.py", "def f():\n    AL001!\n")
    assert run("check", "--baseline", "known.json", "--write-baseline").status == 0
    write(place, "pkg/a.py", "import os\n\n\ndef f():\n    AL001!\n")
    assert codes("--baseline", "known.json") == []
    assert run("check", "--baseline", "known.json").status == 0


def test_a_baseline_holds_no_line_numbers(place: Path) -> None:
    write(place, "a.py", "AL001!\n")
    run("check", "--baseline", "known.json", "--write-baseline")
    (entry,) = json.loads((place / "known.json").read_text())["findings"]
    assert sorted(entry) == ["code", "context", "count", "path"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("def f():\n    AL001!\n    AL001!\n", ["a.py:3 AL001"], id="one more alike"),
        pytest.param("def g():\n    AL001!\n", ["a.py:2 AL001"], id="in another function"),
        pytest.param("def f():\n    AL101!\n", ["a.py:2 AL101"], id="of another rule"),
        pytest.param("def f():\n    x, AL001!\n", ["a.py:2 AL001"], id="in another statement"),
    ],
)
def test_a_baseline_does_not_hide_new_findings(place: Path, text: str, expected: list[str]) -> None:
    write(place, "a.py", "def f():\n    AL001!\n")
    run("check", "--baseline", "known.json", "--write-baseline")
    write(place, "a.py", text)
    assert codes("--baseline", "known.json") == expected


def test_a_baseline_works_from_another_folder(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(place, "pkg/a.py", "AL001!\n")
    run("check", "--baseline", "known.json", "--write-baseline")
    monkeypatch.chdir(place / "pkg")
    assert codes(".", "--baseline", "../known.json") == []


def test_stale_entries_of_a_baseline_are_counted(place: Path) -> None:
    write(place, "a.py", "AL001!\n")
    run("check", "--baseline", "known.json", "--write-baseline")
    write(place, "a.py", "")
    ran = run("check", "--baseline", "known.json")
    assert "1 baseline entry no longer found" in ran.out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "known.json: is not a baseline: "),
        ("[]", "known.json: is not a baseline of aliaslint"),
        ('{"version": 9, "findings": []}', "known.json: is a baseline of version 9, not 1"),
    ],
)
def test_a_broken_baseline_is_one_line(place: Path, text: str, message: str) -> None:
    write(place, "known.json", text)
    write(place, "a.py", "")
    ran = run("check", "--baseline", "known.json")
    assert ran.err.startswith(f"aliaslint: error: {message}")
    assert (ran.err.count("\n"), ran.status) == (1, 2)


# Output


def test_the_report_goes_to_a_file(place: Path) -> None:
    write(place, "a.py", "AL001!\nsyntax error\n")
    ran = run("check", "--output-format", "json", "--output-file", "report.json")
    document = json.loads((place / "report.json").read_text())
    assert [finding["code"] for finding in document["findings"]] == ["AL001"]
    assert ran.out == "Found 1 error, 1 problem with input in 1 file.\n"
    assert (ran.err, ran.status) == ("a.py:2:1: error: invalid syntax\n", 2)


def test_statistics(place: Path) -> None:
    write(place, "a.py", "AL001!\nAL001!\nAL101!\n")
    assert run("check", "--statistics", "--output-format", "concise").out.splitlines()[3:] == [
        "    2  AL001  inplace-exposed-attribute",
        "    1  AL101  stale-capture",
        "    3  calls not resolved",
        "",
        "Found 3 errors in 1 file.",
    ]


def test_no_findings(place: Path) -> None:
    write(place, "a.py", "")
    assert run("check").out == "No findings in 1 file.\n"


def test_an_unknown_dependency_is_told(place: Path) -> None:
    write(place, "a.py", "import mlx_lm\n")
    assert run("check").out == (
        "No findings in 1 file.\n"
        "mlx-lm was not found, so captures are judged without its caches: name it with "
        '--python PATH, or with `mlx-lm = "VERSION"` in [tool.aliaslint].\n'
    )
