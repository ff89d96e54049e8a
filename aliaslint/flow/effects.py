"""What a cache method updates in place, found once for each class instead of at each call.

Where very many classes may stand behind the calls of the cache protocol, following each of them
for each pattern of aliases can cost more than one function may. Whether a capture is stale can
still be told: for that it is enough to know which attributes a method updates in place. It is
not enough to know which arrays two owners share, so nothing but captures is judged by it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from aliaslint.flow.context import MAX_DEPTH, Analysis, Events, Exhausted
from aliaslint.flow.expressions import Stopped
from aliaslint.flow.frame import Frame
from aliaslint.flow.parameters import begin
from aliaslint.flow.state import Binding, State
from aliaslint.flow.values import Mark, Ref, Val
from aliaslint.lower import ir
from aliaslint.program.classes import Method
from aliaslint.program.types import UNKNOWN, is_plain

if TYPE_CHECKING:
    from aliaslint.flow.calls import Args

Path = tuple[str, ...]
METHOD_FUEL = 600  # statements interpreted for one method of one class
DEPTH = MAX_DEPTH - 2  # calls nested in it: its own helpers, and theirs


@dataclass(frozen=True, slots=True)
class Effects:
    """The attributes of its object that a method updates in place, as paths from the object,
    and what is known of the places of these updates."""

    updates: tuple[tuple[Path, Mark], ...] = ()
    events: Events = field(default_factory=Events)


def effects_of(analysis: Analysis, class_key: str, method: Method) -> Effects:
    """Return what a method of a class does, whoever calls it."""
    function = analysis.classes.method(method)
    key = (function.key, class_key)
    known = analysis.effects.get(key)
    if known is None:
        analysis.effects[key] = Effects()  # for calls of itself
        known = analysis.effects[key] = interpret_alone(analysis, function, class_key)
    return known


def interpret_alone(analysis: Analysis, function: ir.Function, class_key: str) -> Effects:
    """Interpret a method with an object of which nothing but its class is known."""
    from aliaslint.flow.statements import execute

    with analysis.isolated():
        analysis.observer = None
        analysis.coarse = True
        analysis.fuel = METHOD_FUEL
        analysis.guessing = 1  # callers may mean another class: what is a number in it is none
        frame, st = begin(analysis, function, class_key, DEPTH)
        own = next((link.ref for link in st.env.get(function.params[0], ())), None)
        with suppress(Stopped, Exhausted):  # what was updated until then is known
            execute(frame, function.body, st)
        updates = {
            (path, mark.site): (path, mark)
            for ref, mark, _ in frame.updates
            if mark.site.via != "unresolved" and (path := path_from(own, ref))
        }
        return Effects(tuple(updates.values()), analysis.of_places())


def path_from(own: Ref | None, ref: Ref) -> Path:
    """Return the attributes that lead from an object to what it held; () if none do."""
    names: list[str] = []
    current: Ref | None = ref
    while current is not None and current is not own:
        if not isinstance(current.key, str):
            return ()
        names.insert(0, current.key)
        current = current.base
    return tuple(names) if current is own and current is not None else ()


def is_judged_by_effects(analysis: Analysis, class_key: str, method: Method) -> bool:
    """True for methods of caches, the classes that have any of the cache protocol."""
    info = analysis.classes.get(class_key)
    return info is not None and method.role == "method" and any(map(info.find, analysis.protocol))


def call_by_effects(
    frame: Frame,
    st: State,
    ref: Ref,
    found: list[tuple[str, Method]],
    args: Args,
    expr: ir.Expr,
) -> Val:
    """Call a method of one of several classes: their updates hit what others hold."""
    for val, node in args.all():
        frame.read(st, val, node.at if node is not None else expr.at)
    where = frame.where(expr.at)
    for class_key, method in found:
        effects = effects_of(frame.a, class_key, method)
        frame.a.spend(1)
        if not effects.updates:
            continue
        frame.a.absorb(effects.events)
        frame.a.resolved.setdefault(where, set()).add(frame.a.classes.method(method).key)
        for path, mark in effects.updates:
            hit(frame, st, ref, path, replace(mark, chain=(where, *mark.chain)[:6]))
    return frame.fresh(expr.at, UNKNOWN)


def hit(frame: Frame, st: State, ref: Ref, path: Path, mark: Mark) -> None:
    """Mark whatever else holds what the object keeps at the end of a path."""
    places: Iterator[tuple[Binding, Ref]] = (
        ((owner, path[-1]), link.ref)
        for owner in owners_of(frame, st, ref, path)
        for link in frame.load_location(st, owner, path[-1])
        if not is_plain(frame.type_of(st, link.ref))
    )
    for held in st.mark_all(places, mark):
        if held.kind in {"root", "init"}:
            frame.outer().updates[(held, mark, "")] = None


def owners_of(frame: Frame, st: State, ref: Ref, path: Path) -> list[Ref]:
    """Return the objects that have the last attribute of a path."""
    owners = [ref]
    for name in path[:-1]:
        owners = [link.ref for owner in owners for link in frame.load_location(st, owner, name)]
    return owners
