"""AL902: which ruff configurations select PLR6104, and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from aliaslint.analysis import AnalysisOptions
from aliaslint.rules import Project
from aliaslint.rules.al902 import find_project
from aliaslint.source.config import Config


def places(root: Path) -> list[tuple[str, int, int]]:
    project = Project((root,), (root,), (), AnalysisOptions(), Config(root))
    return [(f.path.name, f.span.line, f.span.column) for f in find_project(project)]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        pytest.param('lint.select = ["E", "PLR6104"]\n', (1, 21), id="the code itself"),
        pytest.param('select = ["PLR6104"]\n', (1, 11), id="without a lint table"),
        pytest.param('[lint]\nextend-select = [\n  "PLR6104",\n]\n', (3, 3), id="over lines"),
        pytest.param('preview = true\nlint.select = ["PLR"]\n', (2, 16), id="a prefix"),
        pytest.param('[lint]\npreview = true\nselect = ["ALL"]\n', (3, 11), id="ALL"),
        pytest.param(
            'preview = true\n[lint]\nselect = ["PLR61"]\nignore = ["PLR6"]\n',
            (3, 11),
            id="the longer selector wins",
        ),
        pytest.param(
            'preview = true\n[lint]\nselect = ["PL"]\nignore = ["ALL"]\n',
            (3, 11),
            id="ALL is the shortest",
        ),
    ],
)
def test_points_at_the_selector(tmp_path: Path, text: str, place: tuple[int, int]) -> None:
    (tmp_path / "ruff.toml").write_text(text, encoding="utf-8")
    assert places(tmp_path) == [("ruff.toml", *place)]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('lint.select = ["E"]\n', id="not selected"),
        pytest.param('lint.select = ["PLR"]\n', id="a prefix without preview"),
        pytest.param(
            'preview = true\nlint.explicit-preview-rules = true\nlint.select = ["PL"]\n',
            id="a prefix where preview rules are explicit",
        ),
        pytest.param(
            'preview = true\nlint.select = ["PL"]\nlint.ignore = ["PLR6104"]\n', id="ignored"
        ),
        pytest.param('lint.select = ["PLR6104"]\nlint.ignore = ["PLR6104"]\n', id="both"),
        pytest.param("lint.select = 3\n", id="nonsense"),
        pytest.param("[lint", id="broken"),
        pytest.param("", id="empty"),
    ],
)
def test_is_silent(tmp_path: Path, text: str) -> None:
    (tmp_path / "ruff.toml").write_text(text, encoding="utf-8")
    assert places(tmp_path) == []


def test_reads_pyproject(tmp_path: Path) -> None:
    text = '[tool.ruff.lint]\nselect = ["PLR6104"]\n'
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    assert places(tmp_path) == [("pyproject.toml", 2, 11)]


def test_another_tool_is_not_ruff(tmp_path: Path) -> None:
    text = '[tool.other]\nselect = ["PLR6104"]\n# ruff\n'
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    assert places(tmp_path) == []


@pytest.mark.parametrize("name", [".ruff.toml", "ruff.toml"])
def test_ruff_toml_hides_pyproject(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("line-length = 100\n", encoding="utf-8")
    text = '[tool.ruff.lint]\nselect = ["PLR6104"]\n'
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    assert places(tmp_path) == []
