"""Whether an expression may be written twice, and whether another one may change it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

_ACTS = (cst.Call, cst.Await, cst.Yield, cst.NamedExpr, cst.BaseComp, cst.FormattedString)
_SUSPENDS = (cst.Await, cst.Yield)


def is_stable(node: cst.CSTNode) -> bool:
    """Whether evaluating `node` twice is as good as once: nothing in it calls or assigns."""
    return not any(isinstance(part, _ACTS) for part in _evaluated(node))


def may_change(node: cst.CSTNode, value: cst.BaseExpression) -> bool:
    """Whether evaluating `value` may change what `node` gives: it assigns a name or suspends.

    A call may do so too, by way of an attribute; whether one does is for the analysis to say.
    A local name keeps its value over a suspension.
    """
    parts = list(_evaluated(value))
    assigned = {p.target.value for p in parts if _assigns_name(p)}  # type: ignore[attr-defined]
    used = {part.value for part in _evaluated(node) if isinstance(part, cst.Name)}
    if assigned & used:
        return True
    plain = isinstance(node, cst.Name | cst.BaseNumber | cst.BaseString)
    return not plain and any(isinstance(part, _SUSPENDS) for part in parts)


def _assigns_name(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.NamedExpr) and isinstance(node.target, cst.Name)


def _evaluated(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield what runs when `node` is evaluated: not the body of a lambda."""
    yield node
    if isinstance(node, cst.Lambda):
        return
    for child in node.children:
        yield from _evaluated(child)
