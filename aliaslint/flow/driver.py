"""Which functions are analysed on their own, and what is left when they end."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from aliaslint.flow import transfer
from aliaslint.flow.context import FUEL, Analysis, Events, Exhausted
from aliaslint.flow.decorators import call_by_name
from aliaslint.flow.expressions import Stopped
from aliaslint.flow.frame import Frame
from aliaslint.flow.parameters import begin
from aliaslint.flow.state import State, is_object
from aliaslint.flow.statements import execute
from aliaslint.flow.values import ENTRY, Pos, Ref, Val
from aliaslint.lower import ir
from aliaslint.parallel import spread
from aliaslint.program.classes import ClassInfo
from aliaslint.program.modules import Module
from aliaslint.program.scan import nested
from aliaslint.program.types import Inst

Root = tuple[ir.Function, str | None]
COARSE_FUEL = 4_500  # statements of a function that is judged by the effects of cache methods
MORE = 4  # times as much is spent on a function that was cut off, where some is left
WORTH_A_PROCESS = 12  # fewer functions are done before another process has started


def select_roots(analysis: Analysis, targets: list[Module], thorough: bool) -> None:
    """Find out which functions have to be interpreted on their own, before any is."""
    from aliaslint.flow.protocol import candidates
    from aliaslint.program.reach import Reach
    from aliaslint.program.relevance import Relevance

    reach = Reach(analysis.kinds, analysis.protocol, partial(candidates, analysis))
    for module in targets:
        for function, cls in roots(analysis, module):
            reach.function_node(function, cls)
        reach.function_node(analysis.kinds.module_function(module), None)
    relevance = Relevance(reach)
    relevance.solve(thorough)
    analysis.relevance = relevance


def matters(analysis: Analysis, function: ir.Function, cls: str | None) -> bool:
    if analysis.relevance is None or analysis.relevance.matters(function, cls):
        return True
    analysis.passed_over += 1
    return False


def run(analysis: Analysis, all_roots: bool, thorough: bool, jobs: int = 1) -> None:
    """Interpret the functions of the target that matter, in up to `jobs` processes."""
    targets = list(analysis.modules.targets())
    if not all_roots:
        select_roots(analysis, targets, thorough)
    selected = (
        [root for root in module_roots(analysis, module) if matters(analysis, *root)]
        for module in targets
    )
    units = [unit for unit in selected if unit]
    sizes = [len(unit) for unit in units]
    outcomes = spread(
        lambda number: transfer.dump(analyse_unit(analysis, units[number])),
        sizes,
        jobs if sum(sizes) >= WORTH_A_PROCESS else 1,
    )
    analysis.start()
    for outcome in outcomes:
        analysis.bring_in(transfer.load(outcome, analysis.refs))


def analyse_unit(analysis: Analysis, unit: list[Root]) -> Events:
    """Interpret functions of one module, and those in them that nothing was seen to call.

    What is found does not depend on other units: they can be interpreted in any order.
    """
    analysis.start()
    rest = FUEL[0]
    cut: list[tuple[Root, int]] = []
    for root in unit:
        given = fuel(analysis, *root)
        if not analyse_function(analysis, *root, given):
            cut.append((root, given))
        rest -= given - analysis.fuel
    for root, given in cut:  # A module of few functions has some left for long ones.
        finished = False
        more = min(rest, MORE * given)
        if more > given:
            finished = analyse_function(analysis, *root, more)
            rest -= more - analysis.fuel
        if not finished:
            analyse_coarsely(analysis, root)
        analysis.abandoned += not finished
    called = analysis.called()
    # A function that several classes inherit stands in a unit once for each.
    for inner in dict.fromkeys(inner for function, _ in unit for inner in nested(function)):
        if inner.parent is not None and inner.key not in called:
            cls = analysis.closure_class.get(inner.key)
            finished = analyse_root(analysis, inner, cls, fuel(analysis, inner, cls))
            analysis.abandoned += not finished
    return analysis.take()


def analyse_coarsely(analysis: Analysis, root: Root) -> None:
    """Judge the captures of a function that is too costly to be followed call by call."""
    if analysis.relevance is not None and not analysis.relevance.captures_of_caches(*root):
        return
    with analysis.isolated():
        analysis.coarse = True
        analyse_function(analysis, *root, COARSE_FUEL)
        found = analysis.of_captures()
    analysis.absorb(found)


def fuel(analysis: Analysis, function: ir.Function, cls: str | None) -> int:
    """Return how much of a function is interpreted: what updates or captures something itself
    is worth more than what leads to it."""
    relevance = analysis.relevance
    return FUEL[relevance.rank(function, cls) if relevance is not None else 0]


def module_roots(analysis: Analysis, module: Module) -> Iterator[Root]:
    """Yield the functions of a module, and its own statements as one."""
    yield from roots(analysis, module)
    yield analysis.kinds.module_function(module), None


def roots(analysis: Analysis, module: Module) -> Iterator[tuple[ir.Function, str | None]]:
    for name, (kind, node) in list(module.names.items()):
        if kind == "func":
            key = f"{module.id}:{name}:{node.lineno}:{node.col_offset}"  # type: ignore[attr-defined]
            function = analysis.classes.function(key)
            if function is not None:
                yield function, None
        elif kind == "class":
            info = analysis.classes.get(f"{module.id}:{name}")
            if info is not None:
                yield from class_roots(analysis, info)
    for key in list(module.lowering.inner_classes):
        info = analysis.classes.get(key)
        if info is not None:
            yield from class_roots(analysis, info)


def class_roots(analysis: Analysis, info: ClassInfo) -> Iterator[tuple[ir.Function, str | None]]:
    """Each method with its class as the receiver; inherited ones where kinds may differ."""
    for ancestor in info.mro:
        if ancestor is not info and not ancestor.module.in_target:
            continue
        for method in (*ancestor.methods.values(), *ancestor.setters.values()):
            if ancestor is not info and info.find(method.node.name) is not method:
                continue
            function = analysis.classes.method(method)
            if ancestor is info or updates_attributes(function):
                yield function, info.key


def updates_attributes(function: ir.Function) -> bool:
    from aliaslint.lower.walk import statements

    return any(isinstance(s, ir.Aug) for s in statements(function.body))


def analyse_function(analysis: Analysis, function: ir.Function, cls: str | None, fuel: int) -> bool:
    """Interpret a function, and what its decorators make of it if they replace it."""
    finished = analyse_root(analysis, function, cls, fuel)
    called = call_by_name(analysis, function, cls)
    if finished and called is not None:
        finished = analyse_root(analysis, function, cls, analysis.fuel, called)
    return finished


def analyse_root(
    analysis: Analysis,
    function: ir.Function,
    cls: str | None,
    fuel: int,
    body: ir.Stmt | None = None,
) -> bool:
    """Interpret a function with parameters of which nothing is known but their kinds, or what
    stands for its body.

    False if that was too costly: what was seen until then is kept.
    """
    analysis.fuel = fuel
    analysis.contexts.clear()
    frame, st = begin(analysis, function, cls)
    analysis.bound_site = None
    finished = True
    try:
        end = execute(frame, body or function.body, st)
    except Stopped:
        end = None
    except Exhausted:
        analysis.active.clear()
        analysis.guessing = 0
        end, finished = None, False
    for read in frame.reads.values():
        for stale in read.stale:
            if stale.mark is not ENTRY:
                analysis.fault(stale, read.where, read.calls, "read")
    states = [(val, state) for val, state in frame.returns]
    if end is not None:
        states.append(({}, end))
    for val, state in states:
        leftovers(frame, val, state)
    return finished and analysis.fuel > 0


def leftovers(frame: Frame, val: Val, state: State) -> None:
    """At the end: owners changed behind their back, and stale captures that live on."""
    analysis = frame.a
    reach = living(state, val)
    here = frame.where(frame.fn.at)
    for ref in reach:
        owner = is_object(ref) or ref.kind == "class"
        for key, held in state.heap.get(ref, {}).items():
            if not isinstance(key, Pos) and key.startswith(("#", "()", "<")):
                continue
            for link, stale in held.items():
                for entry in stale:
                    if entry.mark is ENTRY:
                        continue
                    local = isinstance(key, str) and "name" in entry.mark.site.via
                    stays = link.prov.kind in {"initial", "token"} or link.prov.in_location
                    if owner and local and stays:
                        analysis.fault(entry, here, (), "left")
                        continue
                    analysis.escape(entry, here)
    for stale in val.values():
        for entry in stale:
            if entry.mark is not ENTRY:
                analysis.escape(entry, here)


def living(state: State, val: Val) -> list[Ref]:
    """Objects that outlive the function: of its caller, or given back."""
    found: dict[Ref, None] = {}
    stack = [link.ref for link in val]
    stack.extend(r for r in state.heap if r.kind in {"root", "init", "class", "module"})
    while stack:
        ref = stack.pop()
        if ref in found:
            continue
        found[ref] = None
        for held in state.heap.get(ref, {}).values():
            stack.extend(link.ref for link in held if link.ref not in found)
    return list(found)


__all__ = ["Inst", "analyse_root", "run"]
