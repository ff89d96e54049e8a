"""`a op= e` and its rewriting mean the same: by structure, and executed under MLX.

ALIASLINT_EXAMPLES says how many programs are tried (a few hundred by default).
"""

from __future__ import annotations

import ast
import copy
import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marked import edit

EXAMPLES = int(os.environ.get("ALIASLINT_EXAMPLES", "300"))
OPERATORS = ["+", "-", "*", "@", "/", "//", "%", "**", "&", "|", "^", "<<", ">>"]
TARGETS = ["a", "self.offset", "d['k']", "rows[0]", "rows[0].offset", "self.parts[1:]"]

WRAPPERS = [
    "{0} if {1} else {2}",
    "not {0}",
    "-{0}",
    "~{0}",
    "+{0}",
    "({0})",
    "{0} and {1}",
    "{0} or {1}",
    "{0} < {1}",
    "{0} <= {1} != {2}",
    "{0} in ({1}, {2})",
    "{0} is not {1}",
    "{0}, {1}",
    "*{0}, {1}",
    "lambda: {0}",
    "lambda x={0}: {1}",
    "(y := {0})",
    "[{0} for i in {1} if {2}]",
    "sum({0} for i in {1})",
    "f({0}, k={1})",
    "{0}[{1}]",
    "{0}[{1}:{2}]",
    "{0}.T",
    "(yield {0})",
    "yield",
    "yield {0}",
    "yield from {0}",
    "await {0}",
    'f"{{{0}}}"',
    "'x' 'y'",
    "{0} \\\n    - {1}",
    "(\n    {0}  # why\n    - {1}\n)",
    "f(\n    {0},\n)",
]


def _parses(expression: str) -> bool:
    try:
        ast.parse(f"async def f():\n    a += {expression}\n")
    except SyntaxError:
        return False
    return True


def _grown(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    wrapped = st.builds(str.format, st.sampled_from(WRAPPERS), parts, parts, parts)
    binary = st.builds("{} {} {}".format, parts, st.sampled_from(OPERATORS), parts)
    return (wrapped | binary | binary).filter(_parses)


ATOMS = st.sampled_from(["b", "c", "1", "2.5", "keys.shape[2]", "g(b)", "None", "'s'", "..."])
EXPRESSIONS = st.recursive(ATOMS, _grown, max_leaves=8)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.sampled_from(TARGETS), st.sampled_from(OPERATORS), EXPRESSIONS)
def test_the_structure_is_target_op_value(target: str, operator: str, value: str) -> None:
    update = f"{target} {operator}= {value}"
    before = ast.parse(f"async def f():\n    {update}\n").body[0].body[0]  # type: ignore[attr-defined]

    outcome = edit(f"async def f():\n    «{update}»  # end\n", "rebind")

    after = ast.parse(outcome.text).body[0].body[-1]  # type: ignore[attr-defined]
    hoisted = len(ast.parse(outcome.text).body[0].body) > 1  # type: ignore[attr-defined]
    assert isinstance(after, ast.Assign)
    assert isinstance(after.value, ast.BinOp)
    assert ast.dump(after.value.op) == ast.dump(before.op)
    assert ast.dump(after.value.right) == ast.dump(before.value)
    assert ast.unparse(after.value.left) == ast.unparse(after.targets[0])
    assert hoisted or ast.unparse(after.targets[0]) == ast.unparse(before.target)
    assert outcome.text.endswith("  # end\n")


DTYPES = ["int8", "int32", "int64", "uint8", "uint32", "float16", "bfloat16", "float32", "bool_"]
SHAPES = ["()", "(1,)", "(3,)", "(2, 3)", "(3, 1)", "(2, 2)", "(4,)", "(3, 3)"]
SCALARS = ["0", "1", "2", "-1", "3", "0.5", "True", "np.float32(1.5)", "np.int64(2)", "None"]
MLX_WRAPPERS = [
    "-{0}",
    "({0})",
    "{0} if flag else {1}",
    "mx.sum({0})",
    "mx.maximum({0}, {1})",
    "({0})[0]",
    "({0}).astype(mx.float32)",
    "{0} < {1}",
    "not {0}",
    "{0} and {1}",
    "~{0}",
    "[{0}][0]",
    "(y := {0})",
    "a",
    "a[0]",
    "mx.array({0})",
]


def _array(dtype: str, shape: str) -> str:
    return f"made({shape}, mx.{dtype})"


ARRAYS = st.builds(_array, st.sampled_from(DTYPES), st.sampled_from(SHAPES))
MLX_ATOMS = ARRAYS | st.sampled_from(SCALARS)


def _grown_mlx(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    wrapped = st.builds(str.format, st.sampled_from(MLX_WRAPPERS), parts, parts)
    operators = st.sampled_from([op for op in OPERATORS if op != "**"])
    return (wrapped | st.builds("{} {} {}".format, parts, operators, parts)).filter(_parses)


MLX_EXPRESSIONS = st.recursive(MLX_ATOMS, _grown_mlx, max_leaves=4)


def _run(statement: str, start: str) -> tuple[Any, ...]:
    """Return what `a` is after the statement, or which exception it raised."""
    mx = pytest.importorskip("mlx.core")
    np = pytest.importorskip("numpy")

    def made(shape: tuple[int, ...], dtype: Any) -> Any:
        size = int(np.prod(shape))
        return (mx.arange(1, size + 1).reshape(shape) % 5).astype(dtype)

    scope = {"mx": mx, "np": np, "made": made, "flag": True}
    try:
        exec(f"a = {start}\n{statement}\n", scope)
        value = scope["a"]
        if not isinstance(value, mx.array):
            return type(value).__name__, copy.copy(value)
        mx.eval(value)
        bits = np.array(value.astype(mx.float32))
    except Exception as error:
        return (type(error).__name__,)
    return str(value.dtype), value.shape, bits.tobytes()


@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::RuntimeWarning")
@settings(max_examples=EXAMPLES, deadline=None)
@given(ARRAYS, st.sampled_from(OPERATORS), MLX_EXPRESSIONS)
def test_executed_under_mlx(start: str, operator: str, value: str) -> None:
    statement = f"a {operator}= {value}"
    rebound = edit(f"«{statement}»\n", "rebind").text

    in_place, bound = _run(statement, start), _run(rebound, start)

    if operator == "/" and in_place != bound:
        # The one difference: in place, division keeps the dtype, so that of integers raises.
        assert in_place == ("ValueError",)
        assert not any(name in start for name in ("float", "bfloat"))
        assert "float" in bound[0]
    else:
        assert in_place == bound
