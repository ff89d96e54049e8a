"""What the codemods share: which repairs, on which nodes, and the pass over the module."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar

import libcst as cst
from libcst.codemod import CodemodContext, VisitorBasedCodemodCommand

from aliaslint.codemods import imports, layout, locate
from aliaslint.codemods.names import ARRAY, COPY, Import, Names
from aliaslint.findings import KEEPS, Action, Repair, Span

_SPAN = re.compile(r"(\d+):(\d+)(?:-(?:(\d+):)?(\d+))?")
_ON_STATEMENTS = frozenset[Action](("rebind", "store-back", "copy-first", "copy-after"))

Edited = cst.CSTNode | cst.FlattenSentinel[cst.BaseSmallStatement]


class Refused(Exception):
    """A repair that cannot be carried out as code; the message says why, for the user."""


class EditCommand(VisitorBasedCodemodCommand):
    """Carries out repairs on one module.

    `repairs` says which; without it, `span` does; without both, the analysis of the module.
    After `rewrite`, `refused` maps each repair that was not carried out to the reason.
    """

    HANDLERS: ClassVar[Mapping[Action, Callable[[EditCommand, cst.CSTNode, Repair], Edited]]] = {}
    # Splits a repair of several places into one for each; it may raise Refused.
    PARTS: ClassVar[Mapping[Action, Callable[[str, Repair], Sequence[Repair]]]] = {}

    def __init__(
        self,
        context: CodemodContext,
        repairs: Sequence[Repair] | None = None,
        span: Sequence[str] = (),
        unsafe: bool = False,
        line_length: int = 88,
    ) -> None:
        super().__init__(context)
        self.refused: dict[Repair, str] = {}
        self._repairs = repairs
        self._spans = [parse_span(text) for text in span]
        self._unsafe = unsafe
        self._line_length = line_length
        self._edits: dict[int, Repair] = {}
        self._parents: list[cst.CSTNode] = []
        self._imports: dict[Import, str] = {}
        self._touched = False

    @staticmethod
    def add_args(arg_parser: argparse.ArgumentParser) -> None:
        arg_parser.add_argument(
            "--span",
            action="append",
            default=[],
            metavar="LINE:COLUMN[-[LINE:]COLUMN]",
            help="what to rewrite, instead of what the analysis finds in the module; may be "
            "repeated (lines and columns start at 1, the end is exclusive)",
        )
        arg_parser.add_argument(
            "--unsafe", action="store_true", help="also carry out what the analysis calls unsafe"
        )
        arg_parser.add_argument(
            "--line-length",
            type=int,
            default=88,
            metavar="N",
            help="break a rewritten line that grows longer than this, as black does (88)",
        )

    def transform_module_impl(self, tree: cst.Module) -> cst.Module:
        """Rewrite the module; what could not be rewritten is a warning of the codemod run."""
        result = self.rewrite(tree)
        for repair, reason in self.refused.items():
            self.warn(f"line {repair.span.line}: not rewritten: {reason}")
        return result

    def rewrite(self, tree: cst.Module) -> cst.Module:
        """Return the module with the repairs carried out; the same object if there are none."""
        wanted = [r for r in self._wanted(tree) if r.action in self.HANDLERS]
        repairs = [part for repair in wanted for part in self._parts(tree, repair)]
        if not repairs:
            return tree
        self._module = tree
        self._names = Names(tree.code)
        self._places = [repair.span for repair in repairs]
        self._locate(tree, repairs)
        result = tree.with_changes(body=list(self._visited(tree)))
        for needed, name in self._imports.items():
            renamed = "" if name == needed.module else f" as {name}"
            result = imports.add(result, f"import {needed.module}{renamed}")
        return result

    def array(self, span: Span) -> cst.BaseExpression:
        """Return what `mx.array` is called at a place; it is imported if no import is there."""
        return self._imported(ARRAY, span)

    def copy(self, span: Span) -> cst.BaseExpression:
        """Return what `copy.copy` is called at a place; it is imported if no import is there."""
        return self._imported(COPY, span)

    def copy_at_hand(self, span: Span) -> cst.BaseExpression | None:
        """Return what `copy.copy` is called at a place, None if it is not imported."""
        source = self._names.expression(COPY, span)
        return None if source is None else cst.parse_expression(source)

    def _imported(self, wanted: Import, span: Span) -> cst.BaseExpression:
        source = self._names.expression(wanted, span)
        if source is None:
            if wanted not in self._imports:
                self._imports[wanted] = self._names.free(wanted, self._places)
            source = f"{self._imports[wanted]}.{wanted.function}"
        return cst.parse_expression(source)

    def copying(self, span: Span) -> set[str]:
        """Return the names at a place of functions that give a new array of an array."""
        known = {"mx.array", *(self._names.expression(i, span) for i in (ARRAY, COPY))}
        return {name for name in known if name}

    def fresh(self, name: str, span: Span) -> str:
        """Return a new variable name for a place. Raises Refused where it would be an attribute."""
        if self._names.in_class_body(span):
            raise Refused("its owner has to be evaluated once, and a class body has no variables")
        return self._names.fresh(name)

    def is_local(self, name: str, span: Span) -> bool:
        """Whether only the function at a place can rebind a name there."""
        return self._names.is_local(name, span)

    original: cst.CSTNode  # The node that is edited, as it was before anything in it was.

    def around(self) -> Sequence[cst.CSTNode]:
        """Return the nodes around the one that is edited, outermost first."""
        return self._parents

    def on_visit(self, node: cst.CSTNode) -> bool:
        self._parents.append(node)
        return super().on_visit(node)

    def on_leave(  # type: ignore[override]
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> Edited | cst.RemovalSentinel | cst.FlattenSentinel[cst.CSTNode]:
        self._parents.pop()
        repair = self._edits.get(id(original_node))
        if repair is None:
            return super().on_leave(original_node, updated_node)
        self.original = original_node
        try:
            edited = self.HANDLERS[repair.action](self, updated_node, repair)
        except Refused as error:
            self.refused[repair] = str(error)
            return updated_node
        # What is put into the suite of a `for` or `with` stands on lines of its own already.
        self._touched = not isinstance(original_node, cst.BaseCompoundStatement)
        return edited

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> (
        cst.SimpleStatementLine | cst.FlattenSentinel[cst.SimpleStatementLine] | cst.RemovalSentinel
    ):
        """Give statements that were put before another one lines of their own; mind long lines.

        A line of which nothing is left but `x = x` goes.
        """
        if not self._touched:
            return updated_node
        self._touched = False
        if _assigns_itself(updated_node):
            return cst.RemoveFromParent()
        lines = [updated_node]
        if len(original_node.body) == 1:
            repair = self._edits.get(id(original_node.body[0]))
            follow = repair is not None and repair.action == "copy-after"
            lines = _on_lines_of_their_own(updated_node, own=0 if follow else -1)
        page = layout.Page(self._module, self._indent(), self._line_length)
        return cst.FlattenSentinel([page.fit(original_node, line) for line in lines])

    def _indent(self) -> str:
        blocks = (node for node in self._parents if isinstance(node, cst.IndentedBlock))
        default = self._module.default_indent
        return "".join(default if b.indent is None else b.indent for b in blocks)

    def _wanted(self, tree: cst.Module) -> Sequence[Repair]:
        if self._repairs is not None:
            return self._repairs
        if self._spans:
            action = next(iter(self.HANDLERS))
            return [Repair(action, span, "unsafe") for span in self._spans]
        from aliaslint.codemods.facts import repairs

        return repairs(tree, self.context.filename, self._unsafe)

    def _parts(self, tree: cst.Module, repair: Repair) -> Sequence[Repair]:
        """Return the repairs of single places that a repair consists of; itself, most often."""
        split = self.PARTS.get(repair.action)
        if split is None:
            return [repair]
        try:
            return split(tree.code, repair)
        except Refused as error:
            self.refused[repair] = str(error)
            return []

    def _locate(self, tree: cst.Module, repairs: Sequence[Repair]) -> None:
        """Find the node of each repair; a place with several repairs gets the first."""
        found: dict[Span, cst.CSTNode] = {}
        spans = {r.span for r in repairs if r.action in _ON_STATEMENTS}
        found.update(locate.statements(tree, spans))
        found.update(locate.expressions(tree, {r.span for r in repairs} - spans))
        # Of two forms of one copy, that which keeps more.
        for repair in sorted(repairs, key=lambda r: KEEPS.index(r.form), reverse=True):
            if repair.span in found:
                self._edits.setdefault(id(found[repair.span]), repair)
            else:
                self.refused[repair] = "there is no such code at this place"

    def _visited(self, tree: cst.Module) -> Iterator[cst.CSTNode]:
        """Yield the statements of the module; those without a repair are not even visited."""
        lines = {span.line for span in self._places}
        for statement, before, last in locate.lines(tree):
            if not any(before < line <= last for line in lines):
                yield statement
                continue
            visited = statement.visit(self)
            if isinstance(visited, cst.FlattenSentinel):
                yield from visited
            elif isinstance(visited, cst.CSTNode):
                yield visited


def parse_span(text: str) -> Span:
    """Read `12:9`, `12:9-31` or `12:9-13:4`. Raises ValueError."""
    match = _SPAN.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not LINE:COLUMN or LINE:COLUMN-[LINE:]COLUMN")
    line, column, end_line, end_column = match.groups()
    start = (int(line), int(column))
    return Span(*start, int(end_line or line), int(end_column or column))


def _assigns_itself(line: cst.SimpleStatementLine) -> bool:
    """Whether a line is `x = x`, which is what dropping an operation on `x` leaves."""
    match line.body:
        case [cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)], value=value)]:
            return name.deep_equals(value)
    return False


def _on_lines_of_their_own(
    line: cst.SimpleStatementLine, own: int
) -> list[cst.SimpleStatementLine]:
    """Split `a; b` into lines: comments above stay above the first, the one behind on that whose
    number is `own`, the statement that was there before."""
    lines = [cst.SimpleStatementLine([statement]) for statement in line.body]
    lines[own] = line.with_changes(body=[line.body[own]], leading_lines=[])
    lines[0] = lines[0].with_changes(leading_lines=line.leading_lines)
    return lines
