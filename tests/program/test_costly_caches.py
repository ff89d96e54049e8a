"""Captures are judged even where following each cache class costs more than a function may."""

from __future__ import annotations

from pathlib import Path

import pytest

from aliaslint.analysis import AnalysisOptions, Result, analyse
from aliaslint.source.files import SourceFile, read

MODEL = """
import mlx.core as mx

class Attention:
    def __call__(self, x, cache):
        keys, values, queries = x
        offset = cache.offset
        keys, values = cache.update_and_fetch(keys, values)
        return self.attend(queries, keys, values, offset), {late}

    def attend(self, queries, keys, values, offset):
        return self.rope(queries, offset={read})

class BatchCache:
    def __init__(self, padding):
        self.offset = mx.array([-p for p in padding])
        self.keys = None

    def update_and_fetch(self, keys, values):
        self.keys = keys
        {update}
        return self.keys, values
"""
COSTLY = """
class Costly{n}(BatchCache):
    def update_and_fetch(self, keys, values):
        stored = [keys, values]
        for step in range({steps}):
            if self.keys is None:
                stored = [self.keys, stored]
            elif values is not None:
                self.keys, keys = keys, self.keys
{branches}
        {update}
        return self.keys, values
"""
BRANCH = """\
            if step == {step}:
                stored = [stored, self.keys, keys]"""
IN_PLACE, REBOUND = "self.offset += 1", "self.offset = self.offset + 1"


def program(update: str, read: str = "offset", late: str = "None") -> str:
    """A model and caches, of which so many are costly that the model is given up."""
    text = MODEL.format(update=update, read=read, late=late)
    for n in range(12):
        branches = "\n".join(BRANCH.format(step=n * 40 + k) for k in range(40))
        text += COSTLY.format(n=n, steps=n + 5, branches=branches, update=update)
    return text


def judged(tmp_path: Path, source: str) -> Result:
    path = tmp_path / "model.py"
    path.write_text(source)
    file = read(path)
    assert isinstance(file, SourceFile)
    return analyse([file], AnalysisOptions())


def captures(result: Result) -> list[tuple[int, int]]:
    return [(f.span.line, f.span.column) for f in result.findings if f.code == "AL101"]


def line_of(source: str, text: str) -> int:
    return source[: source.index(text)].count("\n") + 1


def test_the_program_is_too_costly_to_be_followed(tmp_path: Path) -> None:
    assert judged(tmp_path, program(IN_PLACE)).summary["abandoned"]


def test_a_capture_is_told_with_the_update_and_the_read(tmp_path: Path) -> None:
    source = program(IN_PLACE)
    result = judged(tmp_path, source)
    assert captures(result) == [(line_of(source, "offset = cache.offset"), 18)]
    finding = next(f for f in result.findings if f.code == "AL101")
    steps = {(step.role, step.span.line) for step in finding.trace}
    assert ("mutation", line_of(source, IN_PLACE)) in steps
    assert ("read", line_of(source, "return self.rope(")) in steps


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(program(REBOUND), id="every class rebinds"),
        pytest.param(program(IN_PLACE, read="queries"), id="the capture is not read"),
        pytest.param(
            program(IN_PLACE).replace("offset = cache.offset", "offset = cache.offset + 0"),
            id="the offset is copied",
        ),
        pytest.param(
            program(IN_PLACE, read="queries", late="cache.offset"), id="captured after the update"
        ),
    ],
)
def test_healthy_code_stays_silent(tmp_path: Path, source: str) -> None:
    assert not captures(judged(tmp_path, source))
