"""Calls: what is called, how arguments bind, and how a callee's summary is applied.

A callee is analysed in its own names. Objects of the caller that it can reach are renamed to
roots, so that one summary serves every caller with the same alias pattern; its effects are
renamed back. Bindings that only the caller has are marked by the updates that it reports.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from aliaslint.flow.decorators import decorated_val, is_undecorated, undecorated_class
from aliaslint.flow.effects import call_by_effects, is_judged_by_effects
from aliaslint.flow.exclusion import is_excluded
from aliaslint.flow.expressions import Stopped, evaluate, evaluate_all
from aliaslint.flow.frame import FRESH_PROV, STATIC_PROV, Frame, bind, describe
from aliaslint.flow.leaving import throw
from aliaslint.flow.narrowing import classes_of, narrow_numbers
from aliaslint.flow.protocol import candidates
from aliaslint.flow.state import Binding, State, is_object
from aliaslint.flow.summaries import apply_call, is_facet, shared_only
from aliaslint.flow.values import (
    ANY,
    EMPTY,
    FRESH,
    Hop,
    Key,
    Link,
    Mark,
    Pos,
    Prov,
    Ref,
    Site,
    Val,
    Where,
    join,
    single,
)
from aliaslint.lower import ir
from aliaslint.program import library
from aliaslint.program.classes import ClassInfo, Method
from aliaslint.program.types import (
    ARRAY,
    NOTHING,
    SCALAR,
    STR,
    UNKNOWN,
    ClassOf,
    Ext,
    ExtInst,
    FuncOf,
    GenOf,
    Inst,
    Map,
    Mod,
    PartialOf,
    Seq,
    Tup,
    Type,
    is_plain,
    ordered,
)
from aliaslint.program.wrappers import decorator_isolates

HAND_OVER_NAMES = frozenset(
    [
        "state",
        "copy",
        "__copy__",
        "clone",
        "merge",
        "extract",
        "extend",
        "split",
        "snapshot",
        "from_state",
        "fork",
    ]
)


Thing = TypeVar("Thing")


@dataclass(slots=True)
class Args:
    """Evaluated arguments. `loose` is what `*args` and `**kwargs` of unknown length hold."""

    positional: list[Val] = field(default_factory=list)
    keywords: dict[str, Val] = field(default_factory=dict)
    loose: Val = field(default_factory=dict)
    starred: bool = False
    nodes: list[ir.Expr | None] = field(default_factory=list)
    keyword_nodes: dict[str, ir.Expr] = field(default_factory=dict)

    def all(self) -> list[tuple[Val, ir.Expr | None]]:
        pairs = list(zip(self.positional, self.nodes, strict=False))
        pairs += [(v, self.keyword_nodes.get(k)) for k, v in self.keywords.items()]
        if self.loose:
            pairs.append((self.loose, None))
        return pairs

    def after(self, *vals: Val) -> Args:
        """Return the same arguments behind some given ones (a bound `self`)."""
        return Args(
            [*vals, *self.positional],
            self.keywords,
            self.loose,
            self.starred,
            [*([None] * len(vals)), *self.nodes],
            self.keyword_nodes,
        )


def evaluate_args(frame: Frame, st: State, call: ir.Call) -> Args:
    from aliaslint.flow.containers import element, known_length
    from aliaslint.flow.loops import run_out

    args = Args()
    vals = evaluate_all(frame, [arg.value for arg in call.args], st)
    for arg, val in zip(call.args, vals, strict=True):
        if arg.name == "*":
            val = run_out(frame, st, val, arg.value)
            refs = [link.ref for link in val]
            length = known_length(st, refs[0]) if len(refs) == 1 else None
            if length is not None and not args.starred:
                for k in range(length):
                    args.positional.append(element(frame, st, refs[0], Pos("i", k)))
                    args.nodes.append(arg.value)
                continue
            args.starred = True
            for ref in refs:
                args.loose = join(args.loose, element(frame, st, ref, ANY))
        elif arg.name == "**":
            for link in val:
                for key, inner in st.heap.get(link.ref, {}).items():
                    if isinstance(key, Pos) and isinstance(key.index, str):
                        args.keywords[key.index] = inner
                    elif isinstance(key, Pos):
                        args.loose = join(args.loose, inner)
        elif arg.name:
            args.keywords[arg.name] = argument(frame, val, arg.value)
            args.keyword_nodes[arg.name] = arg.value
        else:
            args.positional.append(argument(frame, val, arg.value))
            args.nodes.append(arg.value)
    return args


def argument(frame: Frame, val: Val, node: ir.Expr) -> Val:
    """Passing binds: a capture made in the argument is bound here."""
    return bind(val)


# --- the call expression


def call(frame: Frame, expr: ir.Call, st: State) -> Val:
    match expr.fn:
        case ir.Attr(obj=ir.Call(fn=ir.Name(name="super", scope="global")) as sup, name=name):
            return super_call(frame, st, sup, name, expr)
        case ir.Name(name="super", scope="global"):
            return EMPTY
        case ir.Attr(obj=obj, name=name):
            base = evaluate(frame, obj, st)
            holder = f"#{frame.prefix}{frame.held}"
            frame.held += 1
            st.env[holder] = base
            if name == "arange":
                narrow_numbers(frame, st, expr)
            args = evaluate_args(frame, st, expr)
            base = st.env.pop(holder, base)
            frame.held -= 1
            result = EMPTY
            outer, frame.alternatives = frame.alternatives, several(base)
            for link, branch in apart(frame, st, base):
                stale = base[link]
                result = join(result, method_call(frame, branch, link, stale, name, args, expr))
            frame.alternatives = outer
            after_call(frame, st)
            return result or frame.plain(UNKNOWN)
        case _:
            fn = evaluate(frame, expr.fn, st)
            args = evaluate_args(frame, st, expr)
            result = call_val(frame, st, fn, args, expr)
            after_call(frame, st)
            return result or frame.plain(UNKNOWN)


def apart(frame: Frame, st: State, base: Val) -> Iterator[tuple[Link, State]]:
    """Yield each thing that a call may go to, with a state of its own for each object of the
    program: the receiver is one of them, so that what they do must not meet. The states are
    joined in `st` in the end."""
    objects = [k for k in base if any(isinstance(a, Inst) for a in frame.type_of(st, k.ref))]
    if len(objects) < 2:
        for link in list(base):
            yield link, st
    else:
        yield from one_of(frame, st, list(base))


def one_of(frame: Frame, st: State, things: list[Thing]) -> Iterator[tuple[Thing, State]]:
    """Yield things of which one is meant, each with a state of its own where there are several;
    the states are joined in `st` in the end."""
    if len(things) < 2:
        for thing in things:
            yield thing, st
        return
    before, after = st.copy(), None
    for thing in things:
        branch = before.copy()
        yield thing, branch
        after = frame.union(after, branch)
    if after is not None:
        st.become(after)


def several(base: Val) -> bool:
    return sum(not is_plain(link.ref.type) for link in base) > 1


def after_call(frame: Frame, st: State) -> None:
    """Every call may raise, after any part of what it updates."""
    if frame.tries:
        throw(frame, st.copy())


def call_val(frame: Frame, st: State, fn: Val, args: Args, expr: ir.Expr) -> Val:
    result = EMPTY
    for link, branch in apart(frame, st, fn):
        result = join(result, call_ref(frame, branch, link.ref, args, expr))
    if not fn:
        return unresolved(frame, st, args, expr, describe(getattr(expr, "fn", None)))
    return result


def call_ref(frame: Frame, st: State, ref: Ref, args: Args, expr: ir.Expr) -> Val:
    """Call whatever `ref` may be."""
    from aliaslint.flow.library_calls import getter_call, layer_call, library_call

    if ref.base is not None and isinstance(ref.key, str) and ref.key.startswith("()#"):
        return bound_call(frame, st, ref.base, ref.key[3:], args, expr)
    if ref.payload == "isolated" or (isinstance(ref.payload, tuple) and "isolated" in ref.payload):
        return isolated_call(frame, st, ref, args, expr)
    result = EMPTY
    for atom in ordered(frame.type_of(st, ref) or UNKNOWN):
        match atom:
            case FuncOf(key=key):
                result = join(result, function_call(frame, st, ref, key, args, expr))
            case ClassOf(key=key):
                result = join(result, instantiate(frame, st, key, args, expr))
            case Ext(dotted=dotted):
                result = join(result, library_call(frame, st, dotted, args, expr))
            case ExtInst(dotted=dotted):
                result = join(result, layer_call(frame, st, ref, dotted, args, expr))
            case Inst():
                result = join(result, call_method_of(frame, st, ref, "__call__", args, expr))
            case PartialOf(kind="attrgetter" | "itemgetter" | "methodcaller"):
                result = join(result, getter_call(frame, st, ref, atom, args, expr))
            case PartialOf():
                result = join(result, partial_call(frame, st, ref, args, expr))
            case "none":
                pass
            case _:
                text = describe(getattr(expr, "fn", None))
                result = join(result, unresolved(frame, st, args, expr, text))
    return result


def function_call(frame: Frame, st: State, ref: Ref, key: str, args: Args, expr: ir.Expr) -> Val:
    function = frame.a.kinds.function(key)
    if function is None:
        return unresolved(frame, st, args, expr, key)
    up = st.peek(ref, "<up>") if ref.kind != "static" else None
    if is_undecorated(ref):
        cls = undecorated_class(ref)
        return run_function(frame, st, function, cls, args, expr, closure=ref, up=up)
    cls = frame.a.closure_class.get(function.key)
    return invoke(frame, st, function, cls, args, expr, closure=ref, up=up)


def isolated_call(frame: Frame, st: State, ref: Ref, args: Args, expr: ir.Expr) -> Val:
    """A function under `mx.compile`: it sees copies, so nothing of the caller changes."""
    for val, node in args.all():
        frame.read(st, val, node.at if node else expr.at)
    return frame.fresh(expr.at, UNKNOWN if not frame.module.imports_mlx else ARRAY | UNKNOWN)


def partial_call(frame: Frame, st: State, ref: Ref, args: Args, expr: ir.Expr) -> Val:
    from aliaslint.flow.containers import element

    fn = frame.load_location(st, ref, "fn")
    positional: list[Val] = []
    keywords: dict[str, Val] = {}
    if ref.base is not None and st.peek(ref, Pos("i", 0)) is None:
        for how in frame.type_of(st, ref):
            if isinstance(how, PartialOf) and how.kind == "bound":
                fn = frame.symbol_val(st, FuncOf(str(how.names[0])))
                positional.append(single(ref.base, STATIC_PROV))
    fields = st.heap.get(ref, {})
    for k in range(len(fields)):
        if Pos("i", k) in fields:
            positional.append(element(frame, st, ref, Pos("i", k)))
    for key, val in fields.items():
        if isinstance(key, str) and key.startswith("kw:"):
            keywords[key[3:]] = val
    inner = args.after(*positional)
    inner.keywords = {**keywords, **args.keywords}
    return call_val(frame, st, fn, inner, expr)


def unresolved(frame: Frame, st: State, args: Args, expr: ir.Expr, text: str) -> Val:
    """Nothing is known of the callee: it reads its arguments and updates nothing."""
    for val, node in args.all():
        frame.read(st, val, node.at if node is not None else expr.at)
    frame.a.unresolved.setdefault(frame.where(expr.at), text)
    return frame.fresh(expr.at, UNKNOWN)


# --- methods


def method_call(
    frame: Frame,
    st: State,
    link: Link,
    stale: frozenset[object],
    name: str,
    args: Args,
    expr: ir.Call,
) -> Val:
    from aliaslint.flow.expressions import attr_of
    from aliaslint.flow.library_calls import array_method, container_method, nn_method

    ref = link.ref
    type_ = frame.type_of(st, ref)
    result = EMPTY
    if name == "__get__" and isinstance(ref.key, str) and ref.key.startswith("()#"):
        return bound_to(frame, st, {link: FRESH}, args, expr)
    several = one_of_several(frame, st, ref, type_, name)
    if several:
        result = protocol_call(frame, st, ref, name, several, args, expr)
        gone = UNKNOWN if name in frame.a.protocol else frozenset()
        type_ = frozenset(atom for atom in type_ - gone if not isinstance(atom, Inst))
    for atom in ordered(type_) if several else ordered(type_ or UNKNOWN):
        match atom:
            case Inst():
                only = frozenset({atom})
                result = join(result, bound_call(frame, st, ref, name, args, expr, only))
            case "array":
                frame.read(st, {link: stale}, expr.at)  # type: ignore[dict-item]
                if name in library.IN_PLACE_METHODS:
                    result = join(result, in_place_method(frame, st, link, name, args, expr))
                else:
                    result = join(result, array_method(frame, st, name, args, expr))
            case "none" | "scalar":
                pass
            case Seq() | Tup() | Map() | GenOf():
                result = join(result, container_method(frame, st, ref, name, args, expr))
            case ExtInst(dotted=dotted):
                result = join(result, nn_method(frame, st, ref, dotted, name, args, expr))
            case Ext() | Mod():
                fn = attr_of(frame, st, link, stale, name, expr.fn)
                result = join(result, call_val(frame, st, fn, args, expr))
            case FuncOf() if name == "__get__":
                result = join(result, bound_to(frame, st, {link: FRESH}, args, expr))
            case ClassOf(key=key):
                result = join(result, class_call(frame, st, ref, key, name, args, expr))
            case _:
                result = join(result, unknown_method(frame, st, link, stale, name, args, expr))
    return result


def one_of_several(
    frame: Frame, st: State, ref: Ref, type_: Type, name: str
) -> list[tuple[str, Method]]:
    """Return class and method for each class that the receiver may be of, if it may be of more
    than one: it is of one of them, so that what they do must not meet in it."""
    keys = [atom.key for atom in ordered(type_) if isinstance(atom, Inst)]
    found: list[tuple[str, Method]] = []
    if keys and "unknown" in type_ and name in frame.a.protocol:
        found = [pair for pair in candidates(frame.a, frame.module, name) if pair[0] not in keys]
    if not keys or len(keys) + len(found) < 2 or st.peek(ref, name) is not None:
        return []
    for key in keys:
        info = frame.a.classes.get(key)
        method = info.find(name) if info else None
        if info is None or method is None or method.role == "property" or info.alternatives(name):
            return []
        found.append((key, method))
    return found


def bound_to(frame: Frame, st: State, fn: Val, args: Args, expr: ir.Expr) -> Val:
    """`fn.__get__(o)`: the function with its first argument filled in."""
    from aliaslint.flow.library_calls import partial_

    return partial_(frame, st, Args([fn, *args.positional[:1]]), expr)


def in_place_method(
    frame: Frame, st: State, link: Link, name: str, args: Args, expr: ir.Call
) -> Val:
    """`a.__iadd__(b)` does what `a += b` does, and gives back `a`."""
    from aliaslint.flow.statements import update_target

    for val, node in args.all():
        frame.read(st, val, node.at if node else expr.at)
    assert isinstance(expr.fn, ir.Attr)
    how = "item" if name == "__setitem__" else "aug"
    holder = ir.Target(expr.at)
    update_target(frame, st, holder, expr.fn.obj, {link: FRESH}, how, name)
    return {link: FRESH}


def unknown_method(
    frame: Frame,
    st: State,
    link: Link,
    stale: frozenset[object],
    name: str,
    args: Args,
    expr: ir.Call,
) -> Val:
    """A method of an object of unknown class: the cache protocol resolves by name."""
    from aliaslint.flow.library_calls import container_method

    stored = st.peek(link.ref, name)
    if stored is not None:
        return call_val(frame, st, stored, args, expr)
    if name in frame.a.protocol:
        found = candidates(frame.a, frame.module, name)
        found = [pair for pair in found if not is_excluded(frame.a, st, link.ref, pair[0])]
        if found:
            return protocol_call(frame, st, link.ref, name, found, args, expr)
        hold_across(frame, st, link.ref, expr)
    if name in {"append", "extend", "insert", "items", "values", "keys", "get"}:
        known = any(isinstance(k, Pos) for k in st.heap.get(link.ref, {}))
        if known or name in {"append", "items", "values"}:
            return container_method(frame, st, link.ref, name, args, expr)
    if stale or name in library.ARRAY_METHODS:
        frame.read(st, {link: stale}, expr.at)  # type: ignore[dict-item]
    result = unresolved(frame, st, args, expr, describe(expr.fn))
    if name in library.ARRAY_SCALARS:
        return frame.plain()
    return result


def protocol_call(
    frame: Frame,
    st: State,
    ref: Ref,
    name: str,
    found: list[tuple[str, Method]],
    args: Args,
    expr: ir.Call,
) -> Val:
    """Any of the candidate classes may stand behind the receiver: their effects are joined.

    What the object holds as an instance of one class is kept apart from what it would hold as
    an instance of another (a facet of the object for each class).
    """
    if frame.a.coarse and name in frame.a.protocol and len(found) > 1:
        return call_by_effects(frame, st, ref, found, args, expr)
    before = st.copy()
    facets = {r: before.heap.pop(r) for r in list(before.heap) if r.base is ref and is_facet(r)}
    after: State | None = None
    result = EMPTY
    for class_key, method in found:
        branch = before.copy()
        branch.narrowed[ref] = frozenset({Inst(class_key)})
        facet = frame.refs.init(ref, f"as:{class_key}", NOTHING)
        shared = before.heap.get(ref, {})
        fitting = {k: fit(frame, class_key, k, v) for k, v in shared.items()}
        branch.heap[ref] = {**facets.get(facet, {}), **fitting}
        outer, frame.guessing = frame.guessing, len(found) > 1
        frame.a.guessing += len(found) > 1
        try:
            val = call_method(frame, branch, ref, class_key, method, args, expr)
        except Stopped:
            continue
        finally:
            frame.guessing = outer
            frame.a.guessing -= len(found) > 1
        own = branch.heap[ref]
        branch.heap[ref] = {k: v for k, v in own.items() if k in shared}
        kept = facet_fields(branch, facet, {k: v for k, v in own.items() if k not in shared}, val)
        if kept:
            branch.heap[facet] = kept
        branch.narrowed.pop(ref, None)
        if ref in before.narrowed:
            branch.narrowed[ref] = before.narrowed[ref]
        after = frame.union(after, branch)
        result = join(result, val)
    if after is None:
        raise Stopped
    st.env, st.heap, st.owned = after.env, after.heap, after.owned
    return result


def fit(frame: Frame, class_key: str, key: Key, val: Val) -> Val:
    """What an attribute holds if the object is of this class: no array where it has none."""
    if not isinstance(key, str):
        return val
    kind = frame.a.kinds.attribute(class_key, key)
    if "array" in kind and "scalar" not in kind:
        arrays = {link: stale for link, stale in val.items() if not is_plain(link.ref.type)}
        return arrays or val
    if not kind or "array" in kind or "unknown" in kind:
        return val
    fitting = {link: stale for link, stale in val.items() if "array" not in link.ref.type}
    return fitting or frame.plain(kind)


def facet_fields(st: State, facet: Ref, fields: dict[Key, Val], result: Val) -> dict[Key, Val]:
    """Keep of a facet what somebody else holds too; the rest can alias nothing."""
    held: dict[Ref, None] = dict.fromkeys(link.ref for link in result)
    for _, val in st.bindings():
        for link in val:
            held[link.ref] = None
    kept = {key: shared_only(facet, val, held) for key, val in fields.items()}
    return {key: val for key, val in kept.items() if val}


def hold_across(frame: Frame, st: State, ref: Ref, expr: ir.Call) -> None:
    """An unresolved call of the protocol may update: captures held across it are told."""
    where = frame.where(expr.at)
    site = Site(where, "unresolved", describe(expr.fn), function=frame.fn.name)
    places: Iterator[tuple[Binding, Ref]] = (
        ((ref, key), link.ref)
        for key, val in st.heap.get(ref, {}).items()
        if isinstance(key, str) and not key.startswith(("#", "()", "@"))
        for link in val
        if not is_plain(frame.type_of(st, link.ref))
    )
    st.mark_all(places, Mark(site))


def bound_call(
    frame: Frame,
    st: State,
    ref: Ref,
    name: str,
    args: Args,
    expr: ir.Expr,
    only: Type | None = None,
) -> Val:
    """`ref.name(args)` for instances (and classes) of the program."""
    result = EMPTY
    for atom in ordered(only or frame.type_of(st, ref) or UNKNOWN):
        match atom:
            case Inst(key=key):
                stored = st.peek(ref, name)
                if stored is not None:
                    result = join(result, call_val(frame, st, stored, args, expr))
                    continue
                result = join(result, instance_call(frame, st, ref, key, name, args, expr))
            case ClassOf(key=key):
                result = join(result, class_call(frame, st, ref, key, name, args, expr))
            case _:
                result = join(result, unresolved(frame, st, args, expr, name))
    return result


def instance_call(
    frame: Frame, st: State, ref: Ref, key: str, name: str, args: Args, expr: ir.Expr
) -> Val:
    from aliaslint.flow.expressions import location_of_field
    from aliaslint.flow.library_calls import attributes_by_name, record_method

    info = frame.a.classes.get(key)
    method = info.find(name) if info else None
    if info is not None and method is not None and method.role != "property":
        others = [m for m in info.alternatives(name) if m is not method and m.role != "property"]
        result = EMPTY
        for meant, branch in one_of(frame, st, [method, *others]):
            result = join(result, call_method(frame, branch, ref, key, meant, args, expr))
        return result
    if info is not None and info.record and name in {"_replace", "_asdict"}:
        return record_method(frame, st, ref, name, args, expr)
    made = key if name == "__class__" else info.find_nested(name) if info else None
    if made is not None:
        return instantiate(frame, st, made, args, expr)
    if method is not None or frame.a.kinds.attribute(key, name):
        if method is not None:
            fn = call_property(frame, st, ref, key, method, name, expr)
        else:
            fn = location_of_field(frame, st, ref, name)
        return call_val(frame, st, fn, args, expr)
    if info is not None and name in {"parameters", "trainable_parameters", "children", "items"}:
        if info.is_module_class():
            return attributes_by_name(frame, st, [ref], expr)
        return frame.plain(UNKNOWN)
    if info is not None and info.find("__getattr__") and not name.startswith("__"):
        return call_val(frame, st, looked_up(frame, st, ref, name, expr), args, expr)
    return unresolved(frame, st, args, expr, f"{info.name if info else key}.{name}")


def call_method(
    frame: Frame, st: State, ref: Ref, key: str, method: Method, args: Args, expr: ir.Expr
) -> Val:
    if frame.a.coarse and is_judged_by_effects(frame.a, key, method):
        return call_by_effects(frame, st, ref, [(key, method)], args, expr)
    function = frame.a.classes.method(method)
    match method.role:
        case "static" if not binds_static(frame, function):
            inner = args
        case "class":
            inner = args.after(frame.class_val(key))
        case _:
            inner = args.after(single(ref, STATIC_PROV))
    return invoke(frame, st, function, key, inner, expr)


def binds_static(frame: Frame, function: ir.Function) -> bool:
    """True if a decorator above `staticmethod` gives back a function, which is bound again."""
    decoration = frame.a.kinds.decorations.of(function)
    return decoration is not None and decoration.binds_static


def call_method_of(
    frame: Frame, st: State, ref: Ref, name: str, args: Args | list[Val], expr: ir.Expr
) -> Val:
    """Call a special method (`__getitem__`, `__call__`, …) where the class has it."""
    inner = args if isinstance(args, Args) else Args(list(args), nodes=[None] * len(args))
    result = EMPTY
    for atom in ordered(frame.type_of(st, ref)):
        if isinstance(atom, Inst):
            info = frame.a.classes.get(atom.key)
            method = info.find(name) if info else None
            if method is None:
                if name == "__call__":
                    result = join(result, unresolved(frame, st, inner, expr, atom.key))
                continue
            result = join(result, instance_call(frame, st, ref, atom.key, name, inner, expr))
    return result


def call_property(
    frame: Frame, st: State, ref: Ref, key: str, method: Method, name: str, expr: ir.Expr
) -> Val:
    """Attribute access is a call of the property's getter."""
    function = frame.a.classes.method(method)
    val = invoke(frame, st, function, key, Args([single(ref, STATIC_PROV)], nodes=[None]), expr)
    after_call(frame, st)
    if is_cached(function):
        frame.store_location(st, ref, name, kept(frame, val, expr))
    return handed(frame, st, val, name, expr)


def is_cached(getter: ir.Function) -> bool:
    """True for a `cached_property`: what its first call gives is kept on the object."""
    return any(text.endswith("cached_property") for text in getter.decorators)


def kept(frame: Frame, val: Val, expr: ir.Expr) -> Val:
    """What a decorator keeps of a call. The function that gives a live handle back hands it
    over there: a copy of what the caller gets would leave the kept one as it is."""
    new = EMPTY
    for link, stale in val.items():
        hop = Hop("hand-over", given_at(frame, link.prov, expr), describe(expr))
        new = join(new, stored({link: stale}, hop))
    return new


def given_at(frame: Frame, prov: Prov, expr: ir.Expr) -> Where:
    """Where the function that a call runs took what it gives back; the call if it is not known."""
    if prov.kind == "capture" and prov.where is not None and prov.where != frame.where(expr.at):
        return prov.where
    return next((hop.where for hop in prov.hops if hop.kind == "call"), frame.where(expr.at))


def looked_up(frame: Frame, st: State, ref: Ref, name: str, expr: ir.Expr) -> Val:
    """An attribute that the class does not have is what its `__getattr__` gives for the name."""
    text = single(frame.refs.const(name, STR), FRESH_PROV)
    val = call_method_of(frame, st, ref, "__getattr__", [text], expr)
    after_call(frame, st)
    return handed(frame, st, val, name, expr) or frame.plain(UNKNOWN)


def call_setter(
    frame: Frame, st: State, ref: Ref, key: str, method: Method, val: Val, at: ir.At, text: str
) -> None:
    node = ir.Const(frame.value_at or at, None)
    args = Args([single(ref, STATIC_PROV), val], nodes=[None, node])
    invoke(frame, st, frame.a.classes.method(method), key, args, node, hand_over=text)
    after_call(frame, st)


def handed(frame: Frame, st: State, val: Val, name: str, expr: ir.Expr) -> Val:
    """What a state getter, copy, merge or extract gives back is handed over, not captured."""
    if name not in HAND_OVER_NAMES:
        return val
    hop = Hop("hand-over", frame.where(expr.at), describe(expr))
    for link in val:
        if link.ref.kind == "alloc" and any(isinstance(a, (Seq, Map)) for a in link.ref.type):
            for key, inner in list(st.heap.get(link.ref, {}).items()):
                if isinstance(key, Pos):
                    st.put(link.ref, key, hopped(inner, hop))
    return hopped(val, hop)


def hopped(val: Val, hop: Hop) -> Val:
    new: Val = {}
    for link, stale in val.items():
        prov = link.prov
        if prov.kind == "capture" and not any(h.kind == "hand-over" for h in prov.hops):
            prov = replace(prov, hops=(hop, *prov.hops)[:4])
        new[Link(link.ref, prov)] = stale
    return new


def super_call(frame: Frame, st: State, sup: ir.Call, name: str, expr: ir.Call) -> Val:
    args = evaluate_args(frame, st, expr)
    owner_key = frame.fn.class_key or enclosing_class(frame)
    owner = frame.a.classes.get(owner_key) if owner_key else None
    receiver = frame.cls or owner_key
    info = frame.a.classes.get(receiver) if receiver else None
    if owner is None or info is None:
        return unresolved(frame, st, args, expr, f"super().{name}")
    method = info.after(owner, name) or owner.after(owner, name)
    if method is None:
        if name == "__new__":
            type_: Type = frozenset({Inst(info.key)})
            return frame.fresh(expr.at, type_)
        for val, node in args.all():
            frame.read(st, val, node.at if node else expr.at)
        return frame.plain(UNKNOWN)
    self_name = frame.fn.params[0] if frame.fn.params else ""
    self_val = frame.load_name(st, ir.Name(expr.at, self_name, "local"))
    function = frame.a.classes.method(method)
    inner = args if method.role == "static" else args.after(self_val)
    result = invoke(frame, st, function, info.key, inner, expr)
    after_call(frame, st)
    return result


def enclosing_class(frame: Frame) -> str | None:
    function: ir.Function | None = frame.fn
    while function is not None:
        if function.class_key:
            return function.class_key
        function = function.parent
    return None


def class_call(
    frame: Frame, st: State, ref: Ref, key: str, name: str, args: Args, expr: ir.Expr
) -> Val:
    """`Class.name(...)`: static and class methods, unbound methods, `__new__`."""
    info = frame.a.classes.get(key)
    method = info.find(name) if info else None
    nested = info.find_nested(name) if info else None
    if nested is not None:
        return instantiate(frame, st, nested, args, expr)
    if method is None:
        if name == "__new__":
            return frame.fresh(expr.at, frozenset({Inst(key)}))
        return unresolved(frame, st, args, expr, f"{info.name if info else key}.{name}")
    inner = args.after(frame.class_val(key)) if method.role == "class" else args
    result = EMPTY
    meanings = info.meanings(name) if info is not None else []
    for other, branch in one_of(frame, st, meanings):
        function = frame.a.classes.method(other)
        result = join(result, invoke(frame, branch, function, key, inner, expr))
    return handed(frame, st, result, name, expr)


# --- objects


def instantiate(frame: Frame, st: State, key: str, args: Args, expr: ir.Expr) -> Val:
    """`Class(...)`: `__new__`, then `__init__`; dataclasses and named tuples take fields."""
    info = frame.a.classes.get(key)
    if info is None:
        return unresolved(frame, st, args, expr, key)
    made = single(
        frame.refs.alloc(
            (frame.fn.key, expr.at, key), frame.positions[-2:], frozenset({Inst(key)})
        ),
        FRESH_PROV,
    )
    new = info.find("__new__")
    if new is not None:
        made_by_new = invoke(
            frame, st, frame.a.classes.method(new), key, args.after(frame.class_val(key)), expr
        )
        made = made_by_new or made
    init = info.find("__init__")
    if init is not None:
        for link in list(made):
            invoke(
                frame,
                st,
                frame.a.classes.method(init),
                key,
                args.after({link: FRESH}),
                expr,
                hand_over=f"{info.name}(...)",
            )
    elif info.record:
        fill_record(frame, st, info, made, args, expr)
        after_record(frame, st, info, made, expr)
    elif any(b.startswith("enum.") for b in info.all_outside()):
        return frame.plain()
    else:
        for val, node in args.all():
            frame.read(st, val, node.at if node else expr.at)
    after_call(frame, st)
    return made


def fill_record(
    frame: Frame, st: State, info: ClassInfo, made: Val, args: Args, expr: ir.Expr
) -> None:
    for link in made:
        for i, name in enumerate(info.fields):
            if i < len(args.positional):
                val = args.positional[i]
            elif name in args.keywords:
                val = args.keywords[name]
            elif args.loose:
                val = args.loose
            elif info.has_class_name(name):
                val = field_default(frame, st, info, name, expr)
            else:
                continue
            hop = Hop("store", frame.where(expr.at), f"{info.name}.{name}")
            frame.store_location(st, link.ref, name, stored(val, hop))
            if info.record == "namedtuple":
                st.put(link.ref, Pos("i", i), stored(val, hop))


def after_record(frame: Frame, st: State, info: ClassInfo, made: Val, expr: ir.Expr) -> None:
    """A dataclass runs its `__post_init__`, which is given the fields that are `InitVar`."""
    after = info.find("__post_init__") if info.record == "dataclass" else None
    if after is None:
        return
    function = frame.a.classes.method(after)
    for link in list(made):
        given = [st.peek(link.ref, name) or frame.plain(UNKNOWN) for name in info.init_only]
        inner = Args([{link: FRESH}, *given], nodes=[None] * (len(given) + 1))
        text = f"{info.name}(...)"
        invoke(frame, st, function, info.key, inner, expr, hand_over=text)


def field_default(frame: Frame, st: State, info: ClassInfo, name: str, expr: ir.Expr) -> Val:
    """The default of a record's field: one value for all, or one made by a factory."""
    from aliaslint.flow.expressions import class_location

    for ancestor in info.mro:
        for node in ancestor.node.body:
            match node:
                case ast.AnnAssign(
                    target=ast.Name(id=found), value=ast.Call(func=func, keywords=keywords)
                ) if found == name and ast.unparse(func).endswith("field"):
                    if any(k.arg == "default_factory" for k in keywords):
                        note = frame.a.kinds.attribute(info.key, name)
                        return frame.fresh((expr.at, name), note or UNKNOWN)
                case _:
                    pass
    return class_location(frame, st, info.key, name)


def stored(val: Val, hop: Hop) -> Val:
    """What a location of an object holds: the same handles, with the store remembered."""
    from aliaslint.flow.context import extend

    new: Val = {}
    for link, stale in bind(val).items():
        prov = link.prov
        if not is_plain(link.ref.type):
            prov = extend(prov, hop)
            if not prov.in_location:
                prov = replace(prov, bound=True, in_location=True)
        moved = Link(link.ref, prov)
        new[moved] = new.get(moved, FRESH) | stale
    return new


def call_operator(frame: Frame, st: State, vals: list[Val], expr: ir.Fresh) -> Val | None:
    """An operator on instances of the program is a call of their method, if they have one."""
    for link in list(vals[0]):
        for atom in ordered(frame.type_of(st, link.ref)):
            if isinstance(atom, Inst):
                info = frame.a.classes.get(atom.key)
                if info is None:
                    continue
                names = [n for n in info.methods if n in OPERATORS]
                for name in names:
                    call_method_of(frame, st, link.ref, name, vals[1:], expr)
                if names:
                    return frame.fresh(expr.at, UNKNOWN)
    return None


OPERATORS = frozenset(
    [
        "__add__",
        "__sub__",
        "__mul__",
        "__truediv__",
        "__matmul__",
        "__floordiv__",
        "__mod__",
        "__pow__",
        "__and__",
        "__or__",
        "__xor__",
        "__neg__",
    ]
)


# --- invoking a function of the program


def invoke(
    frame: Frame,
    st: State,
    function: ir.Function,
    cls: str | None,
    args: Args,
    expr: ir.Expr,
    closure: Ref | None = None,
    up: Val | None = None,
    hand_over: str = "",
) -> Val:
    """Call a function by its name: what its decorators make of it runs, if they replace it."""
    decoration = frame.a.kinds.decorations.of(function)
    if decoration is not None:
        meant = decorated_val(frame, st, function, cls, decoration, expr)
        if meant:
            frame.a.resolved.setdefault(frame.where(expr.at), set()).add(function.key)
            return call_val(frame, st, meant, args, expr)
    return run_function(frame, st, function, cls, args, expr, closure, up, hand_over)


def run_function(
    frame: Frame,
    st: State,
    function: ir.Function,
    cls: str | None,
    args: Args,
    expr: ir.Expr,
    closure: Ref | None = None,
    up: Val | None = None,
    hand_over: str = "",
) -> Val:
    """Bind the arguments and apply the callee's summary; generators wait to be advanced."""
    frame.a.resolved.setdefault(frame.where(expr.at), set()).add(function.key)
    bound = bind_params(frame, st, function, args, closure, expr)
    if function.generator or function.coroutine:
        return suspended(frame, st, function, cls, bound, up, expr)
    for decorator in function.decorators:
        if decorator_isolates(decorator):
            for val, node in args.all():
                frame.read(st, val, node.at if node else expr.at)
            return frame.fresh(expr.at, ARRAY)
    nodes: dict[str, ir.Expr | None] = dict.fromkeys(bound)
    nodes.update(argument_nodes(function, args))
    place = memo_place(frame, function, bound)
    known = st.peek(*place) if place is not None else None
    if known is not None:
        return known
    val = apply_call(frame, st, function, cls, bound, nodes, up, expr, hand_over)
    if place is not None:
        frame.store_location(st, *place, kept(frame, val, expr))
    return val


def memo_place(
    frame: Frame, function: ir.Function, bound: dict[str, Val]
) -> tuple[Ref, Key] | None:
    """Where a function under `lru_cache` keeps what it gave for these arguments: with the one
    object among them, or with itself; None where the arguments cannot be told apart."""
    if not any(decorator_keeps(text) for text in function.decorators):
        return None
    own = frame.refs.static("func", function.key, frozenset({FuncOf(function.key)}))
    owner, words = own, []
    for val in bound.values():
        ref = next(iter(val)).ref if len(val) == 1 else None
        if ref is not None and ref.kind == "const" and isinstance(ref.payload, tuple):
            if ref.payload[1] == "?":
                return None
            words.append(repr(ref.payload[1]))
        elif ref is not None and owner is own and not ref.many:
            owner = ref
            words.append("*")
        else:
            return None
    return owner, f"#memo:{function.key}({','.join(words)})"


def decorator_keeps(text: str) -> bool:
    return text.partition("(")[0].rpartition(".")[2] in {"lru_cache", "cache"}


def argument_nodes(function: ir.Function, args: Args) -> dict[str, ir.Expr | None]:
    """Return the caller's expression for each parameter, where there is exactly one."""
    nodes: dict[str, ir.Expr | None] = {}
    positional = [p for p, k in zip(function.params, function.kinds, strict=True) if k == "pos"]
    for param, node in zip(positional, args.nodes, strict=False):
        nodes[param] = node
    for keyword, node in args.keyword_nodes.items():
        nodes[keyword] = node
    return nodes


def suspended(
    frame: Frame,
    st: State,
    function: ir.Function,
    cls: str | None,
    bound: dict[str, Val],
    up: Val | None,
    expr: ir.Expr,
) -> Val:
    """A generator or coroutine object: its body runs when it is advanced or awaited."""
    made = frame.refs.alloc(
        (frame.fn.key, expr.at, "gen"), frame.positions[-2:], frozenset({GenOf(function.key)})
    )
    for name, val in bound.items():
        st.put(made, f"@{name}", val)
    if up:
        st.put(made, "<up>", up)
    if cls is not None:
        frame.a.closure_class.setdefault(function.key, cls)
    return single(made, FRESH_PROV)


def bind_params(
    frame: Frame,
    st: State,
    function: ir.Function,
    args: Args,
    closure: Ref | None,
    expr: ir.Expr,
) -> dict[str, Val]:
    bound: dict[str, Val] = {}
    taken = 0
    for param, kind in zip(function.params, function.kinds, strict=True):
        match kind:
            case "*":
                rest = args.positional[taken:]
                made = frame.refs.alloc(
                    (frame.fn.key, expr.at, "*"),
                    frame.positions[-2:],
                    frozenset({Seq("tuple", UNKNOWN)}),
                )
                for k, val in enumerate(rest):
                    st.put(made, Pos("i", k), val)
                if args.loose:
                    st.put(made, ANY, args.loose)
                else:
                    size = frame.refs.const(len(rest), SCALAR)
                    st.put(made, "#len", single(size, FRESH_PROV))
                bound[param] = single(made, FRESH_PROV)
            case "**":
                made = frame.refs.alloc(
                    (frame.fn.key, expr.at, "**"), frame.positions[-2:], frozenset({Map(UNKNOWN)})
                )
                for key, val in args.keywords.items():
                    if key not in function.params:
                        st.put(made, Pos("i", key), val)
                if args.loose:
                    st.put(made, ANY, args.loose)
                bound[param] = single(made, FRESH_PROV)
            case _:
                if kind == "pos" and taken < len(args.positional):
                    bound[param] = args.positional[taken]
                    taken += 1
                elif param in args.keywords:
                    bound[param] = args.keywords[param]
                elif args.loose:
                    bound[param] = join(args.loose, default(frame, st, function, param, closure))
                else:
                    bound[param] = default(frame, st, function, param, closure)
    return bound


def default(frame: Frame, st: State, function: ir.Function, param: str, closure: Ref | None) -> Val:
    """A default is evaluated once, when the function is defined: one handle for all calls."""
    if closure is not None:
        held = st.peek(closure, f"@{param}")
        if held is not None:
            return held
    for name, node in function.defaults:
        if name != param:
            continue
        if isinstance(node, ir.Const):
            return evaluate(frame, node, st)
        ref = frame.refs.static("func", function.key, frozenset({FuncOf(function.key)}))
        known = st.peek(ref, f"@{param}")
        if known is None:
            type_ = frame.a.kinds.expression(
                node, frame.a.kinds.module_function(frame.a.modules.by_id[function.module]), None
            )
            inner = frame.refs.init(ref, f"@{param}", type_)
            where = frame.a.where(function.module, node.at)
            prov = Prov("static", where, f"{param}={describe(node)}", owner=False, in_location=True)
            known = {Link(inner, prov): FRESH}
            st.put(ref, f"@{param}", known)
        return known
    return frame.plain(UNKNOWN)


__all__ = ["Args", "Ext", "Mod", "Stopped", "call", "classes_of", "is_object"]
