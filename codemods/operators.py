"""The thirteen augmented operators, and when an operand needs parentheses."""

from __future__ import annotations

import libcst as cst

BINARY: dict[type[cst.BaseAugOp], type[cst.BaseBinaryOp]] = {
    cst.AddAssign: cst.Add,
    cst.SubtractAssign: cst.Subtract,
    cst.MultiplyAssign: cst.Multiply,
    cst.MatrixMultiplyAssign: cst.MatrixMultiply,
    cst.DivideAssign: cst.Divide,
    cst.FloorDivideAssign: cst.FloorDivide,
    cst.ModuloAssign: cst.Modulo,
    cst.PowerAssign: cst.Power,
    cst.BitAndAssign: cst.BitAnd,
    cst.BitOrAssign: cst.BitOr,
    cst.BitXorAssign: cst.BitXor,
    cst.LeftShiftAssign: cst.LeftShift,
    cst.RightShiftAssign: cst.RightShift,
}

_OPERATORS: dict[type[cst.CSTNode], int] = {
    cst.BitOr: 8,
    cst.BitXor: 9,
    cst.BitAnd: 10,
    cst.LeftShift: 11,
    cst.RightShift: 11,
    cst.Add: 12,
    cst.Subtract: 12,
    cst.Multiply: 13,
    cst.MatrixMultiply: 13,
    cst.Divide: 13,
    cst.FloorDivide: 13,
    cst.Modulo: 13,
    cst.Power: 15,
}
_UNARY = 14
_LOOSE: tuple[tuple[type[cst.CSTNode], int], ...] = (
    (cst.Yield, 0),
    (cst.Tuple, 0),
    (cst.NamedExpr, 1),
    (cst.Lambda, 2),
    (cst.IfExp, 3),
    (cst.Comparison, 7),
    (cst.Await, 16),
)
_ATOM = 17


def precedence(node: cst.BaseExpression) -> int:
    """Return how tightly an expression binds, from 0 (`yield`, a bare tuple) to 17 (an atom)."""
    if node.lpar:
        return _ATOM
    if isinstance(node, cst.BinaryOperation):
        return _OPERATORS[type(node.operator)]
    if isinstance(node, cst.BooleanOperation):
        return 4 if isinstance(node.operator, cst.Or) else 5
    if isinstance(node, cst.UnaryOperation):
        return 6 if isinstance(node.operator, cst.Not) else _UNARY
    return next((level for kind, level in _LOOSE if isinstance(node, kind)), _ATOM)


def as_right_operand(node: cst.BaseExpression, operator: cst.BaseBinaryOp) -> cst.BaseExpression:
    """Return the expression as it stands to the right of `operator`, in parentheses if needed.

    All binary operators but `**` group to the left, so an operand that binds as tightly as the
    operator needs parentheses as well; `**` groups to the right and takes a unary operand bare.
    """
    if isinstance(operator, cst.Power):
        bare = precedence(node) >= _UNARY
    else:
        bare = precedence(node) > _OPERATORS[type(operator)]
    return node if bare else parenthesised(node)


def as_left_operand(node: cst.BaseExpression, operator: cst.BaseBinaryOp) -> cst.BaseExpression:
    """Return the expression as it stands to the left of an operator that groups to the left."""
    return node if precedence(node) >= _OPERATORS[type(operator)] else parenthesised(node)


def as_argument(node: cst.BaseExpression) -> cst.BaseExpression:
    """Return the expression as the only argument of a call: only `yield` and a tuple need more."""
    return node if precedence(node) > 0 else parenthesised(node)


def parenthesised(node: cst.BaseExpression) -> cst.BaseExpression:
    """Return the expression in one more pair of parentheses."""
    lpar = [cst.LeftParen(), *node.lpar]
    rpar = [*node.rpar, cst.RightParen()]
    return node.with_changes(lpar=lpar, rpar=rpar)


def binary(
    kind: type[cst.BaseBinaryOp], left: cst.BaseExpression, right: cst.BaseExpression
) -> cst.BinaryOperation:
    """Return `left op right`, with the spaces that formatters put around the operator."""
    operator = kind()
    if isinstance(operator, cst.Power) and _is_simple(left) and _is_simple(right):
        none = cst.SimpleWhitespace("")
        operator = cst.Power(whitespace_before=none, whitespace_after=none)
    return cst.BinaryOperation(left, operator, as_right_operand(right, operator))


def _is_simple(node: cst.BaseExpression) -> bool:
    """Whether formatters hug `**` with this operand: a name, a number, a dotted name, or `-1`."""
    if node.lpar:
        return False
    if isinstance(node, cst.UnaryOperation):
        return not isinstance(node.operator, cst.Not) and _is_simple(node.expression)
    if isinstance(node, cst.Attribute):
        return isinstance(node.value, cst.Name | cst.Attribute) and _is_simple(node.value)
    return isinstance(node, cst.Name | cst.Integer | cst.Float | cst.Imaginary)
