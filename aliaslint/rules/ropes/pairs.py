"""Pairs of reshapes around a RoPE call that can be dropped, so that it is called at native rank."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aliaslint.findings import Span
from aliaslint.rules.ropes.flow import Flow, Reach
from aliaslint.rules.ropes.sizes import Dims
from aliaslint.source.files import SourceFile

RESHAPES = ("reshape", "flatten", "unflatten")


@dataclass(frozen=True, slots=True)
class Pair:
    """The reshape before a RoPE call and the inverse one after it, by their spans."""

    fold: Span
    unfold: Span

    def loses_comment(self, code: str) -> bool:
        """Whether a comment stands at one of the reshapes, or in the line above it."""
        lines = {
            line
            for span in (self.fold, self.unfold)
            for line in range(span.line - 1, span.end_line + 1)
        }
        return not lines.isdisjoint(_comments(code))


def _comments(code: str) -> set[int]:
    """Return the lines with a comment."""
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    return {token.start[0] for token in tokens if token.type == tokenize.COMMENT}


def pairs_in(source: SourceFile) -> dict[Span, Pair]:
    """Return the droppable pair of each RoPE call of a file that has one, by the call's span."""
    flow = Flow([source])
    found = {}
    for reach in flow.reaches([source.path]):
        pair = pair_of(flow, reach)
        if pair is not None:
            found[flow.span(source.path, reach.node)] = pair
    return found


def pair_of(flow: Flow, reach: Reach) -> Pair | None:
    """Return the pair around a call, None unless both reshapes are visible, inverse, and alone.

    Alone: the folded array goes into the call and nowhere else, and what the call gives goes
    into the second reshape and nowhere else.
    """
    fold = reach.value.fold
    if fold is None or fold.path != reach.path or fold not in flow.undone:
        return None
    if not keeps_axes(fold.dims, reach.value.dims):
        return None
    module = flow.program.module(reach.path)
    if module is None:
        return None
    pair = Pair(fold.span, flow.undone[fold])
    for block in _blocks(module.tree):
        if any(reach.node is node for s in block for node in _own(s)):
            chain = _Chain(block, reach.node, lambda node: flow.span(reach.path, node))
            if chain.holds(pair):
                return pair
    return None


def keeps_axes(before: Dims | None, after: Dims | None) -> bool:
    """Whether a fold leaves the last two sizes alone: positions run along the last but one, and
    a reshape may be undone by another one although it is another axis at native rank."""
    return before is not None and after is not None and before[-2:] == after[-2:]


class _Chain:
    """The statements that fold, rotate and unfold, in one block."""

    def __init__(self, block: Sequence[ast.stmt], call: ast.Call, span: object) -> None:
        self.block = block
        self.call = call
        self.span = span

    def holds(self, pair: Pair) -> bool:
        """Whether the pair's reshapes stand around the call and nothing else sees between."""
        fold, unfold = self._at(pair.fold), self._at(pair.unfold)
        if fold is None or unfold is None:
            return False
        rotate = self._statement_of(self.call)
        return self._feeds(fold, self.call, self._statement_of(fold), rotate) and self._feeds(
            self.call, unfold, rotate, self._statement_of(unfold)
        )

    def _feeds(self, first: ast.Call, second: ast.Call, start: int, end: int) -> bool:
        """Whether what `first` gives is used as the array of `second` and nowhere else."""
        if start < 0 or end < start:
            return False
        given = array_of(second)
        if given is first:
            return start == end
        statement = self.block[start]
        match statement, given:
            case ast.Assign(targets=[ast.Name(id=name)]), ast.Name(id=used) if name == used:
                return statement.value is first and start < end and self._once(name, start, end)
        return False

    def _once(self, name: str, start: int, end: int) -> bool:
        """Whether `name`, bound at `start`, is read at `end` only, until it is bound again."""
        between = [n for s in self.block[start + 1 : end] for n in _names(s, name)]
        reads = [n for n in _names(self.block[end], name) if isinstance(n.ctx, ast.Load)]
        if between or len(reads) != 1:
            return False
        for statement in self.block[end:]:
            names = list(_names(statement, name))
            loads = [n for n in names if isinstance(n.ctx, ast.Load) and n not in reads]
            if loads:
                return False
            if any(isinstance(n.ctx, ast.Store) for n in names):
                return isinstance(statement, ast.Assign)
        return True

    def _at(self, span: Span) -> ast.Call | None:
        for statement in self.block:
            for node in _own(statement):
                if isinstance(node, ast.Call) and self.span(node) == span:  # type: ignore[operator]
                    return node
        return None

    def _statement_of(self, call: ast.Call) -> int:
        for index, statement in enumerate(self.block):
            if any(node is call for node in _own(statement)):
                return index
        return -1


def array_of(call: ast.Call) -> ast.expr | None:
    """Return the array of `x.reshape(...)`, `mx.reshape(x, ...)`, `x.flatten(...)`, `rope(x)`."""
    if isinstance(call.func, ast.Attribute) and call.func.attr in RESHAPES:
        receiver = call.func.value
        if not (isinstance(receiver, ast.Name) and receiver.id in ("mx", "mlx")):
            return receiver
    return call.args[0] if call.args else None


def _blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield block


def _own(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the nodes of a simple statement; a compound one has blocks of its own."""
    if not hasattr(statement, "body"):
        yield from ast.walk(statement)


def _names(statement: ast.stmt, name: str) -> Iterator[ast.Name]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and node.id == name:
            yield node
