"""Loops: unrolled where positions are known, focused and run to a fixpoint elsewhere.

A loop variable is the current element: other than those visited and those to come. Sequences
that are walked together share the position.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from aliaslint.flow.calls import call_method_of
from aliaslint.flow.containers import (
    constant_positions,
    element,
    focus,
    fold,
    join_elements,
    known_keys,
    known_length,
    looked_up_positions,
    spaces_in,
    unfocus,
    value_at,
)
from aliaslint.flow.expressions import (
    Stopped,
    evaluate,
    item_method,
    load_element,
    test,
)
from aliaslint.flow.frame import FRESH_PROV, STATIC_PROV, Active, Frame, LoopFrame, bind
from aliaslint.flow.leaving import settle_updates
from aliaslint.flow.narrowing import narrow
from aliaslint.flow.state import State, holds, is_object
from aliaslint.flow.values import ANY, EMPTY, Key, Link, Pos, Ref, Val, join, single
from aliaslint.lower import ir
from aliaslint.lower.walk import statements
from aliaslint.program.classes import Method
from aliaslint.program.kinds import const_type
from aliaslint.program.types import (
    ARRAY,
    SCALAR,
    UNKNOWN,
    ExtInst,
    GenOf,
    Inst,
    Map,
    Seq,
    is_plain,
)

MAX_UNROLL = 4
MAX_ROUNDS = 8
MAX_LOOKED_UP = 2


# --- what is walked: zip, enumerate, range, dict views are lazy objects with a "#walk" kind


def walker(frame: Frame, st: State, at: ir.At, kind: str, parts: list[Val]) -> Val:
    """Make the object that `zip(...)`, `enumerate(...)`, `range(...)` and the like give."""
    made = frame.refs.alloc(
        (frame.fn.key, at, "walk"), frame.positions[-2:], frozenset({Seq("walk", UNKNOWN)})
    )
    fields: dict[Key, Val] = {"#walk": single(frame.refs.const(kind, SCALAR), FRESH_PROV)}
    for i, part in enumerate(parts):
        fields[f"#part{i}"] = part
    st.heap[made] = fields
    return single(made, FRESH_PROV)


def walk_kind(st: State, ref: Ref) -> str:
    known = st.peek(ref, "#walk")
    if not known:
        return ""
    payload = next(iter(known)).ref.payload
    return str(payload[1]) if isinstance(payload, tuple) else ""


def walk_parts(st: State, ref: Ref) -> list[Val]:
    parts: list[Val] = []
    while (part := st.peek(ref, f"#part{len(parts)}")) is not None:
        parts.append(part)
    return parts


def walk_element(frame: Frame, st: State, ref: Ref, pos: Pos, node: ir.Expr) -> Val | None:
    """Return the element of a lazy walk at `pos`; None if `ref` is none."""
    kind = walk_kind(st, ref)
    if not kind:
        return None
    parts = walk_parts(st, ref)
    match kind:
        case "range":
            return position_val(frame, pos)
        case "enumerate":
            inner = iterate_val(frame, st, parts[0], pos, node)
            return tuple_of(frame, st, ref, node.at, [position_val(frame, pos), inner])
        case "zip":
            vals = [iterate_val(frame, st, part, pos, node) for part in parts]
            return tuple_of(frame, st, ref, node.at, vals)
        case "reversed":
            return iterate_val(frame, st, parts[0], ANY, node)
        case "items":
            inner = iterate_val(frame, st, parts[0], pos, node, values=True)
            key = iterate_val(frame, st, parts[0], pos, node)
            return tuple_of(frame, st, ref, node.at, [key, inner])
        case "values":
            return iterate_val(frame, st, parts[0], pos, node, values=True)
        case "map":
            from aliaslint.flow.calls import Args, call_val

            inner_vals = [iterate_val(frame, st, part, pos, node) for part in parts[1:]]
            args = Args(inner_vals, nodes=[None] * len(inner_vals))
            return call_val(frame, st, parts[0], args, ir.Const(node.at, None))
        case _:
            return iterate_val(frame, st, parts[0], pos, node) if parts else frame.plain(UNKNOWN)


def position_val(frame: Frame, pos: Pos) -> Val:
    if pos.kind == "i":
        return single(frame.refs.const(pos.index, SCALAR), FRESH_PROV)
    if pos.kind == "?":
        return frame.plain(SCALAR)
    return single(frame.refs.pos(pos, SCALAR), FRESH_PROV)


def tuple_of(frame: Frame, st: State, walk: Ref, at: ir.At, vals: list[Val]) -> Val:
    """Make the tuple that one step of `walk` gives; walks inside walks have tuples of their own."""
    made = frame.refs.alloc(
        (frame.fn.key, at, "step", walk.id),
        frame.positions[-2:],
        frozenset({Seq("tuple", UNKNOWN)}),
    )
    fields: dict[Key, Val] = {Pos("i", i): val for i, val in enumerate(vals)}
    fields["#len"] = single(frame.refs.const(len(vals), SCALAR), FRESH_PROV)
    st.heap[made] = fields
    return single(made, FRESH_PROV)


def iterate_val(
    frame: Frame, st: State, val: Val, pos: Pos, node: ir.Expr, values: bool = False
) -> Val:
    """Return what iterating over `val` gives at `pos`."""
    result = EMPTY
    for link, stale in list(val.items()):
        ref = link.ref
        special = walk_element(frame, st, ref, pos, node)
        if special is not None:
            result = join(result, special)
            continue
        type_ = frame.type_of(st, ref)
        if "array" in type_:
            frame.read(st, {link: stale}, node.at)
            result = join(result, frame.fresh((node.at, "row"), ARRAY))
        elif any(isinstance(a, Map) for a in type_) and not values:
            result = join(result, key_at(frame, st, ref, pos))
        elif any(isinstance(a, Inst) for a in type_):
            result = join(result, iterate_instance(frame, st, ref, pos, node))
        elif is_plain(type_):
            result = join(result, frame.plain(UNKNOWN))
        else:
            if values and any(isinstance(a, Map) for a in type_):
                result = join(result, value_at(frame, st, ref, pos))
            else:
                result = join(result, load_element(frame, st, ref, pos, node))
    return result


def key_at(frame: Frame, st: State, ref: Ref, pos: Pos) -> Val:
    """Return the key that a walk over a dict is at."""
    keys = known_keys(st, ref)
    if keys is None or pos.kind != "i" or not isinstance(pos.index, int):
        return frame.plain(UNKNOWN)
    if pos.index >= len(keys):
        return EMPTY
    key = keys[pos.index].index
    return single(frame.refs.const(key, const_type(key)), FRESH_PROV)


def iterate_instance(frame: Frame, st: State, ref: Ref, pos: Pos, node: ir.Expr) -> Val:
    """Iterating over an object of the program: `__iter__`, or `__getitem__` by position."""
    type_ = frame.type_of(st, ref)
    if item_method(frame, type_, "__iter__") is not None:
        inner = call_method_of(frame, st, ref, "__iter__", [], node)
        inner = {link: stale for link, stale in inner.items() if link.ref is not ref}
        if any(isinstance(a, GenOf) for link in inner for a in link.ref.type):
            from aliaslint.flow.generators import collect

            inner = collect(frame, st, inner, node)
        if inner:
            return iterate_val(frame, st, inner, pos, node)
        if item_method(frame, type_, "__next__") is not None:
            return call_method_of(frame, st, ref, "__next__", [], node)
        return frame.plain(UNKNOWN)
    if item_method(frame, type_, "__getitem__") is not None:
        index = position_val(frame, pos)
        return call_method_of(frame, st, ref, "__getitem__", [index], node)
    return load_element(frame, st, ref, pos, node)


def iterators(frame: Frame, st: State, val: Val, node: ir.Expr) -> Val:
    """Put what `__iter__` gives in the place of objects whose `__iter__` is a generator."""
    result = EMPTY
    for link, stale in list(val.items()):
        made = EMPTY
        if gives_generator(frame, st, link.ref):
            made = call_method_of(frame, st, link.ref, "__iter__", [], node)
        result = join(result, made or {link: stale})
    return result


def gives_generator(frame: Frame, st: State, ref: Ref) -> bool:
    method = item_method(frame, frame.type_of(st, ref), "__iter__")
    return isinstance(method, Method) and frame.a.classes.method(method).generator


def run_out(frame: Frame, st: State, val: Val, node: ir.Expr) -> Val:
    """Put what generators yield, to their end, in their place: `a, b = generator()`."""
    from aliaslint.flow.generators import collect

    result = EMPTY
    for link, stale in iterators(frame, st, val, node).items():
        generator = any(isinstance(a, GenOf) for a in link.ref.type)
        one = {link: stale}
        result = join(result, collect(frame, st, one, node) if generator else one)
    return result


def walked_refs(frame: Frame, st: State, val: Val) -> list[Ref]:
    """Return the containers that a walk goes through in step."""
    found: list[Ref] = []
    for link in val:
        kind = walk_kind(st, link.ref)
        if kind == "range":
            found.append(link.ref)
        elif kind in {"enumerate", "zip", "iter", "map", "values", "items"}:
            for part in walk_parts(st, link.ref)[1 if kind == "map" else 0 :]:
                found.extend(walked_refs(frame, st, part))
        elif kind == "" and not is_plain(frame.type_of(st, link.ref)):
            found.append(link.ref)
    return list(dict.fromkeys(found))


def exact_length(frame: Frame, st: State, val: Val) -> int | None:
    """Return the number of iterations where it is known."""
    lengths: list[int | None] = []
    for link in val:
        kind = walk_kind(st, link.ref)
        if kind == "range":
            lengths.append(range_length(st, link.ref))
        elif kind in {"enumerate", "iter", "reversed", "values", "items", "keys"}:
            parts = walk_parts(st, link.ref)
            lengths.append(exact_length(frame, st, parts[0]) if parts else None)
        elif kind == "zip":
            inner = [exact_length(frame, st, part) for part in walk_parts(st, link.ref)]
            known = [n for n in inner if n is not None]
            lengths.append(min(known) if len(known) == len(inner) and known else None)
        elif kind == "map":
            parts = walk_parts(st, link.ref)
            lengths.append(exact_length(frame, st, parts[1]) if len(parts) > 1 else None)
        elif kind:
            lengths.append(None)
        else:
            keys = known_keys(st, link.ref)
            lengths.append(len(keys) if keys is not None else known_length(st, link.ref))
    if len(lengths) == 1:
        return lengths[0]
    return None


def range_length(st: State, ref: Ref) -> int | None:
    parts = walk_parts(st, ref)
    if len(parts) == 1 and len(parts[0]) == 1:
        payload = next(iter(parts[0])).ref.payload
        if isinstance(payload, tuple) and isinstance(payload[1], int):
            return payload[1]
    return None


# --- for


@dataclass(slots=True)
class Walk:
    frame: Frame
    stmt: ir.For
    iterable: Val
    key: object


def run_for(frame: Frame, stmt: ir.For, st: State) -> State | None:
    iterable = iterators(frame, st, evaluate(frame, stmt.iterable, st), stmt.iterable)
    generators = [k for k in iterable if any(isinstance(a, GenOf) for a in k.ref.type)]
    if generators:
        from aliaslint.flow.generators import for_generator

        return for_generator(frame, stmt, st, generators)
    for link, stale in list(iterable.items()):
        if "array" in frame.type_of(st, link.ref):
            frame.read(st, {link: stale}, stmt.iterable.at)
    walk = Walk(frame, stmt, iterable, (frame.fn.key, stmt.at))
    length = exact_length(frame, st, iterable)
    loop = LoopFrame(walk.key)
    frame.loops.append(loop)
    before = frame.positions
    try:
        if length is not None and length <= MAX_UNROLL:
            state: State | None = st
            for k in range(length):
                state = iteration(walk, loop, state, Pos("i", k))
                if state is None:
                    break
        else:
            state = generic_for(walk, loop, st)
    finally:
        frame.loops.pop()
        frame.positions = before
    if state is not None and stmt.orelse is not None:
        from aliaslint.flow.statements import execute

        state = execute(frame, stmt.orelse, state)
    for broken in loop.breaks:
        state = frame.union(state, broken)
    return state


def iteration(walk: Walk, loop: LoopFrame, state: State | None, pos: Pos) -> State | None:
    """Run the body once with the loop variable at `pos`."""
    from aliaslint.flow.statements import assign_part, execute

    if state is None:
        return None
    frame, stmt = walk.frame, walk.stmt
    outer = frame.positions
    frame.positions = (*outer, pos)
    loop.generic = pos.kind in {"cur", "v"}
    try:
        frame.walking = True
        val = iterate_val(frame, state, walk.iterable, pos, stmt.iterable)
        val = val or frame.plain(UNKNOWN)
        frame.walking = False
        assign_part(frame, stmt.target, bind(val), state)
    except Stopped:
        frame.positions = outer
        return None
    finally:
        frame.walking = False
    after = execute(frame, stmt.body, state)
    frame.positions = outer
    for continued in loop.continues:
        after = frame.union(after, continued)
    loop.continues.clear()
    return after


def generic_for(walk: Walk, loop: LoopFrame, st: State) -> State | None:
    """Peel constant positions off the front, run the rest to a fixpoint, peel the last."""
    frame = walk.frame
    refs = walked_refs(frame, st, walk.iterable)
    align(walk, loop, st, refs)
    start = st.copy()
    result: State | None = None
    for _ in range(3):
        loop.breaks.clear()
        spaces = spaces_in(start, refs)
        constants = constant_positions(start, spaces)
        result, late = settle(walk, loop, start.copy(), spaces, constants)
        new = constant_positions(late, spaces)
        fresh = {k for k in new if k not in constants and (k == -1 or 0 <= k < MAX_UNROLL)}
        if not fresh:
            break
        for k in fresh:
            for ref in refs:
                if not walk_kind(start, ref):
                    element(frame, start, ref, Pos("i", k))
    return result


def settle(
    walk: Walk, loop: LoopFrame, st: State, spaces: list[Ref], constants: set[int]
) -> tuple[State, State]:
    """Return the state after the loop, and the same before positions are freed."""
    frame = walk.frame
    home = spaces[0] if spaces else frame.a.space_ref(walk.key)
    frame.active.append(Active(walk.key, home))
    loop.active = len(frame.active)
    try:
        exits = turns(walk, loop, st, spaces, constants)
    finally:
        frame.active.pop()
    late = exits.copy()
    settle_updates(frame, walk.key, home, late)
    unfocus(frame, exits, walk.key, home)
    for broken in loop.breaks:
        unfocus(frame, broken, walk.key, home)
    return exits, late


def turns(walk: Walk, loop: LoopFrame, st: State, spaces: list[Ref], constants: set[int]) -> State:
    """Return the state after the loop, in which positions are still those of the loop."""
    union = walk.frame.union
    front = [k for k in range(MAX_UNROLL) if k <= max(constants, default=-1)]
    entered = walks_layers(walk, st)
    exits: State | None = None if entered else st.copy()
    state: State | None = st
    for k in front:
        state = iteration(walk, loop, state, Pos("i", k))
        if state is None:
            return exits or st.copy()
        exits = union(state.copy(), exits)
    assert state is not None
    head, turned = fixpoint(walk, loop, state, spaces)
    # Without a front the head is reached before any turn as well.
    behind = turned if entered and not front and turned is not None else head
    exits = union(behind.copy(), exits)
    for looked_up in looked_up_positions(head, spaces)[:MAX_LOOKED_UP]:
        # An element of unknown index is met once, whenever that is.
        after = iteration(walk, loop, head.copy(), looked_up)
        if after is not None:
            fold(walk.frame, after, walk.key)
            later, _ = fixpoint(walk, loop, after, spaces)
            head = union(head, later)
            exits = union(exits, later)
    if -1 in constants:
        last = iteration(walk, loop, head.copy(), Pos("i", -1))
        if last is not None:
            exits = union(exits, last)
    return exits


def walks_layers(walk: Walk, st: State) -> bool:
    """True for a loop over layers that an object of the model has: there is one at least.

    Without this each block of layers that adds to its input might be taken to give it back.
    """
    walked = walked_refs(walk.frame, st, walk.iterable)
    return any(holds_layers(walk.frame, st, ref) for ref in walked)


def holds_layers(frame: Frame, st: State, ref: Ref) -> bool:
    if ref.kind == "init":
        atoms = [e for a in ref.type if isinstance(a, Seq) for e in a.element]
        return isinstance(ref.key, str) and are_layers(frame, atoms)
    # The object was made where we can see it, or where our caller can.
    held = frame.val_type(st, join_elements(st.heap.get(ref, {}), lambda _: True))
    return are_layers(frame, held) and is_attribute(st, ref)


def is_attribute(st: State, ref: Ref) -> bool:
    """True for what some attribute holds."""
    return any(
        holds(val, ref)
        for owner, fields in st.heap.items()
        if is_object(owner)
        for key, val in fields.items()
        if isinstance(key, str)
    )


def are_layers(frame: Frame, atoms: Collection[object]) -> bool:
    return bool(atoms) and all(is_layer(frame, atom) for atom in atoms)


def is_layer(frame: Frame, atom: object) -> bool:
    match atom:
        case Inst(key=key):
            info = frame.a.classes.get(key)
            return info is not None and info.is_module_class()
        case ExtInst(dotted=dotted):
            return dotted.startswith("mlx.nn.")
        case _:
            return False


def fixpoint(
    walk: Walk, loop: LoopFrame, head: State, spaces: list[Ref]
) -> tuple[State, State | None]:
    """Run the body on the current element until the state at the head settles. Return that, and
    what it is behind a turn at least."""
    frame = walk.frame
    current = Pos("cur", walk.key)
    after: State | None = None
    for _ in range(MAX_ROUNDS):
        body = head.copy()
        focus(frame, body, spaces, current)
        after = iteration(walk, loop, body, current)
        if after is None:
            break
        fold(frame, after, walk.key)
        new = frame.union(head, after)
        if new.same(head):
            break
        head = new
    return head, after


def align(walk: Walk, loop: LoopFrame, st: State, refs: list[Ref]) -> None:
    """Lists that the body appends to once an iteration stay in step with what is walked."""
    frame = walk.frame
    spaces = spaces_in(st, refs)
    home = spaces[0] if spaces else frame.a.space_ref(walk.key)
    if frame.emitters:
        emitter = frame.emitters[-1]
        if emitter.aligned and st.peek(emitter.target, "#space") is None:
            st.put(emitter.target, "#space", single(home, STATIC_PROV))
    for name in appended_once(walk.stmt.body):
        val = st.env.get(frame.variable(name), EMPTY)
        if len(val) == 1:
            ref = next(iter(val)).ref
            if known_length(st, ref) == 0:
                loop.aligned[ref] = None
                st.put(ref, "#space", single(home, STATIC_PROV))
                st.put(ref, "#len", single(frame.refs.const("?", SCALAR), FRESH_PROV))


def appended_once(body: ir.Stmt) -> list[str]:
    """Names that the body appends to exactly once on every iteration."""
    top = body.body if isinstance(body, ir.Block) else (body,)
    if any(isinstance(s, (ir.Break, ir.Continue)) for s in statements(body)):
        return []
    found: list[str] = []
    for stmt in top:
        match stmt:
            case ir.Do(
                value=ir.Call(fn=ir.Attr(obj=ir.Name(name=name, scope="local"), name="append"))
            ):
                found.append(name)
            case _:
                pass
    every = [
        s.value.fn.obj.name
        for s in statements(body)
        if isinstance(s, ir.Do)
        and isinstance(s.value, ir.Call)
        and isinstance(s.value.fn, ir.Attr)
        and s.value.fn.name in {"append", "extend", "insert", "pop", "clear"}
        and isinstance(s.value.fn.obj, ir.Name)
    ]
    return [name for name in found if every.count(name) == 1]


# --- while


def run_while(frame: Frame, stmt: ir.While, st: State) -> State | None:
    from aliaslint.flow.statements import execute

    key = (frame.fn.key, stmt.at)
    loop = LoopFrame(key, generic=True)
    frame.loops.append(loop)
    outer = frame.positions
    frame.positions = (*outer, Pos("cur", key))
    home = frame.a.space_ref(key)
    frame.active.append(Active(key, home))
    loop.active = len(frame.active)
    head = st
    exits: State | None = None
    try:
        for _ in range(MAX_ROUNDS):
            body = head.copy()
            loop.breaks.clear()
            test(frame, stmt.test, body)
            leaving = body.copy()
            exits = leaving if narrow(frame, leaving, stmt.test, False) else None
            after = (
                execute(frame, stmt.body, body) if narrow(frame, body, stmt.test, True) else None
            )
            for continued in loop.continues:
                after = frame.union(after, continued)
            loop.continues.clear()
            if after is None:
                break
            fold(frame, after, key)
            new = frame.union(head, after)
            if new.same(head):
                break
            head = new
    except Stopped:
        exits = None
    finally:
        frame.loops.pop()
        frame.active.pop()
        frame.positions = outer
    settle_updates(frame, key, home, head)
    if exits is not None:
        unfocus(frame, exits, key, home)
        if stmt.orelse is not None:
            exits = execute(frame, stmt.orelse, exits)
    for broken in loop.breaks:
        unfocus(frame, broken, key, home)
        exits = frame.union(exits, broken)
    return exits


__all__ = ["Link", "run_for", "run_while", "walker"]
