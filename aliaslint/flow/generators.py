"""Generators and coroutines: their bodies run when they are advanced, among the consumer's.

A generator is inlined into its consumer: at each `yield` the consumer's code runs on the
shared state, so that updates of either are seen by the other.
"""

from __future__ import annotations

from collections.abc import Callable

from aliaslint.flow.containers import append, known_length, set_length
from aliaslint.flow.expressions import Stopped
from aliaslint.flow.frame import FRESH_PROV, Frame, LoopFrame, bind
from aliaslint.flow.leaving import leave
from aliaslint.flow.state import State
from aliaslint.flow.values import ANY, EMPTY, Link, Pos, Ref, Val, join, single
from aliaslint.lower import ir
from aliaslint.program.types import SCALAR, UNKNOWN, GenOf, Seq, ordered

MAX_NESTED = 6
MAX_KNOWN = 4
Consume = Callable[[Val, State], "State | None"]


def generator_functions(frame: Frame, ref: Ref) -> list[ir.Function]:
    found: list[ir.Function] = []
    for atom in ordered(ref.type):
        if isinstance(atom, GenOf):
            function = frame.a.classes.known_function(atom.key)
            function = function or frame.a.kinds.find_function(atom.key)
            if function is not None:
                found.append(function)
    return found


def inline(
    frame: Frame, st: State, ref: Ref, function: ir.Function, consume: Consume
) -> tuple[State | None, Val]:
    """Run the body of the generator object `ref` from its start, consuming each yield."""
    from aliaslint.flow.statements import execute

    depth = 0
    parent: Frame | None = frame
    while parent is not None:
        depth += 1
        parent = parent.parent_frame
    if depth > MAX_NESTED:
        return st, frame.fresh(function.at, UNKNOWN)
    prefix = f"{frame.prefix}gen{ref.id}:"
    sub = Frame(frame.a, function, frame.a.closure_class.get(function.key), frame.depth, prefix)
    sub.parent_frame = frame
    sub.positions = frame.positions
    sub.tries = frame.tries
    sub.active, sub.base = frame.active, len(frame.active)
    sub.consumer = consume
    sub.resumed = ref
    sub.weak = any(name.startswith(prefix) for name in st.env)
    for param in function.params:
        st.bind(prefix + param, st.peek(ref, f"@{param}") or EMPTY)
    up = st.peek(ref, "<up>")
    if up:
        st.env[prefix + "<up>"] = up
    if sub.frame_ref is not None:
        fields = dict(st.heap.get(sub.frame_ref, {}))
        if up:
            fields["<up>"] = up
        for name in function.params:
            if name in function.cells:
                fields[name] = st.env.get(prefix + name, EMPTY)
        st.heap[sub.frame_ref] = fields
    try:
        end = execute(sub, function.body, st)
    except Stopped:
        end = None
    value = EMPTY
    for val, state in sub.returns:
        value = join(value, val)
        end = frame.union(end, state)
    return end, value


def for_generator(frame: Frame, stmt: ir.For, st: State, generators: list[Link]) -> State | None:
    """`for x in generator(...)`: the loop body runs at every yield of the generator."""
    from aliaslint.flow.statements import assign_part, execute

    key = (frame.fn.key, stmt.at)
    result: State | None = None
    for link in generators:
        for function in generator_functions(frame, link.ref):
            loop = LoopFrame(key, active=len(frame.active))
            frame.loops.append(loop)

            def consume(val: Val, state: State, loop: LoopFrame = loop) -> State | None:
                assign_part(frame, stmt.target, val, state)
                after = execute(frame, stmt.body, state)
                for continued in loop.continues:
                    after = frame.union(after, continued)
                loop.continues.clear()
                return after

            state, _ = inline(frame, st.copy(), link.ref, function, consume)
            frame.loops.pop()
            if state is not None and stmt.orelse is not None:
                state = execute(frame, stmt.orelse, state)
            for final in [*([state] if state is not None else []), *loop.breaks]:
                result = frame.union(result, final)
    return result if result is not None else st


def collect(frame: Frame, st: State, val: Val, node: ir.Expr, kind: str = "list") -> Val:
    """`list(generator)`: run it to its end and keep what it yields."""
    made = frame.refs.alloc(
        (frame.fn.key, node.at, "collected"), frame.positions[-2:], frozenset({Seq(kind, UNKNOWN)})
    )
    st.put(made, "#len", single(frame.refs.const(0, SCALAR), FRESH_PROV))
    for link in list(val):
        for function in generator_functions(frame, link.ref):

            def consume(item: Val, state: State) -> State | None:
                append_in(frame, state, made, item)
                return state

            after, _ = inline(frame, st, link.ref, function, consume)
            if after is not None and after is not st:
                st.become(after)
    return single(made, FRESH_PROV)


def append_in(frame: Frame, st: State, made: Ref, item: Val) -> None:
    """Positions are known until a branch or a loop makes the number of elements unknown."""
    length = known_length(st, made)
    if length is None or length >= MAX_KNOWN or made.many:
        set_length(frame, st, made, None)
        st.put(made, ANY, join(st.peek(made, ANY) or EMPTY, item))
    else:
        st.put(made, Pos("i", length), item)
        set_length(frame, st, made, length + 1)


def drain(frame: Frame, st: State, val: Val, node: ir.Expr) -> Val:
    """`sum(generator)`, `any(generator)`: every yielded value is read."""

    def consume(item: Val, state: State) -> State | None:
        frame.read(state, item, node.at)
        return state

    for link in list(val):
        for function in generator_functions(frame, link.ref):
            after, _ = inline(frame, st, link.ref, function, consume)
            if after is not None and after is not st:
                st.become(after)
    return frame.fresh(node.at, UNKNOWN)


def advance(frame: Frame, st: State, link: Link, node: ir.Expr) -> Val:
    """`next(generator)`: stop at any yield; what was yielded is the value."""
    yielded: list[tuple[Val, State]] = []
    active = len(frame.active)
    within = frame.positions[-1] if frame.positions else None

    def consume(item: Val, state: State) -> State | None:
        stopped = state.copy()
        yielded.append((leave(frame, stopped, active, item, within), stopped))
        return state

    for function in generator_functions(frame, link.ref):
        inline(frame, st.copy(), link.ref, function, consume)
    if not yielded:
        return frame.plain(UNKNOWN)
    value = EMPTY
    after: State | None = None
    for item, state in yielded:
        value = join(value, item)
        after = frame.union(after, state)
    assert after is not None
    st.become(after)
    return bind(value)


def await_value(frame: Frame, st: State, val: Val, expr: ir.Suspend) -> Val:
    """`await coroutine`: its body runs here; anything else gives a value of its own."""
    result = EMPTY
    for link in list(val):
        functions = generator_functions(frame, link.ref)
        if not functions:
            frame.read(st, {link: val[link]}, expr.at)
            result = join(result, frame.fresh(expr.at, UNKNOWN))
            continue
        for function in functions:
            after, value = inline(frame, st, link.ref, function, lambda v, s: s)
            if after is None:
                raise Stopped
            if after is not st:
                st.become(after)
            result = join(result, value)
    return result


def yield_from(frame: Frame, st: State, val: Val, expr: ir.Suspend) -> Val:
    from aliaslint.flow.loops import iterate_val

    consumer = frame.consumer

    def pass_on(item: Val, state: State) -> State | None:
        if consumer is None:
            frame.returns.append((item, state.copy()))
            return state
        return consumer(item, state)

    for link in list(val):
        functions = generator_functions(frame, link.ref)
        for function in functions:
            after, _ = inline(frame, st, link.ref, function, pass_on)
            if after is None:
                raise Stopped
            if after is not st:
                st.become(after)
        if not functions:
            item = iterate_val(frame, st, {link: val[link]}, ANY, expr)
            after = pass_on(item, st)
            if after is None:
                raise Stopped
            if after is not st:
                st.become(after)
    return frame.plain(UNKNOWN)


def enter_generator(frame: Frame, st: State, link: Link, stmt: ir.With) -> Val:
    """`with f() as x` on a generator function under `contextmanager`, or an outside object."""
    node = ir.Const(stmt.context.at, None)
    if generator_functions(frame, link.ref):
        return advance(frame, st, link, node)
    return {link: frozenset()} if frame.type_of(st, link.ref) >= UNKNOWN else EMPTY


def exit_generator(frame: Frame, st: State, link: Link, stmt: ir.With) -> None:
    """The rest of a context manager's generator runs when the block is left."""
    for function in generator_functions(frame, link.ref):
        after, _ = inline(frame, st, link.ref, function, lambda v, s: s)
        if after is not None and after is not st:
            st.become(after)


__all__ = ["append", "collect", "drain"]
