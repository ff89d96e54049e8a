"""Which folder is the project of a target: the nearest one that declares dependencies."""

from __future__ import annotations

from pathlib import Path

import pytest

from aliaslint.targets import project_roots

DECLARING = (
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "Pipfile",
    "Pipfile.lock",
    "poetry.lock",
    "uv.lock",
    "pdm.lock",
    "pylock.toml",
    "requirements.txt",
    "requirements-dev.txt",
    "requirements/base.txt",
)


@pytest.mark.parametrize("name", DECLARING)
def test_any_file_that_declares_makes_a_project(tmp_path: Path, name: str) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("")
    assert list(project_roots([tmp_path / "package"])) == [tmp_path]


def test_a_repository_that_declares_nothing_is_none(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "notes.txt").write_text("")
    assert list(project_roots([tmp_path])) == []
