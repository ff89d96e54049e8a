"""`rearrange(x, "b h l d -> (b h) l d")`: shapes that a pattern names."""

from __future__ import annotations

import ast
import re

from aliaslint.rules.ropes import sizes
from aliaslint.rules.ropes.arrays import MakeFold
from aliaslint.rules.ropes.values import UNKNOWN, Value, reshaped


def rearranged(value: Value, pattern: ast.expr, fold: MakeFold) -> Value:
    """Return the array in the shape that a literal pattern gives it, UNKNOWN for any other."""
    match pattern:
        case ast.Constant(value=str(text)) if text.count("->") == 1 and "..." not in text:
            before, after = map(_groups, text.split("->"))
        case _:
            return UNKNOWN
    old = tuple(sizes.product(group) for group in before)
    new = tuple(sizes.product(group) for group in after)
    folded = reshaped(Value(dims=old), new, fold(value.dims))
    kept = value.fold if old[:1] == new[:1] else None
    return Value(dims=new, fold=folded.fold or kept)


def _groups(side: str) -> list[list[str]]:
    """Return the names of each dimension: `(b h) l d` gives [["b", "h"], ["l"], ["d"]]."""
    found = re.findall(r"\(([^)]*)\)|(\S+)", side)
    return [[f"'{name}" for name in (group or single).split()] or ["1"] for group, single in found]
