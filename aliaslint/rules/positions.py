"""Finds the nodes of Python's own tree that stand at a raw position."""

from __future__ import annotations

import ast

from aliaslint.lower.ir import At
from aliaslint.lower.lowering import at as position

# An expression of these alone may be evaluated twice, and may be assigned to.
PLAIN = (ast.Attribute, ast.Subscript, ast.Name, ast.Constant, ast.expr_context)


def nodes_at(
    tree: ast.Module, at: At, kind: type[ast.expr] | type[ast.stmt] = ast.expr
) -> list[ast.AST]:
    """Return the expression (or statement) at a position and the nodes around it, outermost first.

    Empty where none stands: the position may be that of the other kind, or of a pattern.
    """
    return _path(tree, at, kind) or []


def _path(node: ast.AST, at: At, kind: type[ast.expr] | type[ast.stmt]) -> list[ast.AST] | None:
    if isinstance(node, kind) and position(node) == at:
        return [node]
    for child in ast.iter_child_nodes(node):
        if _may_hold(child, at):
            path = _path(child, at, kind)
            if path is not None:
                return [node, *path]
    return None


def _may_hold(node: ast.AST, at: At) -> bool:
    """Whether a position lies in a node; decorators stand before what they decorate."""
    if not isinstance(node, ast.expr | ast.stmt) or hasattr(node, "decorator_list"):
        return True
    line, column, end_line, end_column = position(node)
    return (line, column) <= at[:2] and at[2:] <= (end_line, end_column)
