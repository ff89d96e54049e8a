"""Functions that do nothing to handles are told from those that may."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from aliaslint.program.classes import ClassTable
from aliaslint.program.inert import Inert
from aliaslint.program.kinds import Kinds
from aliaslint.program.modules import ModuleTable

HELPERS = "import mlx.core as mx\ndef double(x):\n    return x * 2\n"


def judge(source: str) -> bool:
    """Return whether the function `f` of a module is inert."""
    table = ModuleTable({}, {})
    text = HELPERS + source
    module = table.add(Path("/nowhere/module.py"), ast.parse(text), text, in_target=True)
    kinds = Kinds(ClassTable(table))
    symbol = table.resolve(module, "f")
    function = kinds.find_function(symbol.key)  # type: ignore[union-attr]
    assert function is not None
    return Inert(kinds).of(function)


@pytest.mark.parametrize(
    "source",
    [
        "def f(x):\n    return x + 1",
        "def f(x):\n    return mx.softmax(x, axis=-1)",
        "def f(x):\n    y = mx.exp(x)\n    return y, y.shape[0] > 1",
        "def f(x):\n    return double(double(x))",
        "def f(x):\n    if x is None:\n        return None\n    return x[..., 1:] + 0",
        "def f(n):\n    total = mx.array(0)\n    for i in range(n):\n        total = total + i\n"
        "    return total",
    ],
)
def test_reading_and_making_is_inert(source: str) -> None:
    assert judge(source)


@pytest.mark.parametrize(
    "source",
    [
        "def f(x):\n    x += 1\n    return x + 0",
        "def f(x):\n    x[0] = 1",
        "def f(x):\n    return x",
        "def f(x):\n    y = x\n    return y",
        "def f(x):\n    y = x[0]\n    return y",
        "def f(o):\n    return o.offset",
        "def f(o):\n    o.offset = mx.array(0)",
        "def f(o):\n    o.step()",
        "def f(g, x):\n    return g(x)",
        "def f(x):\n    yield x + 1",
        "def f(x):\n    return lambda: x",
        "def f(x):\n    return max([x])",
        "def f(x):\n    return f(x)",
        "def f(d):\n    return d[0, 1]",
        "class A:\n    def __add__(self, o):\n        o += 1\ndef f(x, y):\n    return x + y",
        "class A:\n    def __iter__(self):\n        self.n += 1\ndef f(x):\n    for y in x:\n"
        "        pass",
        "kept = []\ndef f(x):\n    kept.append(x)",
        "def f(x):\n    global kept\n    kept = x",
        "def g(x):\n    x += 1\ndef f(x):\n    g(x)",
        "def f(x):\n    return mx.custom_function(double)",
    ],
)
def test_everything_else_is_not(source: str) -> None:
    assert not judge(source)
