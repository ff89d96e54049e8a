"""Small programs that a test writes: analysed whole, and executed under MLX."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from aliaslint.analysis import AnalysisOptions, analyse
from aliaslint.findings import Result
from aliaslint.source.files import SourceFile, from_bytes


def source_of(text: str) -> SourceFile:
    source = from_bytes(Path("/project/program.py"), text.encode())
    assert isinstance(source, SourceFile)
    return source


def analysed(files: Sequence[SourceFile]) -> Result:
    return analyse(files, AnalysisOptions(), all_roots=True)


def names_of(text: str) -> dict[str, Any]:
    """Return the names that a program leaves behind; skips where MLX is missing."""
    pytest.importorskip("mlx.core")
    scope: dict[str, Any] = {"__name__": "program"}
    exec(compile(text, "program.py", "exec", dont_inherit=True), scope)
    return scope


def executed(text: str) -> Any:
    """Return what the function `run` of a program gives back."""
    return names_of(text)["run"]()
