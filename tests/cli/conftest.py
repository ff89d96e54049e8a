"""What the tests of the command line share."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_tools import find_marks

from aliaslint import analysis


@pytest.fixture
def marks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the analysis find marks."""
    monkeypatch.setattr(analysis, "analyse", find_marks)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory outside every environment and repository."""
    monkeypatch.chdir(tmp_path)
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path
