"""A file that is nested deeper than the passes have room for costs one line, not the run."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from aliaslint import depth
from aliaslint.analysis import AnalysisOptions, analyse
from aliaslint.errors import UserError
from aliaslint.explain.looking import look
from aliaslint.findings import FileError
from aliaslint.fix import run
from aliaslint.fix.apply import edit
from aliaslint.source.files import SourceFile, read
from aliaslint.source.parsing import TOO_DEEP

resource = pytest.importorskip("resource")  # Without it no stack is known to be large.
HEALTHY = Path(__file__).parents[2] / "fixtures/AL101/flag/added_to_a_range.py"
HEAD = """\
import mlx.core as mx


class C:
    def __init__(self):
        self.offset = mx.array(0)

    def step(self):
        self.offset += 1
        return self


def main(x):
    c = C()
    before = c.offset
"""
TAIL = "    return before.item()\n"


def branches(number: int) -> str:
    """One `elif` chain in the last branch of which the update stands."""
    first = "    if x < 0:\n        x = 0\n"
    middle = "".join(f"    elif x == {i}:\n        x = {i}\n" for i in range(number))
    return HEAD + first + middle + "    else:\n        c.step()\n" + TAIL


def calls(number: int) -> str:
    return f"{HEAD}    c{'.step()' * number}\n{TAIL}"


def operands(number: int) -> str:
    return f"{HEAD}    c.step()\n    x = {' + '.join(['x'] * number)}\n{TAIL}"


def source(path: Path) -> SourceFile:
    found = read(path)
    assert isinstance(found, SourceFile)
    return found


def make(path: Path, text: str) -> SourceFile:
    path.write_text(text, encoding="utf-8")
    return source(path)


@pytest.fixture(params=[branches(2_000), calls(2_200)], ids=["elif", "calls"])
def deep(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return make(tmp_path / "deep.py", str(request.param)).path


@pytest.mark.parametrize(
    "text", [branches(900), calls(900), operands(900)], ids=["elif", "calls", "operands"]
)
def test_what_python_compiles_is_analysed(text: str, tmp_path: Path) -> None:
    compile(text, "nested.py", "exec")
    result = analyse([make(tmp_path / "nested.py", text)], AnalysisOptions())
    assert result.errors == []
    assert [(f.code, f.span.line) for f in result.findings] == [("AL001", 9), ("AL101", 15)]


def test_the_deep_file_is_told_and_the_others_are_analysed(deep: Path) -> None:
    result = analyse([source(HEALTHY), source(deep)], AnalysisOptions())
    assert [(e.path, e.message) for e in result.errors] == [(deep, TOO_DEEP)]
    assert [f.code for f in result.findings] == ["AL001", "AL101"]


def test_a_deep_file_that_can_be_analysed_is_not_told_beside_one_that_cannot(
    deep: Path, tmp_path: Path
) -> None:
    nested = make(tmp_path / "nested.py", branches(200))
    result = analyse([nested, source(deep)], AnalysisOptions())
    assert [(e.path, e.message) for e in result.errors] == [(deep, TOO_DEEP)]
    assert [(f.code, f.path) for f in result.findings] == [
        ("AL001", nested.path),
        ("AL101", nested.path),
    ]


def test_explain_says_so(deep: Path) -> None:
    with pytest.raises(UserError, match=TOO_DEEP):
        look(deep, 1, None, False)


def test_what_libcst_has_no_room_for_is_not_rewritten(tmp_path: Path) -> None:
    made = make(tmp_path / "nested.py", branches(900))
    findings = analyse([made], AnalysisOptions()).findings
    repairs = [finding.repair for finding in findings if finding.repair]
    message = "cannot be rewritten: it is nested too deeply"
    assert edit(made, repairs, 100) == FileError(made.path, None, None, message)


def test_a_fix_has_the_room_of_the_analysis(tmp_path: Path) -> None:
    made = make(tmp_path / "nested.py", branches(400))
    report = run([made], lambda files: analyse(files, AnalysisOptions()))
    (change,) = report.changes
    assert change.after.text == made.text.replace("+= 1", "= self.offset + 1")
    assert (report.remaining, report.errors) == ((), ())


# Room


@pytest.mark.parametrize(
    ("size", "frames"),
    [
        (resource.RLIM_INFINITY, depth.FRAMES),
        (1 << 40, depth.FRAMES),
        (depth.BYTES_PER_FRAME * 3_000, 3_000),
        (1_000, 0),
    ],
)
def test_room_is_what_the_stack_has(
    monkeypatch: pytest.MonkeyPatch, size: int, frames: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (size, size))
    assert depth.frames() == frames


def test_the_limit_is_raised_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    before = sys.getrecursionlimit()
    monkeypatch.setattr(depth, "frames", lambda: before + 500)
    with depth.room():
        assert sys.getrecursionlimit() == before + 500
    assert sys.getrecursionlimit() == before


def test_the_limit_is_never_lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    before = sys.getrecursionlimit()
    monkeypatch.setattr(depth, "frames", lambda: 0)
    with depth.room():
        assert sys.getrecursionlimit() == before


def test_the_stack_of_another_thread_may_be_small() -> None:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(depth.frames()))
    thread.start()
    thread.join()
    assert found == [0]
