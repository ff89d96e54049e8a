"""Finds the nodes of a libcst module that stand at given spans.

libcst's positions cost more than its parse, so they are computed only for the top-level
statements that hold a span.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from aliaslint.findings import Span

_LINE_END = re.compile(r"\r\n?|\n")
_Ranges = Mapping[cst.CSTNode, CodeRange]
Single = cst.BaseSmallStatement | cst.For | cst.With
_Statement = cst.BaseCompoundStatement | cst.SimpleStatementLine


def statements(module: cst.Module, spans: Collection[Span]) -> dict[Span, Single]:
    """Return the simple statement that starts where each span does, where there is one.

    Or the `for` or `with` statement: those whose targets may hold an array.
    """
    starts = {(span.line, span.column): span for span in spans}
    found: dict[Span, Single] = {}
    for ranges, offset in _ranges(module, spans):
        for node, where in ranges.items():
            if isinstance(node, cst.BaseSmallStatement | cst.For | cst.With):
                span = starts.get((where.start.line + offset, where.start.column + 1))
                if span is not None:
                    found[span] = node
    return found


def expressions(module: cst.Module, spans: Collection[Span]) -> dict[Span, cst.BaseExpression]:
    """Return the expression at each span, where there is one.

    A span may take in the expression's parentheses or leave them out. Of several expressions at
    one span the outermost is meant.
    """
    found: dict[Span, cst.BaseExpression] = {}
    for ranges, offset in _ranges(module, spans):
        for node in ranges:  # Children come before their parents.
            if isinstance(node, cst.BaseExpression):
                for span in _extents(node, ranges, offset):
                    if span in spans:
                        found[span] = node
    return found


def _extents(node: cst.BaseExpression, ranges: _Ranges, offset: int) -> Iterator[Span]:
    """Yield the span of an expression, bare and with each of its pairs of parentheses."""
    yield _span(ranges[node], ranges[node], offset)
    for left, right in zip(reversed(node.lpar), node.rpar, strict=True):
        yield _span(ranges[left], ranges[right], offset)


def _span(first: CodeRange, last: CodeRange, offset: int) -> Span:
    return Span(
        first.start.line + offset,
        first.start.column + 1,
        last.end.line + offset,
        last.end.column + 1,
    )


def _ranges(module: cst.Module, spans: Collection[Span]) -> Iterator[tuple[_Ranges, int]]:
    """Yield positions for each top-level statement with a span, and the lines before it."""
    for statement, before, last in lines(module):
        if any(before < span.line <= last for span in spans):
            part = cst.Module(
                body=[statement],
                default_indent=module.default_indent,
                default_newline=module.default_newline,
            )
            wrapper = MetadataWrapper(part, unsafe_skip_copy=True)
            yield wrapper.resolve(PositionProvider), before


def lines(module: cst.Module) -> Iterator[tuple[_Statement, int, int]]:
    """Yield each top-level statement, the number of lines before it, and its last line."""
    line = sum(len(_LINE_END.findall(module.code_for_node(empty))) for empty in module.header)
    for statement in module.body:
        before = line
        line += len(_LINE_END.findall(module.code_for_node(statement)))
        yield statement, before, line
