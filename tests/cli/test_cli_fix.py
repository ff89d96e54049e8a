"""`aliaslint fix`: what it writes, what it prints, how it exits.

The analysis is a stand-in that asks for the rebinding of every `self.NAME += …`, safely for
`offset`, unsafely for `shared`.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
from cli_tools import finding, run, write
from referencing import Registry, Resource

from aliaslint.analysis import AnalysisOptions
from aliaslint.findings import FileError, Repair, Result, Span
from aliaslint.source.files import SourceFile, split_lines

SCHEMAS = Path(__file__).parents[2] / "docs" / "schema"
BEFORE = "class Cache:\n    def update(self, n):\n        self.offset += n\n"
AFTER = "class Cache:\n    def update(self, n):\n        self.offset = self.offset + n\n"
SHARED = BEFORE.replace("offset", "shared")


def find_updates(files: Sequence[SourceFile], options: AnalysisOptions, *, jobs: int = 1) -> Result:
    result = Result()
    for source in files:
        for number, line in enumerate(split_lines(source.text), 1):
            if line == "syntax error":
                result.errors.append(FileError(source.path, number, 1, "invalid syntax"))
            if match := re.search(r"self\.(\w+) \+= .*", line):
                span = Span(number, match.start() + 1, number, match.end() + 1)
                safety = "unsafe" if match[1] == "shared" else "safe"
                repair = Repair("rebind", span, safety, "two owners" if safety == "unsafe" else "")
                code = "AL002" if match[1] == "hidden" else "AL001"
                result.findings.append(
                    finding(code, source.path, number, match.start() + 1, repair=repair)
                )
    return result


@pytest.fixture(autouse=True)
def updates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aliaslint.analysis.analyse", find_updates)


def test_fixes_and_says_so(place: Path) -> None:
    path = write(place, "pkg/cache.py", BEFORE)
    write(place, "pkg/other.py", "x = 1\n")
    ran = run("fix", "pkg")
    assert path.read_text() == AFTER
    assert (ran.out, ran.err, ran.status) == (
        "pkg/cache.py: fixed 1 × AL001\nFixed 1 finding in 1 file.\n",
        "",
        0,
    )


def test_a_second_run_changes_nothing(place: Path) -> None:
    path = write(place, "cache.py", BEFORE)
    run("fix")
    first = path.stat().st_mtime_ns
    ran = run("fix")
    assert (ran.out, ran.status) == ("Nothing to fix in 1 file.\n", 0)
    assert path.stat().st_mtime_ns == first


def test_a_diff_writes_nothing(place: Path) -> None:
    path = write(place, "pkg/cache.py", BEFORE)
    ran = run("fix", "--diff")
    assert path.read_text() == BEFORE
    assert ran.out == (
        "--- a/pkg/cache.py\n"
        "+++ b/pkg/cache.py\n"
        "@@ -1,3 +1,3 @@\n"
        " class Cache:\n"
        "     def update(self, n):\n"
        "-        self.offset += n\n"
        "+        self.offset = self.offset + n\n"
    )
    assert ran.err == "pkg/cache.py: would fix 1 × AL001\nWould fix 1 finding in 1 file.\n"
    assert ran.status == 1


@pytest.mark.parametrize(
    "text",
    [
        "# coding: latin-1\n# Größe\n" + BEFORE,
        "# coding: shift_jis\n# 大きさ\n" + BEFORE,
        "\ufeff" + BEFORE,
        BEFORE.replace("\n", "\r\n"),
        BEFORE.rstrip("\n"),
    ],
    ids=["latin-1", "shift_jis", "a mark", "CR LF", "no final newline"],
)
@pytest.mark.parametrize("name", ["cache.py", "mein schöner cache.py"])
def test_patch_takes_the_diff(place: Path, text: str, name: str) -> None:
    tool = shutil.which("patch")
    if tool is None:
        pytest.skip("there is no patch")
    cookie = re.match(r"# coding: (\S+)", text)
    path = place / name
    path.write_bytes(text.encode(cookie[1] if cookie else "utf-8"))

    diff = run("fix", "--diff").raw
    subprocess.run([tool, "-p1", "--binary", "--fuzz=0"], input=diff, cwd=place, check=True)
    patched = path.read_bytes()
    path.write_bytes(text.encode(cookie[1] if cookie else "utf-8"))
    run("fix")

    assert patched == path.read_bytes() != b""
    assert b"self.offset = self.offset + n" in patched


def test_the_trace_says_why_beside_the_diff(place: Path) -> None:
    write(place, "pkg/cache.py", BEFORE)
    write(place, "pkg/shared.py", SHARED)
    plain = run("fix", "--diff")
    ran = run("fix", "--diff", "--show-trace", "--unsafe-fixes")
    assert ran.out.startswith(plain.out)
    told = [line for line in ran.err.splitlines() if line.startswith("    ")]
    assert [line for line in told if "|" not in line] == ["    unsafe fix: two owners"]
    assert [line.split("|")[1].strip() for line in told if "+= n" in line] == [
        "self.offset += n",
        "self.shared += n",
    ]


def test_the_trace_says_what_is_left(place: Path) -> None:
    write(place, "cache.py", SHARED)
    ran = run("fix", "--show-trace")
    assert ran.out.splitlines()[-3:-1] == [
        "    unsafe fix: two owners",
        "    not fixed: unsafe (two owners)",
    ]


def test_an_empty_diff(place: Path) -> None:
    write(place, "cache.py", AFTER)
    ran = run("fix", "--diff")
    assert (ran.out, ran.status) == ("", 0)


def test_unsafe_fixes_are_left(place: Path) -> None:
    path = write(place, "cache.py", SHARED)
    ran = run("fix")
    assert path.read_text() == SHARED
    assert ran.out.splitlines()[-1] == (
        "Nothing to fix in 1 file; 1 finding left (1 with --unsafe-fixes)."
    )
    assert ran.status == 1


@pytest.mark.parametrize("where", ["option", "configuration"])
def test_unsafe_fixes_on_request(place: Path, where: str) -> None:
    path = write(place, "cache.py", SHARED)
    if where == "configuration":
        write(place, "pyproject.toml", "[tool.aliaslint]\nunsafe-fixes = true\n")
    ran = run("fix", *(["--unsafe-fixes"] if where == "option" else []))
    assert path.read_text() == SHARED.replace("+= n", "= self.shared + n")
    assert ran.status == 0


def test_only_selected_rules_are_fixed(place: Path) -> None:
    text = BEFORE.replace("offset", "hidden")
    path = write(place, "cache.py", text)
    assert run("fix").status == 0
    assert path.read_text() == text
    assert run("fix", "--extend-select", "AL002").status == 0
    assert path.read_text() == AFTER.replace("offset", "hidden")


def test_the_strategy_is_obeyed(place: Path) -> None:
    path = write(place, "cache.py", BEFORE)
    ran = run("fix", "--strategy", "snapshot")
    assert (path.read_text(), ran.status) == (BEFORE, 1)
    assert ran.out.splitlines()[1] == "    not fixed: not part of --strategy snapshot"
    assert run("fix", "--strategy", "rebind").status == 0
    assert path.read_text() == AFTER


def test_suppressed_findings_are_not_fixed(place: Path) -> None:
    text = BEFORE.replace("+= n", "+= n  # noqa: AL001")
    path = write(place, "cache.py", text)
    assert run("fix").status == 0
    assert path.read_text() == text


def test_only_the_given_files_are_fixed(place: Path) -> None:
    write(place, "a.py", BEFORE)
    other = write(place, "b.py", BEFORE)
    run("fix", "a.py")
    assert other.read_text() == BEFORE


def test_unused_suppressions_are_removed(place: Path) -> None:
    path = write(place, "a.py", "x = 1  # aliaslint: ignore[AL001] old\n")
    assert run("fix").status == 0
    assert path.read_text() == "x = 1\n"


def test_standard_input_goes_to_standard_output(place: Path) -> None:
    ran = run("fix", "-", stdin=BEFORE.replace("\n", "\r\n").encode())
    assert ran.out == AFTER.replace("\n", "\r\n")
    assert (ran.err, ran.status) == (
        "stdin.py: would fix 1 × AL001\nWould fix 1 finding in 1 file.\n",
        0,
    )


def test_healthy_standard_input_comes_back_as_it_is(place: Path) -> None:
    assert run("fix", "-", stdin=b"x = 1").out == "x = 1"


def test_a_bad_file_is_counted(place: Path) -> None:
    (place / "bad.py").write_bytes(b"x\0")
    ran = run("fix", "bad.py")
    assert (ran.out.splitlines()[-1], ran.status) == ("Nothing to fix in 1 file.", 2)


def test_a_bad_file_does_not_keep_the_others_from_being_fixed(place: Path) -> None:
    path = write(place, "cache.py", BEFORE)
    write(place, "bad.py", "syntax error\n")
    ran = run("fix", "cache.py", "bad.py", "missing.py")
    assert path.read_text() == AFTER
    assert ran.out.splitlines() == [
        "cache.py: fixed 1 × AL001",
        "missing.py: error: no such file or folder",
        "bad.py:1:1: error: invalid syntax",
        "Fixed 1 finding in 1 file.",
    ]
    assert ran.status == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--diff", "--verify"), "give either --diff or --verify: a diff writes nothing to verify"),
        (("-", "--verify"), "--verify needs a tree on disk, not standard input"),
    ],
)
def test_wrong_use_is_one_line(place: Path, arguments: tuple[str, ...], message: str) -> None:
    ran = run("fix", *arguments)
    assert (ran.err, ran.status) == (f"aliaslint: error: {message}\n", 2)


# JSON


def validate(document: Any) -> None:
    loaded = [json.loads(path.read_text("utf-8")) for path in SCHEMAS.glob("*.json")]
    resources = [(s["$id"], Resource.from_contents(s)) for s in loaded if "$id" in s]
    registry: Registry[Any] = Registry().with_resources(resources)
    schema = json.loads((SCHEMAS / "fix.json").read_text("utf-8"))
    jsonschema.Draft202012Validator(schema, registry=registry).validate(document)


def test_a_read_only_file_is_an_error_and_the_others_are_written(place: Path) -> None:
    locked, free = write(place, "a.py", BEFORE), write(place, "b.py", BEFORE)
    locked.chmod(0o444)
    ran = run("fix")
    assert (locked.read_text(), free.read_text(), ran.status) == (BEFORE, AFTER, 2)
    assert "a.py: error: cannot be written: it is read-only; it is as it was" in ran.out
    assert ran.out.splitlines()[0] == "b.py: fixed 1 × AL001"
    assert ran.out.splitlines()[-1].startswith("Fixed 1 finding in 1 file; 1 finding left")


def test_a_file_that_is_edited_meanwhile_is_left_to_its_editor(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(place, "a.py", BEFORE)

    def edits(files: Sequence[SourceFile], options: AnalysisOptions, *, jobs: int = 1) -> Result:
        path.write_text("x = 1\n")
        return find_updates(files, options)

    monkeypatch.setattr("aliaslint.analysis.analyse", edits)
    ran = run("fix")
    assert (path.read_text(), ran.status) == ("x = 1\n", 2)
    assert "it changed while fix was running" in ran.out


@pytest.mark.parametrize("diff", [True, False])
def test_json_has_the_public_shape(place: Path, diff: bool) -> None:
    write(place, "a.py", BEFORE)
    write(place, "b.py", SHARED)
    ran = run("fix", "--output-format", "json", *(["--diff"] if diff else []))
    document = json.loads(ran.out)
    validate(document)
    (change,) = document["changes"]
    assert (change["path"], [fixed["code"] for fixed in change["fixed"]]) == ("a.py", ["AL001"])
    assert change["diff"].startswith("--- a/a.py\n+++ b/a.py\n")
    assert [left["path"] for left in document["findings"]] == ["b.py"]
    assert document["written"] is not diff
    assert document["summary"] == {"files_changed": 1, "fixed": 1, "findings": 1, "errors": 0}


# Verification


class Verified(SimpleNamespace):
    """A report of verify that only knows its exit status."""

    def exit_status(self, *, cured_is_success: bool) -> int:
        assert cured_is_success
        return int(self.status)

    def to_json(self) -> dict[str, Any]:
        return {"status": self.status}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Stand in for verify: the first element says how it ends, the requests follow."""
    requests: list[Any] = [0]

    def pretend(request: Any) -> Verified:
        requests.append(request)
        return Verified(status=requests[0])

    monkeypatch.setattr("aliaslint.cli.verify.run_with_progress", pretend)
    monkeypatch.setattr("aliaslint.cli.verify.write_report", lambda *_: None)
    return requests


def test_writes_what_verification_finds_right(place: Path, asked: list[Any]) -> None:
    path = write(place, "cache.py", BEFORE)
    ran = run("fix", "--verify")
    assert path.read_text() == AFTER
    assert (ran.out.splitlines()[-1], ran.status) == ("Fixed 1 finding in 1 file.", 0)
    (request,) = asked[1:]
    assert request.target == place
    assert request.rewritten == {path: AFTER.encode()}
    assert [(e.path, e.first_line, e.last_line) for e in request.edits] == [(path, 3, 3)]
    assert [(f.code, f.span.line) for f in request.findings] == [("AL001", 3)]


@pytest.mark.parametrize("status", [1, 2])
def test_writes_nothing_else(place: Path, asked: list[Any], status: int) -> None:
    asked[0] = status
    path = write(place, "cache.py", BEFORE)
    ran = run("fix", "--verify")
    assert path.read_text() == BEFORE
    assert ran.out.splitlines()[-1] == (
        "Wrote nothing, since the rewritten tree is not right: would fix 1 finding in 1 file."
    )
    assert ran.status == status


def test_verifies_nothing_where_nothing_changes(place: Path, asked: list[Any]) -> None:
    write(place, "cache.py", AFTER)
    assert run("fix", "--verify").status == 0
    assert len(asked) == 1


def test_what_cannot_be_verified_is_one_line(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from aliaslint.verify import VerifyError

    def fail(request: Any) -> None:
        raise VerifyError("verify needs MLX, which is not installed")

    monkeypatch.setattr("aliaslint.cli.verify.run_with_progress", fail)
    path = write(place, "cache.py", BEFORE)
    ran = run("fix", "--verify")
    expected = "aliaslint: error: verify needs MLX, which is not installed\n"
    assert (ran.err, ran.status, path.read_text()) == (expected, 2, BEFORE)
