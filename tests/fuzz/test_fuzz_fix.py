"""After `fix`, a generated program gives the result that value semantics gives."""

from __future__ import annotations

import pytest

from benchmarks.fuzz.__main__ import numbered
from benchmarks.fuzz.generator import RandomChoices, generate
from benchmarks.fuzz.repair import check


@pytest.mark.slow
@pytest.mark.parametrize("group", range(20))
def test_fixed_program_computes_with_value_semantics(group: int) -> None:
    for number in range(10):
        program = generate(RandomChoices(f"fix:{group * 10 + number}"))
        assert check(program) in {"", "unrepaired"}, numbered(program)
