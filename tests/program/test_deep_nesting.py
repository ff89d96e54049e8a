"""A file that is nested deeper than the passes are made for costs one line, not the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from aliaslint.analysis import AnalysisOptions, analyse
from aliaslint.errors import UserError
from aliaslint.explain.looking import look
from aliaslint.source.files import SourceFile, read
from aliaslint.source.parsing import TOO_DEEP

CHAIN = "if x == 0:\n    y = 0\n" + "".join(f"elif x == {i}:\n    y = {i}\n" for i in range(400))
CALLS = "y = x" + ".f()" * 900 + "\n"
HEALTHY = Path(__file__).parents[2] / "fixtures/AL101/flag/added_to_a_range.py"


@pytest.fixture(params=[CHAIN, CALLS], ids=["elif", "calls"])
def deep(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "deep.py"
    path.write_text(str(request.param), encoding="utf-8")
    return path


def source(path: Path) -> SourceFile:
    found = read(path)
    assert isinstance(found, SourceFile)
    return found


def test_the_deep_file_is_told_and_the_others_are_analysed(deep: Path) -> None:
    result = analyse([source(HEALTHY), source(deep)], AnalysisOptions())
    assert [(e.path, e.message) for e in result.errors] == [(deep, TOO_DEEP)]
    assert [f.code for f in result.findings] == ["AL001", "AL101"]


def test_explain_says_so(deep: Path) -> None:
    with pytest.raises(UserError, match=TOO_DEEP):
        look(deep, 1, None, False)
