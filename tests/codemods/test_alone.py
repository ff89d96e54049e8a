"""Each codemod works alone, under `python -m libcst.tool codemod -x`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REBIND = "aliaslint.codemods.rebind.RebindCommand"
SNAPSHOT = "aliaslint.codemods.snapshot.SnapshotCommand"
NATIVE_RANK = "aliaslint.codemods.native_rank.NativeRankCommand"
EVERY = "aliaslint.codemods.every.EveryCommand"

MODULE = """\
import mlx.core as mx


class Cache:
    def __init__(self, rows):
        self.offset = mx.array([0] * rows)
        self.steps = 0

    def update_and_fetch(self, keys, values):
        self.offset += keys.shape[2]
        self.steps += 1
        return keys, values


def attend(cache, queries, keys, values):
    start = cache.offset
    keys, values = cache.update_and_fetch(keys, values)
    return queries + start[:, None]


def make(rows):
    return Cache(rows)
"""


def tool(command: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "libcst.tool", "codemod", "-x", "--no-format"]
    return subprocess.run(
        [*line, command, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "module.py"
    path.write_text(MODULE)
    return path


def changed(path: Path) -> list[str]:
    """Return the lines that are not in the module as it was."""
    return [
        line.strip() for line in path.read_text().splitlines() if line not in MODULE.splitlines()
    ]


@pytest.mark.parametrize("command", [REBIND, SNAPSHOT, NATIVE_RANK, EVERY])
def test_help_explains_the_command(command: str, tmp_path: Path) -> None:
    result = tool(command, "--help", folder=tmp_path)

    assert result.returncode == 0
    assert "--span LINE:COLUMN" in result.stdout
    assert "aliaslint analysis" in " ".join(result.stdout.split())


def test_rebinding_at_a_span(module: Path) -> None:
    result = tool(REBIND, "--span", "11:9", "--jobs", "1", str(module), folder=module.parent)

    assert result.returncode == 0, result.stderr
    assert changed(module) == ["self.steps = self.steps + 1"]


def test_copying_at_a_span(module: Path) -> None:
    result = tool(SNAPSHOT, "--span", "16:13-25", "--jobs", "1", str(module), folder=module.parent)

    assert result.returncode == 0, result.stderr
    assert changed(module) == ["start = mx.array(cache.offset)"]


def test_a_span_that_holds_nothing_is_a_warning(module: Path) -> None:
    result = tool(REBIND, "--span", "1:1", "--jobs", "1", str(module), folder=module.parent)

    assert "line 1: not rewritten: this is no augmented assignment" in result.stderr
    assert changed(module) == []


def test_a_span_that_cannot_be_read_fails(module: Path) -> None:
    result = tool(REBIND, "--span", "eleven", "--jobs", "1", str(module), folder=module.parent)

    assert result.returncode != 0
    assert "'eleven' is not LINE:COLUMN" in result.stderr
    assert changed(module) == []


def test_rebinding_what_the_analysis_finds(module: Path) -> None:
    result = tool(REBIND, "--jobs", "1", str(module), folder=module.parent)

    assert result.returncode == 0, result.stderr
    assert changed(module) == ["self.offset = self.offset + keys.shape[2]"]


def test_copying_what_the_analysis_finds(module: Path) -> None:
    result = tool(SNAPSHOT, "--jobs", "1", str(module), folder=module.parent)

    assert result.returncode == 0, result.stderr
    assert changed(module) in (
        ["start = mx.array(cache.offset)"],
        ["start = cache.offset + 0"],
    )
