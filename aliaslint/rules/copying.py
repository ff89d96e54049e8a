"""Where a copy cures a stale capture: the expression that is the array itself, if there is one.

A finding stands where the live array was taken, and that is not always an array: `vars(cache)`,
`cache.state`, `Moment(cache.offset, 1)` only hold it. A copy of those would be a type error or
cure nothing, so the array is looked for beside and inside them; where it has no expression of its
own, nothing is to be copied.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from aliaslint.findings import KEEPS, Repair
from aliaslint.flow.values import Where
from aliaslint.lower.lowering import at as position
from aliaslint.program.types import NOTHING, ClassOf, Map, Seq, Tup, Type
from aliaslint.rules import unpacking
from aliaslint.rules.evidence import within
from aliaslint.rules.optional import may_be_none, returned, taken
from aliaslint.rules.positions import nodes_at

if TYPE_CHECKING:
    from aliaslint.findings import Form, Safety
    from aliaslint.flow.values import Prov
    from aliaslint.rules.evidence import Evidence

REASONS: Mapping[Form, str] = {
    "array": "all that is known to be captured here are arrays",
    "keep-int": "an int offset stays an int",
    "keep-any": "None stays None, and an int an int",
}
_SINGLE = frozenset({"array", "scalar", "none", "unknown"})
_MAY_BE_ARRAY = frozenset({"array", "unknown"})
_VIEWS = frozenset({"asarray", "array", "memoryview"})
_ATTRIBUTES_BY_NAME = frozenset({"vars", "parameters", "trainable_parameters"})


def snapshot(
    evidence: Evidence,
    where: Where,
    provs: Sequence[Prov | None],
    safety: Safety,
    form: Form,
    reason: str = "",
    victims: Sequence[Prov] = (),
) -> Repair | None:
    """Return a copy of the array that is captured at `where`, None where there is no such array.

    `provs` say how the array came to its holders; what they name inside the expression at
    `where` is copied where that expression is more than the array. `form` is that of a value
    which is not None; the reason is that of the form unless one is given. `victims` are all the
    stale holders, which are given copies one by one where they came by the arrays in a container.
    """
    for place, prov in places(evidence, where, [p for p in provs if p is not None]):
        found = array_at(evidence, place, prov)
        if found is not None:
            if may_be_none(evidence, found):
                form = "keep-any"
            elif form == "array" and may_be_number(evidence, found, provs):
                form = "keep-int"
            span = evidence.span(found)
            return Repair("snapshot", span, safety, reason or REASONS[form], form)
    return _of_parts(evidence, where, victims, safety, form, reason) if victims else None


def _of_parts(
    evidence: Evidence,
    where: Where,
    victims: Sequence[Prov],
    safety: Safety,
    form: Form,
    reason: str,
) -> Repair | None:
    """Return copies of arrays that came in a container: where the caller takes it apart if that
    is sure to reach all holders, else where it was filled; None if neither can be done."""
    parted = unpacking.after(evidence, where, victims, form)
    if parted is None or not parted.takes_all:
        if safety == "unsafe":
            return None
        filled = _in_callee(evidence, where, victims, form)
        if filled is not None or parted is None:
            return filled
    hardest = max((name.form for name in parted.names), key=KEEPS.index)
    why = reason or REASONS[hardest]
    return Repair("copy-after", parted.span, safety, why, hardest, names=parted.names)


def _in_callee(
    evidence: Evidence, where: Where, victims: Sequence[Prov], form: Form
) -> Repair | None:
    """Return copies of arrays where the functions of the target put them into a container."""
    places = unpacking.inside(evidence, victims, lambda p: array_at(evidence, p, None) == p)
    if not places:
        return None
    if any(may_be_none(evidence, place) for place in places):
        form = "keep-any"
    elif form == "array" and any(may_be_number(evidence, p, victims) for p in places):
        form = "keep-int"
    first, *more = map(evidence.span, places)
    path = evidence.path(places[0])
    written = unpacking.is_updated_through(evidence, places)
    return Repair(
        "copy-in-callee",
        first,
        "unsafe" if written else "safe",
        "some caller updates the array that it is given" if written else REASONS[form],
        form,
        also=tuple(more),
        path=None if path == evidence.path(where) else path,
    )


def obstacle(evidence: Evidence, where: Where) -> str:
    """Return why nothing is copied at a place, in words for the user."""
    path = nodes_at(evidence.analysis.modules.by_id[where.module].tree, where.at)
    if not path:
        return "a pattern binds the array: copy it where the case begins"
    if isinstance(path[-1], ast.Attribute | ast.Call | ast.Subscript):
        return (
            "this only holds the array, and a copy of it would hold the same one: copy the array "
            "where it is taken out"
        )
    return "the array has no expression of its own here: copy it where it is read"


def may_be_number(evidence: Evidence, where: Where, provs: Sequence[Prov | None]) -> bool:
    """Whether what is captured at a place was seen to be a number for some class, or may be one.

    `provs` tell of the arrays that were captured there, and where a call there took them.
    """
    calls = (hop.where for prov in provs if prov for hop in prov.hops if hop.kind == "call")
    if not evidence.analysis.numbers.isdisjoint((where, *calls)):
        return True
    type_ = returned(evidence, where)
    return type_ is not None and "scalar" in type_


def places(
    evidence: Evidence, where: Where, provs: Sequence[Prov]
) -> Iterator[tuple[Where, Prov | None]]:
    """Yield where the array may have an expression: the place itself, then inside it."""
    yield where, next((p for p in provs if p.where == where), None)
    for prov in provs:
        if prov.where is not None and prov.where != where and within(prov.where, where):
            yield prov.where, prov
        for hop in prov.hops:
            if hop.kind == "store" and hop.where == where:
                field = _field(evidence, where, hop.text)
                if field is not None:
                    yield field, None


def array_at(evidence: Evidence, where: Where, prov: Prov | None) -> Where | None:
    """Return the place of the array that the expression at `where` gives, None if it has none."""
    path = nodes_at(evidence.analysis.modules.by_id[where.module].tree, where.at)
    if len(path) < 2 or _gives_many(path):
        return None
    node, parent = path[-1], path[-2]
    if isinstance(getattr(node, "ctx", None), ast.Store):
        return None  # A part of a target: what it is given has no expression.
    if not isinstance(node, ast.Call) and _is_taken_apart(evidence, where):
        return None
    key = parent.slice if isinstance(parent, ast.Subscript) and parent.value is node else None
    match node:
        case ast.Call(func=func, args=[inner, *_]) if prov and _name(func) in _VIEWS:
            return _place(where, inner)  # A view of a copy: whoever reads it takes a view.
        case ast.Call(func=func) if prov and _name(func) in _ATTRIBUTES_BY_NAME:
            return _place(where, parent) if _is_attribute(key, prov) else None
        case ast.Attribute(attr="__dict__"):
            return _place(where, parent) if _is_attribute(key, prov) else None
        case ast.Call(func=ast.Name(id="getattr")):
            return where
        case ast.Attribute() | ast.Call():
            type_ = returned(evidence, where)
            if type_ is None:
                loads = isinstance(node, ast.Attribute) or taken(evidence, where)
                return where if loads else None
            if is_single(type_):
                return where
            return _place(where, parent) if key and is_single(element(type_, key)) else None
        case ast.Subscript() | ast.Name():
            return where
    return None


def _is_taken_apart(evidence: Evidence, where: Where) -> bool:
    """Whether a setter that is given the value at a place unpacks it, indexes it or walks it."""
    for key in evidence.analysis.resolved.get(where, ()):
        function = evidence.analysis.function(key)
        if function is None or len(function.params) != 2:
            continue  # A getter; a setter has `self` and the value.
        tree = evidence.analysis.modules.by_id[function.module].tree
        path = nodes_at(tree, function.at, ast.stmt)
        for node in ast.walk(path[-1]) if path else ():
            if _part_of(node, function.params[-1]):
                return True
    return False


def _part_of(node: ast.AST, name: str) -> bool:
    """Whether a node takes elements of the variable `name`."""
    match node:
        case ast.Assign(targets=[ast.Tuple() | ast.List(), *_], value=ast.Name(id=held)):
            return held == name
        case (
            ast.Subscript(value=ast.Name(id=held))
            | ast.Starred(value=ast.Name(id=held))
            | ast.For(iter=ast.Name(id=held))
            | ast.comprehension(iter=ast.Name(id=held))
        ):
            return held == name
    return False


def is_single(type_: Type) -> bool:
    """Whether a value is an array, as far as is known, and nothing that holds one."""
    return type_ <= _SINGLE and bool(type_ & _MAY_BE_ARRAY)


def element(type_: Type, key: ast.expr) -> Type:
    """Return what a value gives under a constant index."""
    result = NOTHING
    for atom in type_:
        match atom, key:
            case Tup(elements=items), ast.Constant(value=int(i)) if i < len(items):
                result |= items[i]
            case ((Seq(element=item) | Map(element=item)), ast.Constant()):
                result |= item
            case _:
                return NOTHING
    return result


def _place(where: Where, node: ast.AST) -> Where | None:
    return Where(where.module, position(node)) if isinstance(node, ast.expr) else None


def _gives_many(path: Sequence[ast.AST]) -> bool:
    """Whether the value is taken apart, or called, where it stands: it only holds the array."""
    node, parent = path[-1], path[-2]
    match parent:
        case ast.Assign(targets=targets):
            return any(isinstance(target, ast.Tuple | ast.List) for target in targets)
        case ast.For(iter=held) | ast.AsyncFor(iter=held) | ast.comprehension(iter=held):
            return held is node
        case ast.withitem() | ast.Starred() | ast.keyword(arg=None) | ast.YieldFrom():
            return True
        case ast.Call(func=func):
            return func is node
    return False


def _name(function: ast.expr) -> str:
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _is_attribute(key: ast.expr | None, prov: Prov | None) -> bool:
    """Whether an index into the attributes of an object, by name, is the captured one."""
    name = prov.text.rpartition(".")[2] if prov is not None else ""
    return isinstance(key, ast.Constant) and key.value == name


def _field(evidence: Evidence, where: Where, text: str) -> Where | None:
    """Return the argument that a record of the program is given for its field `Class.name`."""
    module = evidence.analysis.modules.by_id[where.module]
    path = nodes_at(module.tree, where.at)
    if not path or not isinstance(path[-1], ast.Call):
        return None
    call, name = path[-1], text.rpartition(".")[2]
    for keyword in call.keywords:
        if keyword.arg == name:
            return _place(where, keyword.value)
    symbol = evidence.analysis.classes.symbol_of(module, call.func)
    info = evidence.analysis.classes.get(symbol.key) if isinstance(symbol, ClassOf) else None
    index = info.fields.index(name) if info is not None and name in info.fields else None
    if index is None or any(isinstance(given, ast.Starred) for given in call.args[: index + 1]):
        return None
    return _place(where, call.args[index]) if index < len(call.args) else None
