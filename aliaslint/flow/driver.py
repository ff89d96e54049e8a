"""Which functions are analysed on their own, and what is left when they end."""

from __future__ import annotations

import re
from collections.abc import Iterator

from aliaslint.flow.context import LESS_FUEL, MAX_FUEL, Analysis, Exhausted
from aliaslint.flow.expressions import Stopped
from aliaslint.flow.frame import Frame
from aliaslint.flow.state import State, is_object
from aliaslint.flow.statements import execute
from aliaslint.flow.summaries import param_annotation, prepare_frame
from aliaslint.flow.values import ENTRY, FRESH, Link, Pos, Prov, Ref, Val
from aliaslint.lower import ir
from aliaslint.program.classes import ClassInfo
from aliaslint.program.modules import Module
from aliaslint.program.types import UNKNOWN, ClassOf, Inst, Map, Seq, Type, is_plain


def analyse_module(analysis: Analysis, module: Module) -> None:
    """Analyse every function of the module that matters, and its own statements."""
    for function, cls in roots(analysis, module):
        if suspicious(analysis, function):
            analyse_root(analysis, function, cls)
        else:
            analysis.passed_over += 1
    if len(analysis.modules.by_id) <= SMALL_PROGRAM and analysis.relevance.body(module.id):
        analyse_root(analysis, analysis.kinds.module_function(module), None)


def analyse_leftovers(analysis: Analysis, targets: set[str]) -> None:
    """Nested functions that nothing was seen to call."""
    called = {key for keys in analysis.resolved.values() for key in keys}
    for key, function in list(analysis.classes.registered.items()):
        relevant = analysis.relevance.function(function.module, function.at[0])
        if relevant and key not in called and function.module in targets:
            analyse_root(analysis, function, analysis.closure_class.get(key))


def roots(analysis: Analysis, module: Module) -> Iterator[tuple[ir.Function, str | None]]:
    for name, (kind, node) in list(module.names.items()):
        if kind == "func":
            if not analysis.relevance.function(module.id, node.lineno):  # type: ignore[attr-defined]
                continue
            key = f"{module.id}:{name}:{node.lineno}:{node.col_offset}"  # type: ignore[attr-defined]
            function = analysis.classes.function(key)
            if function is not None:
                yield function, None
        elif kind == "class":
            info = analysis.classes.get(f"{module.id}:{name}")
            if info is not None:
                yield from class_roots(analysis, info)
    for key in list(module.lowering.local_classes):
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
            if not analysis.relevance.function(ancestor.module.id, method.node.lineno):
                continue
            function = analysis.classes.method(method)
            if ancestor is info or updates_attributes(function):
                yield function, info.key


def updates_attributes(function: ir.Function) -> bool:
    from aliaslint.lower.walk import statements

    return any(isinstance(s, ir.Aug) for s in statements(function.body))


def analyse_root(
    analysis: Analysis, function: ir.Function, cls: str | None, fuel: int | None = None
) -> None:
    """Interpret a function with parameters of which nothing is known but their kinds."""
    analysis.fuel = fuel_for(analysis, function) if fuel is None else fuel
    frame = Frame(analysis, function, cls, 0)
    st = State()
    for name, kind in zip(function.params, function.kinds, strict=True):
        st.env[name] = parameter(analysis, function, cls, name, kind)
    prepare_frame(frame, st)
    analysis.bound_site = None
    try:
        end = execute(frame, function.body, st)
    except Stopped:
        end = None
    except Exhausted:
        analysis.abandoned += 1
        analysis.active.clear()
        analysis.guessing = 0
        return
    for read in frame.reads.values():
        for stale in read.stale:
            if stale.mark is not ENTRY:
                analysis.fault(stale, read.where, read.calls, "read")
    states = [(val, state) for val, state in frame.returns]
    if end is not None:
        states.append(({}, end))
    for val, state in states:
        leftovers(frame, val, state)


CAPTURE = re.compile(
    r"(?:^|[^=!<>])=\s*(?:\w[\w.\[\]]*)?\.(?:offset|left_padding|lengths|state|keys|values)\b(?!\()"
    r"|\.\w+\s*[-+*/%&|^@]=|copy\(|vars\(|\*= ?\w*scale"
)


def suspicious(analysis: Analysis, function: ir.Function) -> bool:
    """In a large program only functions with a capture or an update in sight are interpreted
    on their own; what they call is followed all the same."""
    if len(analysis.modules.by_id) <= SMALL_PROGRAM:
        return True
    lines = analysis.modules.by_id[function.module].lines
    text = "\n".join(lines[max(function.at[0] - 1, 0) : function.at[2]])
    return CAPTURE.search(text) is not None


def fuel_for(analysis: Analysis, function: ir.Function) -> int:
    """In a large program, functions without a capture or an update in sight get less."""
    if len(analysis.modules.by_id) <= SMALL_PROGRAM:
        return MAX_FUEL
    lines = analysis.modules.by_id[function.module].lines
    text = "\n".join(lines[max(function.at[0] - 1, 0) : function.at[2]])
    return MAX_FUEL if CAPTURE.search(text) and len(text) < LONG_FUNCTION else LESS_FUEL


SMALL_PROGRAM = 40  # modules
LONG_FUNCTION = 6_000  # characters


def parameter(
    analysis: Analysis, function: ir.Function, cls: str | None, name: str, kind: str
) -> Val:
    type_ = parameter_type(analysis, function, cls, name, kind)
    if any(isinstance(a, ClassOf) for a in type_):
        key = next(a.key for a in type_ if isinstance(a, ClassOf))
        ref = analysis.refs.static("class", key, type_)
        return {Link(ref, Prov("static")): FRESH}
    ref = analysis.refs.root(("p", function.key, name), type_)
    prov = Prov("param", analysis.where(function.module, function.at), name, token=name)
    return {Link(ref, prov): FRESH}


def parameter_type(
    analysis: Analysis, function: ir.Function, cls: str | None, name: str, kind: str
) -> Type:
    if kind == "*":
        return frozenset({Seq("tuple", UNKNOWN)})
    if kind == "**":
        return frozenset({Map(UNKNOWN)})
    if cls is not None and function.class_key and name == function.params[0]:
        return analysis.kinds.parameter(function, name, cls)
    if name in analysis.kinds.array_evidence(function):
        return frozenset({"array"})
    if name in function.annotations:
        type_ = param_annotation(analysis, function, name) or UNKNOWN
        return UNKNOWN if is_plain(type_) else type_  # `offset: int` says little about a cache
    return UNKNOWN


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


__all__ = ["Inst", "analyse_leftovers", "analyse_module"]
