"""Whether an expression may be written twice, and whether another one may change it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

_ACTS = (cst.Call, cst.Await, cst.Yield, cst.NamedExpr, cst.BaseComp, cst.FormattedString)
_SUSPENDS = (cst.Await, cst.Yield)
_PLAIN = (
    cst.Name,
    cst.BaseNumber,
    cst.SimpleString,
    cst.Ellipsis,
    cst.BaseUnaryOp,
    cst.Index,
    cst.Slice,
    cst.SubscriptElement,
    cst.Tuple,
    cst.Element,
    # What is between the tokens.
    cst.BaseParenthesizableWhitespace,
    cst.LeftParen,
    cst.RightParen,
    cst.Comma,
    cst.Colon,
    cst.TrailingWhitespace,
    cst.Newline,
    cst.Comment,
    cst.EmptyLine,
)


def is_stable(node: cst.CSTNode) -> bool:
    """Whether evaluating `node` twice is as good as once: nothing in it calls or assigns."""
    return not any(isinstance(part, _ACTS) for part in _evaluated(node))


@dataclass(frozen=True, slots=True)
class Again:
    """Whether expressions give the same once more after `value` has been evaluated.

    `known`: the analysis says that they do, as far as the program's own code is concerned.
    `is_local` tells the names that no call can rebind.
    """

    value: cst.BaseExpression
    known: bool
    is_local: Callable[[str], bool]

    def gives_the_same(self, node: cst.CSTNode) -> bool:
        if not is_stable(node) or may_change(node, self.value):
            return False
        return self.known or self._keeps(node, is_plain(self.value))

    def survives(self, node: cst.BaseExpression, index: Sequence[cst.SubscriptElement]) -> bool:
        """Whether `node` gives the same after an index that may do anything."""
        if any(_assigned(part) & _used(node) for part in index):
            return False
        return self._keeps(node, all(map(is_plain, index)))

    def _keeps(self, node: cst.CSTNode, quiet: bool) -> bool:
        """Whether nothing in `node` runs code, and nothing of it can be rebound meanwhile."""
        return is_plain(node) and (quiet or all(map(self.is_local, _used(node))))


def is_plain(node: cst.CSTNode) -> bool:
    """Whether an expression consists of names and constants: it runs no code of a program."""
    return all(isinstance(part, _PLAIN) or _is_signed(part) for part in _evaluated(node))


def _is_signed(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.UnaryOperation) and isinstance(node.expression, cst.BaseNumber)


def may_change(node: cst.CSTNode, value: cst.BaseExpression) -> bool:
    """Whether evaluating `value` may change what `node` gives: it assigns a name or suspends.

    A call may do so too, by way of an attribute; whether one does is for the analysis to say.
    A local name keeps its value over a suspension.
    """
    if _assigned(value) & _used(node):
        return True
    plain = isinstance(node, cst.Name | cst.BaseNumber | cst.BaseString)
    return not plain and any(isinstance(part, _SUSPENDS) for part in _evaluated(value))


def _assigned(value: cst.CSTNode) -> set[str]:
    """Return the names that evaluating `value` assigns."""
    named = (part.target for part in _evaluated(value) if isinstance(part, cst.NamedExpr))
    return {target.value for target in named if isinstance(target, cst.Name)}


def _used(node: cst.CSTNode) -> set[str]:
    return {part.value for part in _evaluated(node) if isinstance(part, cst.Name)}


def _evaluated(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield what runs when `node` is evaluated: not the body of a lambda."""
    yield node
    if isinstance(node, cst.Lambda):
        return
    for child in node.children:
        yield from _evaluated(child)
