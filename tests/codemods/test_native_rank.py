"""RoPE is called at native rank: the reshape before and the inverse one after are dropped."""

from __future__ import annotations

import libcst as cst
import pytest
from libcst.codemod import CodemodContext
from marked import edit

IMPORTS = "import mlx.core as mx\n\n\n"
ROPE = "mx.fast.rope({}, D, traditional=False, base=1e4, scale=1.0, offset=o)"
NOT_DROPPABLE = "the reshapes around the call are not visible, inverse and used only there"
COMMENT = "a comment stands at one of the reshapes: drop the pair by hand"


def function(*lines: str) -> str:
    """Return a function over `q` of shape (B, H, L, D); `ROPE(x)` stands for the call."""
    body = ["B, H, L, D = q.shape", *lines]
    return IMPORTS + "def f(q, o):\n" + "".join(f"    {line}\n" for line in body)


def marked(array: str) -> str:
    return f"«{ROPE.format(array)}»"


DROPPED = {
    "statements on one name": (
        ["q = q.reshape(B * H, L, D)", f"q = {marked('q')}", "return q.reshape(B, H, L, D)"],
        [f"q = {ROPE.format('q')}", "return q"],
    ),
    "both assigned": (
        [
            "q = q.reshape(B * H, L, D)",
            f"q = {marked('q')}",
            "q = q.reshape(B, H, L, D)",
            "return q",
        ],
        [f"q = {ROPE.format('q')}", "return q"],
    ),
    "unflatten": (
        ["q = q.flatten(-4, -3)", f"q = {marked('q')}", "return q.unflatten(0, (B, H))"],
        [f"q = {ROPE.format('q')}", "return q"],
    ),
    "unflatten as a function": (
        ["q = mx.flatten(q, 0, 1)", f"q = {marked('q')}", "return mx.unflatten(q, 0, (B, H))"],
        [f"q = {ROPE.format('q')}", "return q"],
    ),
    "one expression": (
        [f"return {marked('q.reshape(B * H, L, D)')}.reshape(B, H, L, D)"],
        [f"return {ROPE.format('q')}"],
    ),
    "names of their own": (
        [
            "flat = q.reshape(B * H, L, D)",
            f"turned = {marked('flat')}",
            "return turned.reshape(B, H, L, D)",
        ],
        ["flat = q", f"turned = {ROPE.format('flat')}", "return turned"],
    ),
    "functions of mx and a tuple": (
        [
            "q = mx.reshape(q, (B * H, L, D))",
            f"q = {marked('q')}",
            "return mx.reshape(q, (B, H, L, D))",
        ],
        [f"q = {ROPE.format('q')}", "return q"],
    ),
    "flattened": (
        [f"return {marked('q.flatten(0, 1)')}.reshape(B, H, L, D)"],
        [f"return {ROPE.format('q')}"],
    ),
    "minus one": (
        ["q = q.reshape(-1, L, D)", f"q = {marked('q')}", "return q.reshape(B, H, L, D)"],
        [f"q = {ROPE.format('q')}", "return q"],
    ),
    "the shape kept": (
        [
            "shape = q.shape",
            "q = q.reshape(-1, L, D)",
            f"q = {marked('q')}",
            "return q.reshape(shape)",
        ],
        ["shape = q.shape", f"q = {ROPE.format('q')}", "return q"],
    ),
    "an operand that binds loosely": (
        [f"return {marked('mx.reshape(q + 1, (B * H, L, D))')}.reshape(B, H, L, D)"],
        [f"return {ROPE.format('(q + 1)')}"],
    ),
}


@pytest.mark.parametrize(("before", "after"), DROPPED.values(), ids=DROPPED)
def test_inverse_pair_is_dropped(before: list[str], after: list[str]) -> None:
    outcome = edit(function(*before), "native-rank", line_length=200)
    assert (outcome.text, outcome.refused) == (function(*after), [])


KEPT = {
    "not inverse": (
        [f"return {marked('q.reshape(B * H, L, D)')}.reshape(B, L, H, D)"],
        NOT_DROPPABLE,
    ),
    "no second reshape": ([f"return {marked('q.reshape(B * H, L, D)')}"], NOT_DROPPABLE),
    "folded array used elsewhere": (
        [
            "flat = q.reshape(B * H, L, D)",
            f"turned = {marked('flat')}",
            "return turned.reshape(B, H, L, D), flat",
        ],
        NOT_DROPPABLE,
    ),
    "something between": (
        [
            "q = q.reshape(B * H, L, D)",
            "q = q * 2",
            f"q = {marked('q')}",
            "return q.reshape(B, H, L, D)",
        ],
        NOT_DROPPABLE,
    ),
    "result used folded": (
        [
            "q = q.reshape(B * H, L, D)",
            f"q = {marked('q')}",
            "keep(q)",
            "return q.reshape(B, H, L, D)",
        ],
        NOT_DROPPABLE,
    ),
    "positions along another axis": (
        [
            "B, L, H, D = q.shape",
            "q = q.reshape(B * H, L, D)",
            f"q = {marked('q')}",
            "return q.reshape(B, L, H, D)",
        ],
        NOT_DROPPABLE,
    ),
    "a stale shape": (
        [
            "shape = q.shape",
            "q = q.transpose(0, 2, 1, 3)",
            "q = q.reshape(-1, H, D)",
            f"q = {marked('q')}",
            "return q.reshape(shape)",
        ],
        NOT_DROPPABLE,
    ),
    "a comment": (
        [
            "# fold the heads",
            "q = q.reshape(B * H, L, D)",
            f"q = {marked('q')}",
            "return q.reshape(B, H, L, D)",
        ],
        COMMENT,
    ),
    "no rope": (["q = «g(q)»", "return q"], NOT_DROPPABLE),
}


@pytest.mark.parametrize(("body", "reason"), KEPT.values(), ids=KEPT)
def test_pair_that_is_not_certain_is_kept(body: list[str], reason: str) -> None:
    program = function(*body)
    outcome = edit(program, "native-rank", line_length=200)
    assert (outcome.text, outcome.refused) == (program.replace("«", "").replace("»", ""), [reason])


def test_start_of_the_call_is_enough() -> None:
    from aliaslint.codemods.native_rank import NativeRankCommand

    before, after = DROPPED["one expression"]
    text = function(*before).replace("«", "").replace("»", "")
    command = NativeRankCommand(CodemodContext(), span=["6:12"], line_length=200)
    assert command.rewrite(cst.parse_module(text)).code == function(*after)
