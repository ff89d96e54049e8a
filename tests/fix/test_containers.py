"""Arrays that come in a container, from a function in another file or in a dependency."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent

import pytest

from aliaslint import fix
from aliaslint.analysis import AnalysisOptions, analyse
from aliaslint.findings import Result
from aliaslint.fix import FixOptions, FixReport
from aliaslint.source.files import SourceFile, read

HELPERS = """\
def both(c):
    return c.offset, c.padding


def passed_on(c):
    return both(c)


def by_name(c):
    return {"offset": c.offset}


class Around:
    def __init__(self, c):
        self.c = c

    def __enter__(self):
        return self.c.offset, 1

    def __exit__(self, *raised):
        return None
"""
CACHES = """\
import mlx.core as mx


class Batched:
    def __init__(self):
        self.offset = mx.array([4])
        self.padding = mx.array([1])

    def update_and_fetch(self, n):
        self.offset += n
        self.padding += n


class Plain:
    def __init__(self):
        self.offset = 4
        self.padding = 1

    def update_and_fetch(self, n):
        self.offset += n
"""
MAIN = """\
from caches import Batched, Plain
from helpers import Around, both, by_name, passed_on


def run(c):
{capture}
    c.update_and_fetch(3)
    return {read}


if __name__ == "__main__":
    print(int(run(Batched())), run(Plain()))
"""


@dataclass(frozen=True, slots=True)
class Program:
    """A program of three files; those of `packages` are dependencies of the others."""

    folder: Path
    packages: frozenset[str] = frozenset()

    def write(self, capture: str, read: str) -> None:
        main = MAIN.format(capture=indent(capture, "    "), read=read)
        for name, text in {"main": main, "caches": CACHES, "helpers": HELPERS}.items():
            place = self.folder / ("deps" if name in self.packages else "target") / f"{name}.py"
            if name in self.packages:
                place = place.with_suffix("") / "__init__.py"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)

    def files(self) -> list[SourceFile]:
        paths = sorted((self.folder / "target").glob("*.py"))
        return [source for path in paths if isinstance(source := read(path), SourceFile)]

    def fix(self, strategy: fix.Strategy = "snapshot") -> FixReport:
        """Fix the program in its folder."""
        roots = {name: self.folder / "deps" / name for name in self.packages}

        def analysis(files: Sequence[SourceFile]) -> Result:
            return analyse(files, AnalysisOptions(dependency_roots=roots))

        report = fix.run(self.files(), analysis, FixOptions(strategy=strategy))
        assert not fix.write(report.changes)
        return report

    def output(self) -> str:
        pytest.importorskip("mlx.core")
        paths = [self.folder / "target", self.folder / "deps"]
        code = f"import runpy, sys; sys.path[:0] = {[*map(str, paths)]}; "
        code += "runpy.run_module('main', run_name='__main__')"
        ran = subprocess.run([sys.executable, "-Bc", code], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.strip()


# Capture and read, and the line that is copied or added.
UNPACKED = {
    "tuple": ("offset, padding = both(c)", "offset * 1", "    offset = copy.copy(offset)"),
    "through two": ("offset, _ = passed_on(c)", "offset * 1", "    offset = copy.copy(offset)"),
    "star": ("*held, _ = both(c)", "held[0] * 1", "    held = [copy.copy(each) for each in held]"),
    "one line": (
        "if c: offset, _ = both(c)",
        "offset * 1",
        "    if c: offset, _ = both(c); offset = copy.copy(offset)",
    ),
    "attribute": ("c.start, _ = both(c)", "c.start * 1", "    c.start = copy.copy(c.start)"),
}
# The same, which is copied in the helper where that can be written to.
HELD = {
    "unpacked later": (
        "held = both(c)\noffset, _ = held",
        "offset * 1",
        "    offset = copy.copy(offset)",
    ),
    "kept and unpacked": (
        "held = offset, _ = both(c)",
        "offset * 1",
        "    offset = copy.copy(offset)",
    ),
    "loop": (
        "for offset in both(c):\n    break",
        "offset * 1",
        "        offset = copy.copy(offset)",
    ),
    "loop on one line": (
        "for offset, _ in [both(c)]: pass",
        "offset * 1",
        "    for offset, _ in [both(c)]: offset = copy.copy(offset); pass",
    ),
    "context": (
        "with Around(c) as (offset, _):\n    pass",
        "offset * 1",
        "        offset = copy.copy(offset)",
    ),
    "values": ("(offset,) = by_name(c).values()", "offset * 1", "    offset = copy.copy(offset)"),
    "tuple": ("held = both(c)", "held[0] * 1", ""),
    "through two": ("held = passed_on(c)", "held[0] * 1", ""),
    "dictionary": ("held = by_name(c)", 'held["offset"] * 1', ""),
    "walrus": ("if held := both(c): pass", "held[0] * 1", ""),
    "kept, unpacked and read": ("held = offset, _ = both(c)", "held[0] * 1", ""),
    "unpacked too late": (
        "held = both(c)\nc.update_and_fetch(0)\noffset, _ = held",
        "offset * 1",
        "",
    ),
    "into an element": ("held = {}\nheld[0], _ = both(c)", "held[0] * 1", ""),
    "pattern": ("match both(c):\n    case (offset, _): pass", "offset * 1", ""),
    "comprehension": ("held = [o for o, _ in [both(c)]]", "held[0] * 1", ""),
}


def added(report: FixReport) -> dict[str, list[str]]:
    """Return the lines that a fix wrote, by file, without imports."""
    found = {}
    for change in report.changes:
        lines = change.diff("x", 0).splitlines()[2:]
        new = [line[1:] for line in lines if line.startswith("+") and line.strip("+")]
        found[change.after.path.name] = [line for line in new if not line.startswith("import")]
    return found


@pytest.mark.parametrize("packages", [set(), {"helpers"}], ids=["target", "dependency"])
@pytest.mark.parametrize("case", UNPACKED.values(), ids=UNPACKED)
def test_what_the_caller_unpacks_is_copied_there(
    case: tuple[str, str, str], packages: set[str], tmp_path: Path
) -> None:
    program = Program(tmp_path, frozenset(packages))
    program.write(*case[:2])
    before = program.output()

    report = program.fix()

    assert added(report) == {"main.py": [case[2]]}
    assert (before, program.output()) == ("7 4", "4 4")
    assert program.fix().changes == ()


@pytest.mark.parametrize("case", HELD.values(), ids=HELD)
def test_what_is_kept_whole_is_copied_in_the_helper(
    case: tuple[str, str, str], tmp_path: Path
) -> None:
    program = Program(tmp_path)
    program.write(*case[:2])
    before = program.output()

    report = program.fix()

    assert list(added(report)) == ["helpers.py"]
    assert not any("AL101" in f.code for f in report.remaining)
    assert (before, program.output()) == ("7 4", "4 4")
    assert program.fix().changes == ()


@pytest.mark.parametrize("case", HELD.values(), ids=HELD)
def test_what_a_dependency_gives_whole_is_copied_or_said(
    case: tuple[str, str, str], tmp_path: Path
) -> None:
    program = Program(tmp_path, frozenset({"helpers"}))
    program.write(*case[:2])

    report = program.fix()

    if case[2]:
        assert added(report) == {"main.py": [case[2]]}
        assert program.output() == "4 4"
    else:
        assert report.changes == ()
        reasons = {s.finding.code: s.reason for s in report.skipped}
        assert [f.code for f in report.remaining if f.code == "AL101"] == ["AL101"]
        assert reasons["AL101"].startswith(("this only holds the array", "an edit was tried"))
    assert program.fix().changes == ()


@pytest.mark.parametrize("strategy", ["auto", "snapshot", "both"])
def test_an_update_in_a_dependency_cannot_be_rebound(
    strategy: fix.Strategy, tmp_path: Path
) -> None:
    program = Program(tmp_path, frozenset({"caches"}))
    program.write("offset, padding = both(c)\nheld = passed_on(c)", "(offset + held[0]) // 2")

    report = program.fix(strategy)

    assert list(added(report)) == ["helpers.py"]
    assert added(report)["helpers.py"] == ["    return c.offset + 0, c.padding"]
    assert program.output() == "4 4"
