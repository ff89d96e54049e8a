"""The oracle of the generated programs tells the truth about small programs, and MLX agrees."""

from __future__ import annotations

import pytest

from benchmarks.fuzz.generator import RandomChoices, generate
from benchmarks.fuzz.observer import observed
from benchmarks.fuzz.oracle import observe, values_used
from benchmarks.fuzz.shrink import shrink
from benchmarks.fuzz.tree import (
    HEADER,
    Line,
    Node,
    Program,
    as_written,
    block,
    put,
    update,
    with_value_semantics,
)

IN_PLACE = block(
    "class Cache:",
    [
        block("def __init__(self):", [Line("self.offset = mx.array([1, 2])")]),
        block("def advance(self, n):", [update("self.offset", "+", "n")]),
    ],
)
FIRST = len(HEADER) + 8  # the line of the first statement of `main`, after the class


def program(*body: Node) -> Program:
    return IN_PLACE, block("def main():", [Line("c = Cache()"), *body])


def stale_statements(*body: Node) -> list[int]:
    """Return which simple statements of `body` (from 0) read a changed value in some run."""
    return sorted(line - FIRST for line in observe(program(*body), 30).stale)


@pytest.mark.parametrize(
    ("body", "stale"),
    [
        ([Line("o = c.offset"), Line("c.advance(5)"), Line("use(o)")], [2]),
        ([Line("o = c.offset + 0"), Line("c.advance(5)"), Line("use(o)")], []),
        ([Line("o = c.offset"), Line("use(o)"), Line("c.advance(5)")], []),
        ([Line("o = c.offset"), update("o", "+", "5"), Line("use(c.offset)")], [2]),
        ([Line("o = c.offset"), put("o", "0", "5"), Line("use(c.offset)")], [2]),
        ([Line("o = c.offset"), Line("c.advance(5)"), Line("c.offset = o + 1")], [2]),
        ([Line("c.advance(5)"), Line("use(c.offset)")], []),
        ([Line("f = lambda: use(c.offset)"), Line("c.advance(5)"), Line("f()")], []),
        ([Line("o = c.offset"), Line("c.advance(5)"), Line("use(o.shape)")], []),
    ],
)
def test_oracle_names_the_lines_that_read_a_changed_value(
    body: list[Node], stale: list[int]
) -> None:
    assert stale_statements(*body) == stale


def test_what_is_computed_from_a_stale_read_is_not_stale_again() -> None:
    body = [Line("o = c.offset"), Line("c.advance(5)"), Line("d = o + 1"), Line("use(d)")]
    assert stale_statements(*body) == [2]


def test_oracle_takes_every_path() -> None:
    body = [
        Line("o = c.offset"),
        block("if coin():", [Line("c.advance(5)")]),
        Line("use(o)"),
    ]
    assert stale_statements(*body) == [3]


def test_update_of_a_stale_binding_explains_its_later_read() -> None:
    body = [Line("o = c.offset"), Line("c.advance(5)"), update("o", "+", "3"), Line("use(o)")]
    truth = observe(program(*body), 3)
    assert sorted(line - FIRST for line in truth.lines) == [2, 3]


@pytest.mark.parametrize("seed", range(60))
def test_the_small_array_behaves_as_mlx_does(seed: int) -> None:
    pytest.importorskip("mlx.core")
    made = generate(RandomChoices(seed))
    for source in (as_written(made), with_value_semantics(made)):
        small, real = (values_used(source, str(seed), real) for real in (False, True))
        assert [wrapped(v) for v in small] == [wrapped(v) for v in real]


def wrapped(value: tuple[object, ...]) -> tuple[object, ...]:
    """Return `value` as 32-bit integers: that is what MLX counts in."""
    return tuple((v + 2**31) % 2**32 - 2**31 if type(v) is int else v for v in value)


@pytest.mark.parametrize("seed", range(60))
def test_both_writings_have_the_same_lines(seed: int) -> None:
    made = generate(RandomChoices(seed))
    written, valued = as_written(made).split("\n"), with_value_semantics(made).split("\n")
    assert [(a, b) for a, b in zip(written, valued, strict=True) if a != b and "= " not in a] == []


@pytest.mark.parametrize("seed", range(150))
def test_two_oracles_agree(seed: int) -> None:
    """They may differ where an item assignment happens to leave the value that it would have."""
    made = generate(RandomChoices(seed))
    by_value, by_binding = set(observe(made, 12).stale), observed(made, 12)
    assert by_value <= by_binding
    assert by_value == by_binding or "[0] = " in as_written(made)


def test_same_seed_same_program() -> None:
    assert as_written(generate(RandomChoices(7))) == as_written(generate(RandomChoices(7)))


def test_shrinking_leaves_what_is_needed() -> None:
    made = program(
        Line("d = Cache()"),
        Line("o = c.offset"),
        block("if coin():", [Line("c.advance(5)"), Line("use(d.offset)")]),
        Line("use(o)"),
    )

    def keeps(smaller: Program) -> bool:
        try:
            return bool(observe(smaller, 10).stale)
        except Exception:
            return False

    body = shrink(made, keeps)[-1]
    assert body == block(
        "def main():",
        [Line("c = Cache()"), Line("o = c.offset"), Line("c.advance(5)"), Line("use(o)")],
    )
