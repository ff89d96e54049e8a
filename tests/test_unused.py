"""AL901 judges a suppression under every release of mlx-lm that the project admits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from aliaslint import engine
from aliaslint.analysis import AnalysisOptions
from aliaslint.engine import Request
from aliaslint.findings import FileError, Finding, Result, Span
from aliaslint.source.files import SourceFile

TEXT = "import mlx_lm\nx = 1  # noqa: AL101\n"
ERROR = "syntax error\n"


class Analysis:
    """Finds AL101 in line 2 if mlx-lm is a release that updates in place; records the releases."""

    def __init__(self) -> None:
        self.releases: list[str | None] = []

    def __call__(
        self, files: Sequence[SourceFile], options: AnalysisOptions, *, jobs: int = 1
    ) -> Result:
        release = options.dependency_versions.get("mlx_lm")
        self.releases.append(release)
        result = Result()
        for source in files:
            if source.text == ERROR:
                result.errors.append(FileError(source.path, 1, 1, "invalid syntax"))
            elif release and release < "0.32":
                span = Span(2, 1, 2, 2)
                found = Finding("AL101", "stale-capture", "m", "error", source.path, span)
                result.findings.append(found)
        return result


@pytest.fixture
def analysis(monkeypatch: pytest.MonkeyPatch) -> Analysis:
    own = Analysis()
    monkeypatch.setattr("aliaslint.analysis.analyse", own)
    return own


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose environment has mlx-lm 0.32.2."""
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.chdir(tmp_path)
    site = tmp_path / ".venv" / "lib" / "python3.11" / "site-packages"
    (site / "mlx_lm").mkdir(parents=True)
    (site / "mlx_lm" / "__init__.py").touch()
    (site / "mlx_lm-0.32.2.dist-info").mkdir()
    metadata = "Metadata-Version: 2.1\nName: mlx-lm\nVersion: 0.32.2\n"
    (site / "mlx_lm-0.32.2.dist-info" / "METADATA").write_text(metadata)
    (tmp_path / ".venv" / "pyvenv.cfg").touch()
    (tmp_path / "a.py").write_text(TEXT)
    return tmp_path


def declare(place: Path, requirement: str) -> None:
    text = f'[project]\nname = "p"\nversion = "1"\ndependencies = ["{requirement}"]\n'
    (place / "pyproject.toml").write_text(text)


def codes(place: Path) -> list[str]:
    report = engine.check(Request(paths=(place,), cache=False))
    return [finding.code for finding in report.findings]


def test_needed_with_an_older_release_that_is_admitted(place: Path, analysis: Analysis) -> None:
    declare(place, "mlx-lm>=0.30")
    assert codes(place) == []
    assert analysis.releases[0] is None
    assert len(analysis.releases) > 1


def test_needed_with_no_release_that_is_admitted(place: Path, analysis: Analysis) -> None:
    declare(place, "mlx-lm>=0.32")
    assert codes(place) == ["AL901"]


def test_nothing_is_declared(place: Path, analysis: Analysis) -> None:
    assert codes(place) == ["AL901"]
    assert analysis.releases == [None]


def test_no_comment_looks_unused(place: Path, analysis: Analysis) -> None:
    declare(place, "mlx-lm>=0.30")
    (place / "a.py").write_text("import mlx_lm\n")
    assert codes(place) == []
    assert analysis.releases == [None]


def test_a_file_was_not_analysed(place: Path, analysis: Analysis) -> None:
    (place / "b.py").write_text(ERROR)
    assert codes(place) == []


def test_the_dependency_is_unknown(place: Path, analysis: Analysis) -> None:
    (place / ".venv" / "pyvenv.cfg").unlink()
    assert codes(place) == []
