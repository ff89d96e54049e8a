"""Copies of live arrays that come in a container: where a caller takes it apart, or inside.

`o, p = get(c)` has no expression that is the array of `o` alone. It is copied in a statement of
its own after that one. Where nothing takes the container apart by name, the array is copied where
the function that gives it back puts it in, if that function is one of the target.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from aliaslint.findings import Named
from aliaslint.flow.values import Where
from aliaslint.lower.lowering import at as position
from aliaslint.lower.scopes import FunctionNode
from aliaslint.rules.evidence import LOCAL_UPDATES
from aliaslint.rules.optional import attribute_may_be_none
from aliaslint.rules.positions import nodes_at

if TYPE_CHECKING:
    from aliaslint.findings import Form, Span
    from aliaslint.flow.context import Held
    from aliaslint.flow.values import Prov
    from aliaslint.lower.ir import At
    from aliaslint.rules.evidence import Evidence

_Block = ast.For | ast.AsyncFor | ast.With | ast.AsyncWith
_COPYABLE = frozenset({"array", "scalar", "none"})


@dataclass(frozen=True, slots=True)
class Leaf:
    """A part of a target that holds a captured array, in the statement that binds it."""

    where: Where
    node: ast.expr
    statement: ast.Assign | _Block
    starred: bool
    held: Held

    @property
    def name(self) -> str:
        """Return what names it in a statement of its own, "" if nothing surely does."""
        match self.node:
            case ast.Name(id=name):
                return name
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                return f"{owner}.{name}"
        return ""


@dataclass(frozen=True, slots=True)
class Parted:
    """The one statement (or its header) that takes a container apart, and what to copy after it.

    `takes_all`: nothing but the parts of its targets can hold what is captured, so that every
    holder is sure to get a copy.
    """

    span: Span
    names: tuple[Named, ...]
    takes_all: bool


def after(evidence: Evidence, where: Where, victims: Sequence[Prov], form: Form) -> Parted | None:
    """Return the statement that takes what is captured at a place apart, None without one."""
    found = list(leaves(evidence, where, victims))
    statements = {id(leaf.statement): leaf.statement for leaf in found}
    named = all(leaf.name and _can_be_named_twice(evidence, leaf, found) for leaf in found)
    told = all(any(_came_as(victim, leaf.held) for leaf in found) for victim in victims)
    if len(statements) != 1 or not named or not told:
        return None
    statement = next(iter(statements.values()))
    copies = {leaf.name: named_copy(evidence, leaf, victims, form) for leaf in found}
    names = tuple(copies.values())
    if not all(_is_copyable(leaf, victims) for leaf in found):
        return None
    span = evidence.span(Where(where.module, header(statement)))
    return Parted(span, names, takes_all(statement, where.at))


def leaves(evidence: Evidence, where: Where, victims: Sequence[Prov]) -> Iterator[Leaf]:
    """Yield the parts of targets that hold one of the arrays captured at a place, in the function
    that captures them."""
    tree = evidence.analysis.modules.by_id[where.module].tree
    around = _function(nodes_at(tree, where.at))
    here = {p: h for p, h in evidence.analysis.held.items() if p.module == where.module}
    for place, held in sorted(here.items()):
        if not any(_came_as(victim, held) for victim in victims):
            continue
        path = nodes_at(tree, place.at)
        holder = next(
            (n for n in reversed(path) if isinstance(n, ast.stmt | ast.comprehension)), None
        )
        if isinstance(holder, ast.Assign | _Block) and _function(path) is around:
            assert isinstance(path[-1], ast.expr)
            yield Leaf(place, path[-1], holder, isinstance(path[-2], ast.Starred), held)


def _function(path: Sequence[ast.AST]) -> ast.AST | None:
    return next((node for node in reversed(path) if isinstance(node, FunctionNode)), None)


def _came_as(victim: Prov, held: Held) -> bool:
    """Whether a target was given an array by the way that it came to a stale holder."""
    return any(prov is not None and _is_way(prov, victim) for prov in held.types)


def _is_way(prov: Prov, victim: Prov) -> bool:
    return prov.where == victim.where and prov.hops == victim.hops[: len(prov.hops)]


def _is_copyable(leaf: Leaf, victims: Sequence[Prov]) -> bool:
    """Whether all that a target holds is a value: of an object a copy is another one."""
    others = (
        type_
        for prov, type_ in leaf.held.types.items()
        if prov is None or not any(_is_way(prov, victim) for victim in victims)
    )
    return not leaf.starred or all(type_ <= _COPYABLE for type_ in others)


def named_copy(evidence: Evidence, leaf: Leaf, victims: Sequence[Prov], form: Form) -> Named:
    """Return what is copied of a target: the form is that of all the values it may have."""
    mine = [victim for victim in victims if _came_as(victim, leaf.held)]
    calls = [hop for victim in mine for hop in victim.hops if hop.kind == "call"]
    attributes = {hop.text.rpartition(".")[2] for hop in calls}
    type_ = frozenset[object]().union(*leaf.held.types.values())
    if "none" in type_ or any(attribute_may_be_none(evidence, a) for a in attributes):
        form = "keep-any"
    elif form == "array" and _may_be_number(evidence, type_, [h.where for h in calls]):
        form = "keep-int"
    return Named(leaf.name, form, leaf.starred)


def _may_be_number(evidence: Evidence, type_: Collection[object], places: Iterable[Where]) -> bool:
    return "scalar" in type_ or not evidence.analysis.numbers.isdisjoint(places)


def _can_be_named_twice(evidence: Evidence, leaf: Leaf, found: Sequence[Leaf]) -> bool:
    """Whether a target may be read and assigned once more, after the statement."""
    match leaf.node:
        case ast.Attribute(value=ast.Name(id=owner), attr=name):
            rebound = any(isinstance(n.node, ast.Name) and n.node.id == owner for n in found)
            return not rebound and name not in evidence.analysis.property_names
    return True


def header(statement: ast.Assign | _Block) -> At:
    """Return the place of a statement, of one with a suite up to that."""
    line, column, end_line, end_column = position(statement)
    match statement:
        case ast.For(iter=last) | ast.AsyncFor(iter=last):
            _, _, end_line, end_column = position(last)
        case ast.With(items=items) | ast.AsyncWith(items=items):
            item = items[-1]
            _, _, end_line, end_column = position(item.optional_vars or item.context_expr)
    return line, column, end_line, end_column


def takes_all(statement: ast.Assign | _Block, at: At) -> bool:
    """Whether an assignment takes the value at a place apart, and lets nobody else have it."""
    if not isinstance(statement, ast.Assign):
        return False
    # Elements of what somebody keeps are captured by the parts of the target themselves.
    parts = (part for target in statement.targets for part in ast.walk(target))
    given = (*_taken_apart(statement.targets, statement.value), *parts)
    return at in (position(part) for part in given if isinstance(part, ast.expr))


def _taken_apart(targets: Sequence[ast.expr], value: ast.expr) -> Iterator[ast.expr]:
    """Yield the expressions one of which is what all targets take apart."""
    displays = [target.elts for target in targets if isinstance(target, ast.Tuple | ast.List)]
    if len(displays) < len(targets):
        return
    match value:
        case ast.IfExp(body=body, orelse=orelse):
            yield from _taken_apart(targets, body)
            yield from _taken_apart(targets, orelse)
        case ast.BoolOp(values=values):
            for each in values:
                yield from _taken_apart(targets, each)
        case ast.Await(value=inner):
            yield from _taken_apart(targets, inner)
        case ast.Tuple(elts=items) | ast.List(elts=items):
            rows = [items, *displays]
            starred = any(isinstance(part, ast.Starred) for row in rows for part in row)
            if not starred and len({len(row) for row in rows}) == 1:
                for item, *parts in zip(*rows, strict=True):
                    yield from _taken_apart(parts, item)
        case _:
            yield value


def inside(
    evidence: Evidence, victims: Sequence[Prov], is_array: Callable[[Where], bool]
) -> list[Where]:
    """Return where the functions that give arrays back put each into its container.

    Empty where one of them does that in a dependency, or has no expression for the array.
    """
    found: dict[Where, None] = {}
    for victim in victims:
        places = (hop.where for hop in takewhile(lambda h: h.kind == "call", victim.hops))
        place = next((p for p in places if evidence.in_target(p) and is_array(p)), None)
        if place is None:
            return []
        found[place] = None
    return sorted(found) if len({place.module for place in found}) == 1 else []


def is_updated_through(evidence: Evidence, places: Collection[Where]) -> bool:
    """Whether an update by a local name reaches the owner of an array through such a place."""
    for fault in evidence.analysis.faults.values():
        source = fault.mark.source
        if fault.mark.site.via in LOCAL_UPDATES and source is not None:
            if any(hop.where in places for hop in source.hops):
                return True
    return False
