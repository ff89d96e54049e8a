"""What a test says about sizes: which are 1, or are not, where it holds and where it does not.

A fact is the text of a size that is not 1, or `sizes.one(text)` for one that is.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from aliaslint.rules.ropes import sizes
from aliaslint.rules.ropes.values import Texts

NONE: Texts = frozenset()
Facts = tuple[Texts, Texts]
_MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.Gt: ast.Lt,
    ast.LtE: ast.GtE,
    ast.GtE: ast.LtE,
    ast.Eq: ast.Eq,
    ast.NotEq: ast.NotEq,
}


def facts_of(
    test: ast.expr, token: Callable[[ast.expr], str], known: Callable[[ast.expr], Facts]
) -> Facts:
    """Return the facts where the test holds, and where it does not.

    `token` gives the text of a number, `known` what a name for a truth value stands for.
    """
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return facts_of(operand, token, known)[::-1]
        case ast.BoolOp(op=op, values=values):
            found = [facts_of(value, token, known) for value in values]
            if isinstance(op, ast.And):
                return NONE.union(*(one for one, _ in found)), NONE
            return NONE, NONE.union(*(other for _, other in found))
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            operands = [left, *comparators]
            pairs = [
                _compared(type(op), token(operands[i]), token(operands[i + 1]))
                for i, op in enumerate(ops)
            ]
            if len(pairs) == 1:
                return pairs[0]
            return NONE.union(*(one for one, _ in pairs)), NONE
    return known(test)


def _compared(op: type[ast.cmpop], left: str, right: str) -> Facts:
    if left.isdigit() and not right.isdigit() and op in _MIRRORED:
        op, left, right = _MIRRORED[op], right, left
    if not left or not right.isdigit():
        return NONE, NONE
    bound, many, one = int(right), frozenset({left}), frozenset({sizes.one(left)})
    if op is ast.Eq:
        return (one, many) if bound == 1 else (many if bound > 1 else NONE, NONE)
    if op is ast.NotEq and bound == 1:
        return many, one
    if (op is ast.Gt and bound) or (op is ast.GtE and bound > 1):
        return many, one if bound == 1 + (op is ast.GtE) else NONE
    if (op is ast.LtE and bound) or (op is ast.Lt and bound > 1):
        return one if bound == 1 + (op is ast.Lt) else NONE, many
    return NONE, NONE
