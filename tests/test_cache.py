"""Stored results: used when nothing changed, and never otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from aliaslint import cache, engine
from aliaslint.analysis import AnalysisOptions
from aliaslint.engine import Request
from aliaslint.findings import FileError, Finding, Named, Repair, Result, Span, Step
from aliaslint.report import Report
from aliaslint.rules import Selection
from aliaslint.source.files import SourceFile

RESULT = Result(
    findings=[
        Finding(
            "AL101",
            "stale-capture",
            "é “message”",
            "error",
            Path("/a.py"),
            Span(1, 2, 3, 4),
            (Step("capture", Path("/b.py"), Span(5, 6, 7, 8), "here"),),
            Repair(
                "store-back", Span(9, 1, 9, 2), "unsafe", "why", "keep-int", "self.offset", True
            ),
        ),
        Finding("AL202", "aliased-operand", "m", "error", Path("/c.py"), Span(1, 1, 1, 2)),
        Finding(
            "AL101",
            "stale-capture",
            "m",
            "error",
            Path("/a.py"),
            Span(2, 1, 2, 2),
            repair=Repair(
                "copy-after",
                Span(2, 1, 2, 9),
                "safe",
                names=(Named("o", "array"), Named("rest", "keep-any", many=True)),
                also=(Span(4, 1, 4, 9), Span(5, 1, 5, 9)),
                path=Path("/b.py"),
            ),
        ),
        Finding(
            "AL101",
            "stale-capture",
            "m",
            "error",
            Path("/a.py"),
            Span(3, 1, 3, 2),
            obstacle="this only holds the array",
        ),
    ],
    errors=[FileError(Path("/d.py"), 1, None, "invalid syntax")],
    summary={"unresolved": 3, "dependencies": []},
)


class Counted:
    """An analysis that finds nothing and counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(
        self, files: Sequence[SourceFile], options: AnalysisOptions, *, jobs: int
    ) -> Result:
        self.calls += 1
        return Result()


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    analysis = Counted()
    monkeypatch.setattr("aliaslint.analysis.analyse", analysis)
    return analysis


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ALIASLINT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    project = tmp_path / "project"
    (project / "pkg").mkdir(parents=True)
    (project / "pkg" / "a.py").write_text("import mlx_lm\n")
    (project / "pyproject.toml").write_text("[project]\nname = 'p'\n")
    monkeypatch.chdir(project)
    return project


def check(place: Path, **changes: object) -> Report:
    request = Request(paths=(place / "pkg",))
    return engine.check(replace(request, **changes))  # type: ignore[arg-type]


def test_what_is_stored_comes_back(place: Path) -> None:
    cache.store("name", RESULT)
    assert cache.load("name") == RESULT


def test_an_unchanged_run_is_not_analysed(place: Path, counted: Counted) -> None:
    check(place)
    check(place)
    assert counted.calls == 1


def test_a_touched_file_is_unchanged(place: Path, counted: Counted) -> None:
    check(place)
    (place / "pkg" / "a.py").touch()
    check(place)
    assert counted.calls == 1


def test_another_selection_needs_no_analysis(place: Path, counted: Counted) -> None:
    check(place)
    check(place, selection=Selection(select=("AL101",)))
    assert counted.calls == 1


def test_what_captures_outlive_is_looked_for_when_it_is_asked_for(
    place: Path, counted: Counted
) -> None:
    check(place)
    check(place, selection=Selection(select=("AL1",)))  # AL102 among them
    assert counted.calls == 2


def test_without_the_cache_every_run_is_analysed(place: Path, counted: Counted) -> None:
    check(place)
    check(place, cache=False)
    assert counted.calls == 2


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("pkg/a.py", "import mlx_lm\n\n", id="a file"),
        pytest.param("pkg/b.py", "", id="one more file"),
        pytest.param("pyproject.toml", "[tool.aliaslint]\nmlx-lm = '0.31.3'\n", id="configuration"),
        pytest.param("requirements.txt", "mlx-lm==0.31.3\n", id="requirements"),
        pytest.param("ruff.toml", "lint.select = ['PLR6104']\n", id="another tool"),
    ],
)
def test_a_change_of_the_project_is_analysed(
    place: Path, counted: Counted, name: str, text: str
) -> None:
    check(place)
    (place / name).write_text(text)
    check(place)
    assert counted.calls == 2


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("requirements.txt", "-r needs/all.txt\n"),
        ("requirements.txt", "mlx-lm\n-c needs/all.txt\n"),
        ("setup.cfg", "[options]\ninstall_requires = file: needs/all.txt\n"),
    ],
)
def test_a_change_of_an_included_file_is_analysed(
    place: Path, counted: Counted, name: str, text: str
) -> None:
    (place / name).write_text(text)
    (place / "needs").mkdir()
    (place / "needs" / "all.txt").write_text("mlx-lm==0.31.3\n")
    check(place)
    check(place)
    assert counted.calls == 1
    (place / "needs" / "all.txt").write_text("mlx-lm>=0.32.0\n")
    check(place)
    assert counted.calls == 2


def test_a_change_of_a_dependency_is_analysed(place: Path, counted: Counted) -> None:
    package = place / ".venv" / "lib" / "python3.11" / "site-packages" / "mlx_lm"
    package.mkdir(parents=True)
    (place / ".venv" / "pyvenv.cfg").touch()
    (package / "__init__.py").write_text("x = 1\n")
    check(place)
    check(place)
    assert counted.calls == 1
    (package / "__init__.py").write_text("x = 11\n")
    check(place)
    assert counted.calls == 2


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"findings": [[1]], "errors": []}'])
def test_a_broken_entry_is_analysed_again(place: Path, counted: Counted, text: str) -> None:
    check(place)
    (entry,) = cache.folder().iterdir()
    entry.write_text(text)
    check(place)
    assert counted.calls == 2


def test_a_folder_that_cannot_be_written_is_no_error(
    place: Path, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALIASLINT_CACHE_DIR", str(place / "pyproject.toml"))
    assert check(place).findings == []
    assert counted.calls == 1


def test_old_entries_go(place: Path) -> None:
    for number in range(60):
        cache.store(f"name{number}", Result())
    assert len(list(cache.folder().iterdir())) == 50


def test_an_unchanged_run_loads_no_analysis(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("def f(cache):\n    return cache.offset\n", "utf-8")
    script = (
        "import sys\n"
        "from aliaslint.cli.main import main\n"
        "try:\n"
        "    main(['check', sys.argv[1]])\n"
        "except SystemExit:\n"
        "    pass\n"
        "print([m for m in sys.modules if m.startswith(('aliaslint.flow', 'aliaslint.lower'))])\n"
    )
    environment = {**os.environ, "ALIASLINT_CACHE_DIR": str(tmp_path / "stored")}
    runs = [
        subprocess.run(
            [sys.executable, "-c", script, str(tmp_path)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()[-1]
        for _ in range(2)
    ]
    assert runs[0] != "[]"
    assert runs[1] == "[]"
