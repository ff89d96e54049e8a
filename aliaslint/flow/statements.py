"""Transfer functions of statements: bindings, in-place updates and control flow."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from aliaslint.flow.calls import (
    Args,
    call_method_of,
    call_setter,
    stored,
)
from aliaslint.flow.containers import (
    element,
    element_keys,
    join_elements,
    known_length,
    set_length,
    store_element,
)
from aliaslint.flow.context import Held
from aliaslint.flow.decorators import replaced
from aliaslint.flow.expressions import (
    Stopped,
    array_attr,
    display,
    evaluate,
    evaluate_all,
    index_keys,
    item_method,
    location_of_field,
    test,
)
from aliaslint.flow.frame import (
    FRESH_PROV,
    Frame,
    LoopFrame,
    TryFrame,
    alias,
    bind,
    describe,
)
from aliaslint.flow.leaving import escape, leave, throw
from aliaslint.flow.narrowing import narrow, narrow_class
from aliaslint.flow.observing import Observer
from aliaslint.flow.state import Binding, State, is_object
from aliaslint.flow.values import ANY, EMPTY, Hop, Pos, Prov, Ref, Site, Val, join, single
from aliaslint.lower import ir
from aliaslint.program.kinds import fresh_type
from aliaslint.program.types import (
    ARRAY,
    UNKNOWN,
    Inst,
    Map,
    Seq,
    Tup,
    is_plain,
    ordered,
)

Execute = Callable[[Frame, "ir.Stmt", State], "State | None"]
EXEC: dict[type, Execute] = {}


def execute(frame: Frame, stmt: ir.Stmt, st: State) -> State | None:
    """Run one statement; None where control does not go on behind it."""
    frame.a.spend(1)
    if frame.a.observer is not None:
        return observed(frame, stmt, st, frame.a.observer)
    try:
        return EXEC[type(stmt)](frame, stmt, st)
    except Stopped:
        return None


def observed(frame: Frame, stmt: ir.Stmt, st: State, observer: Observer) -> State | None:
    """Run one statement while somebody looks on."""
    observer.enters(frame, stmt, st)
    try:
        after = EXEC[type(stmt)](frame, stmt, st)
    except Stopped:
        after = None
    observer.leaves(frame, stmt, after)
    return after


def handles(kind: type) -> Callable[[Callable[..., State | None]], Callable[..., State | None]]:
    def register(function: Callable[..., State | None]) -> Callable[..., State | None]:
        EXEC[kind] = function
        return function

    return register


@handles(ir.Block)
def block(frame: Frame, stmt: ir.Block, st: State) -> State | None:
    current: State | None = st
    for inner in stmt.body:
        if current is None:
            return None
        current = execute(frame, inner, current)
    return current


@handles(ir.Do)
def do(frame: Frame, stmt: ir.Do, st: State) -> State | None:
    evaluate(frame, stmt.value, st)
    return st


@handles(ir.Emit)
def emit(frame: Frame, stmt: ir.Emit, st: State) -> State | None:
    """Add an element to the comprehension being built, in step with its loop if it can be."""
    emitter = frame.emitters[-1]
    val = bind(evaluate(frame, stmt.value, st))
    key = evaluate(frame, stmt.key, st) if stmt.key is not None else None
    loop = frame.loops[-1] if frame.loops else None
    if key is not None:
        in_step = emitter.aligned and loop is not None and loop.generic
        for pos in index_keys(frame, st, emitter.target, key):
            if pos == ANY and in_step and loop is not None:
                pos = Pos("cur", loop.key)
            st.put(emitter.target, pos, join(st.peek(emitter.target, pos) or EMPTY, val))
        return st
    if emitter.aligned and loop is not None and loop.generic:
        set_length(frame, st, emitter.target, None)
        st.put(emitter.target, Pos("cur", loop.key), val)
    elif emitter.aligned and frame.positions and frame.positions[-1].kind == "i":
        position = frame.positions[-1]
        st.put(emitter.target, Pos("i", position.index), val)
        index = position.index
        set_length(frame, st, emitter.target, index + 1 if isinstance(index, int) else None)
    else:
        set_length(frame, st, emitter.target, None)
        st.put(emitter.target, ANY, join(st.peek(emitter.target, ANY) or EMPTY, val))
    return st


# --- assignment


@handles(ir.Assign)
def assign(frame: Frame, stmt: ir.Assign, st: State) -> State | None:
    if len(stmt.targets) == 1 and isinstance(stmt.targets[0], ir.Unpack):
        target = stmt.targets[0]
        if isinstance(stmt.value, ir.Build) and target.star < 0:
            if len(stmt.value.items) == len(target.targets) and not any(
                isinstance(i, ir.Star) for i in stmt.value.items
            ):
                held = evaluate_all(frame, stmt.value.items, st)
                vals = [named(frame, i, v) for i, v in zip(stmt.value.items, held, strict=True)]
                for inner, item, val in zip(target.targets, stmt.value.items, vals, strict=True):
                    frame.value_at = item.at
                    assign_to(frame, inner, bind(val), st)
                frame.value_at = None
                return st
    val = named(frame, stmt.value, evaluate(frame, stmt.value, st))
    val = bind(val)
    if isinstance(stmt.value, ir.Closure) and stmt.value.decorators:
        val = decorated(frame, stmt.value, val, st)
    if stmt.annotation is not None:
        note = frame.a.kinds.annotation(stmt.annotation, frame.module)
        if note == ARRAY:
            for link in val:
                if link.ref.type == UNKNOWN:
                    st.narrowed[link.ref] = ARRAY
    frame.value_at = stmt.value.at
    weak = frame.weak
    if isinstance(stmt.value, ir.Suspend) and stmt.value.how == "yield":
        frame.weak = False  # just resumed here: what is sent is all that the target holds
    for each in stmt.targets:
        assign_to(frame, each, val, st)
    frame.weak = weak
    frame.value_at = None
    return st


def named(frame: Frame, expr: ir.Expr, val: Val) -> Val:
    """A plain name on the right makes a second name for the same handle."""
    if isinstance(expr, ir.Name) and expr.scope in {"local", "cell"}:
        return alias(val, frame.where(expr.at), describe(expr))
    return val


def decorated(frame: Frame, closure: ir.Closure, val: Val, st: State) -> Val:
    """Decorators of a nested function: MLX's wrappers isolate it, those of the program are
    called if they replace it, and unknown ones keep it."""
    for decorator in reversed(closure.decorators):
        symbol = frame.a.kinds.dotted(decorator, frame.module)
        if symbol is None and isinstance(decorator, ir.Call):
            for arg in decorator.args:
                symbol = frame.a.kinds.dotted(arg.value, frame.module) or symbol
        dotted = getattr(symbol, "dotted", "")
        if dotted in {"mlx.core.compile", "mlx.core.checkpoint"}:
            return single(
                frame.refs.alloc((frame.fn.key, closure.at, "isolated"), (), UNKNOWN), FRESH_PROV
            )
        val = replaced(frame, st, closure.function, decorator, val)
    return val


def assign_to(frame: Frame, target: ir.Target, val: Val, st: State) -> None:
    match target:
        case ir.ToName():
            frame.store_name(st, target, val)
        case ir.ToAttr(obj=obj, name=name):
            owner = evaluate(frame, obj, st)
            store_attr(frame, st, owner, name, val, target.at, f"{describe(obj)}.{name}")
        case ir.ToItem():
            store_item(frame, st, target, val)
        case ir.Unpack():
            unpack(frame, target, val, st)
        case _:
            pass


def store_attr(
    frame: Frame, st: State, owner: Val, name: str, val: Val, at: ir.At, text: str
) -> None:
    """`owner.name = val`: a setter of the program is called, a field is bound."""
    for link in list(owner):
        ref = link.ref
        setter = None
        for atom in ordered(frame.type_of(st, ref)):
            if isinstance(atom, Inst):
                info = frame.a.classes.get(atom.key)
                setter = info.find_setter(name) if info else None
                if setter is not None:
                    call_setter(frame, st, ref, atom.key, setter, val, at, text)
        if setter is None:
            hop = Hop("store", frame.where(frame.value_at or at), text)
            held = stored(val, hop) if is_object(ref) or ref.kind == "class" else bind(val)
            frame.store_location(st, ref, name, held, weak=len(owner) > 1)
            if is_object(ref) or ref.kind == "class":
                st.owned |= {v.ref for v in val if "array" in v.ref.type}


def store_item(frame: Frame, st: State, target: ir.ToItem, val: Val) -> None:
    """`o[i] = v`: an update where `o` is an array, a binding where it is a container."""
    owner = evaluate(frame, target.obj, st)
    index = evaluate(frame, target.index, st) if target.index is not None else None
    for operand in target.operands:
        frame.read(st, evaluate(frame, operand, st), operand.at)
    for link in list(owner):
        type_ = frame.type_of(st, link.ref)
        if item_method(frame, type_, "__setitem__") is not None:
            args = Args([index if index is not None else EMPTY, val], nodes=[None, None])
            call_method_of(frame, st, link.ref, "__setitem__", args, ir.Const(target.at, None))
        elif index is None and any(isinstance(a, (Seq, Tup)) for a in type_):
            store_slice(frame, st, link.ref, val)
        elif "array" in type_ or (index is None and not any(isinstance(a, Map) for a in type_)):
            frame.read(st, val, target.at)
        elif index is not None and not is_plain(type_):
            keys = index_keys(frame, st, link.ref, index)
            weak = len(owner) > 1 or len(keys) > 1
            for key in keys:
                store_element(frame, st, link.ref, key, bind(val), weak)
    update_target(frame, st, target, target.obj, owner, "item", "=")


def store_slice(frame: Frame, st: State, ref: Ref, val: Val) -> None:
    inner = EMPTY
    for link in val:
        inner = join(inner, element(frame, st, link.ref, ANY))
    store_element(frame, st, ref, ANY, inner, True)


def unpack(frame: Frame, target: ir.Unpack, val: Val, st: State) -> None:
    """`a, b = val`: elements by position; arrays give new handles."""
    from aliaslint.flow.loops import run_out

    val = run_out(frame, st, val, ir.Const(target.at, None))
    count = len(target.targets)
    parts: list[Val] = [EMPTY] * count
    for link, stale in list(val.items()):
        type_ = frame.type_of(st, link.ref)
        if "array" in type_ and not any(isinstance(a, (Seq, Tup, Map)) for a in type_):
            frame.read(st, {link: stale}, target.at)
            parts = [join(p, frame.fresh((target.at, i), ARRAY)) for i, p in enumerate(parts)]
            continue
        elements = iterable_elements(frame, st, link.ref, count, target)
        parts = [join(p, e) for p, e in zip(parts, elements, strict=True)]
    for index, (inner, part) in enumerate(zip(target.targets, parts, strict=True)):
        assign_part(frame, inner, bind(part), st, starred=index == target.star)


def assign_part(
    frame: Frame, target: ir.Target, val: Val, st: State, starred: bool = False
) -> None:
    """Assign what has no expression of its own: what it holds is noted with the target."""
    note_held(frame, st, target, val, starred)
    assign_to(frame, target, val, st)


def note_held(frame: Frame, st: State, target: ir.Target, val: Val, starred: bool) -> None:
    """Remember which captured arrays a target holds that has no expression of its own."""
    if isinstance(target, ir.Unpack):
        return
    if starred:
        fields = [item for link in val for item in st.heap.get(link.ref, {}).items()]
        val = bind(reduce(join, (v for key, v in fields if isinstance(key, Pos)), EMPTY))
    if any(link.prov.kind == "capture" for link in val):
        held = frame.a.held.setdefault(frame.where(target.at), Held())
        for link in val:
            prov = link.prov if link.prov.kind == "capture" else None
            held.add({prov: frame.type_of(st, link.ref)})


def iterable_elements(
    frame: Frame, st: State, ref: Ref, count: int, target: ir.Unpack
) -> list[Val]:
    from aliaslint.flow.expressions import load_element
    from aliaslint.flow.loops import iterate_instance, walk_element

    result: list[Val] = []
    for i, inner in enumerate(target.targets):
        if i == target.star:
            continue
        # Each is captured where its own name stands: the source has no other expression for it.
        node = ir.Item(inner.at, ir.Const(inner.at, None), None)
        index = i if target.star < 0 or i < target.star else i - count
        special = walk_element(frame, st, ref, Pos("i", index), node)
        if special is not None:
            result.append(special)
        elif is_plain(frame.type_of(st, ref)):
            result.append(frame.plain(UNKNOWN))
        elif item_method(frame, frame.type_of(st, ref), "__iter__") is not None:
            result.append(iterate_instance(frame, st, ref, Pos("i", index), node))
        else:
            result.append(load_element(frame, st, ref, Pos("i", index), node))
    if target.star >= 0:
        result.insert(target.star, starred(frame, st, ref, count, target))
    return result


def starred(frame: Frame, st: State, ref: Ref, count: int, target: ir.Unpack) -> Val:
    """Return the list of what the plain targets leave over."""
    from aliaslint.flow.loops import walk_element

    made = frame.refs.alloc(
        (frame.fn.key, target.at, "rest"), frame.positions[-2:], frozenset({Seq("list", UNKNOWN)})
    )
    st.heap.pop(made, None)
    front, back = target.star, count - 1 - target.star
    length = known_length(st, ref)
    if length is not None:
        for k in range(front, length - back):
            st.put(made, Pos("i", k - front), element(frame, st, ref, Pos("i", k)))
        set_length(frame, st, made, max(length - count + 1, 0))
        return single(made, FRESH_PROV)
    node = ir.Item(target.at, ir.Const(target.at, None), None)
    rest = walk_element(frame, st, ref, ANY, node)
    if rest is None:
        rest = element(frame, st, ref, ANY)
        if front or back:
            taken = {Pos("i", k) for k in (*range(front), *range(-back, 0))}
            rest = join_elements(st.heap.get(ref, {}), lambda p: p not in taken)
    st.put(made, ANY, rest)
    return single(made, FRESH_PROV)


@handles(ir.Aug)
def aug(frame: Frame, stmt: ir.Aug, st: State) -> State | None:
    """`target op= value`: the target is evaluated first, then the value."""
    match stmt.target:
        case ir.ToName(name=name, scope=scope, depth=depth):
            node = ir.Name(stmt.target.at, name, scope, depth)
            val = frame.load_name(st, node)
            operand = evaluate(frame, stmt.value, st)
            val = frame.load_name(st, node)
            result = aug_result(frame, st, stmt, val, operand)
            update_target(frame, st, stmt, node, val, "aug", stmt.op)
            if result is not None:
                val = frame.load_name(st, node)
                frame.store_name(st, stmt.target, keep_arrays(frame, st, val, result))
        case ir.ToAttr(obj=obj, name=name):
            aug_attr(frame, stmt, obj, name, st)
        case ir.ToItem():
            aug_item(frame, stmt, stmt.target, st)
        case _:
            pass
    return st


def keep_arrays(frame: Frame, st: State, val: Val, result: Val) -> Val:
    """After `x op= v`: arrays and unknown handles stay, plain values are replaced."""
    kept = {link: stale for link, stale in val.items() if not is_plain(frame.type_of(st, link.ref))}
    return join(kept, result) if kept else result


def aug_result(frame: Frame, st: State, stmt: ir.Aug, val: Val, operand: Val) -> Val | None:
    """Read both sides; return the new value where the target may be rebound."""
    frame.read(st, val, stmt.target.at)
    lists = [link.ref for link in val if any(isinstance(a, (Seq, Map)) for a in link.ref.type)]
    if lists:
        for ref in lists:
            extend_container(frame, st, ref, operand)
        return None
    frame.read(st, operand, stmt.value.at)
    for link in val:
        for atom in ordered(frame.type_of(st, link.ref)):
            if isinstance(atom, Inst):
                return aug_method(frame, st, link.ref, stmt, operand)
    if all(not is_plain(frame.type_of(st, link.ref)) for link in val) and val:
        return None
    types = [frame.val_type(st, val), frame.val_type(st, operand)]
    made = fresh_type("arith", [t - ARRAY or t for t in types[:1]] + types[1:])
    return frame.plain(made) if is_plain(made) else frame.fresh(stmt.at, made)


IN_PLACE = {
    "Add": "__iadd__",
    "Sub": "__isub__",
    "Mult": "__imul__",
    "Div": "__itruediv__",
    "BitOr": "__ior__",
    "BitAnd": "__iand__",
}


def aug_method(frame: Frame, st: State, ref: Ref, stmt: ir.Aug, operand: Val) -> Val:
    node = ir.Const(stmt.at, None)
    name = IN_PLACE.get(stmt.op, "")
    for candidate in (name, name.replace("__i", "__")):
        if candidate and item_method(frame, frame.type_of(st, ref), candidate):
            return call_method_of(frame, st, ref, candidate, [operand], node)
    return EMPTY


def extend_container(frame: Frame, st: State, ref: Ref, operand: Val) -> None:
    """`list += other`: the same list, with the other's handles added."""
    inner = EMPTY
    for link in operand:
        inner = join(inner, element(frame, st, link.ref, ANY))
    store_element(frame, st, ref, ANY, inner, True)
    set_length(frame, st, ref, None)


def aug_attr(frame: Frame, stmt: ir.Aug, obj: ir.Expr, name: str, st: State) -> None:
    from aliaslint.flow.expressions import load_attr

    owner = evaluate(frame, obj, st)
    node = ir.Attr(stmt.target.at, obj, name)
    operand_done = False
    for link in list(owner):
        ref = link.ref
        if is_property(frame, st, ref, name):
            val = load_attr(frame, st, {link: owner.get(link, frozenset())}, name, node)
        else:
            val = location_of_field(frame, st, ref, name)
        if not operand_done:
            operand = evaluate(frame, stmt.value, st)
            operand_done = True
            if not is_property(frame, st, ref, name):
                val = location_of_field(frame, st, ref, name)
        result = aug_result(frame, st, stmt, val, operand)
        before = val
        update_target(frame, st, stmt, node, val, "aug", stmt.op, [ref])
        if is_property(frame, st, ref, name):
            store_back(frame, st, ref, name, val, stmt)
            continue
        val = location_of_field(frame, st, ref, name)
        if result is not None:
            frame.store_location(
                st, ref, name, keep_arrays(frame, st, val, result), weak=len(owner) > 1
            )
        elif st.peek(ref, name) is None and ref.kind in {"alloc", "root", "init"}:
            st.put(ref, name, in_instance(before))
    if not operand_done:
        evaluate(frame, stmt.value, st)


def in_instance(val: Val) -> Val:
    """`self.x op= v` on a class attribute stores the same handle in the instance."""
    return dict(val)


def is_property(frame: Frame, st: State, ref: Ref, name: str) -> bool:
    for atom in ordered(frame.type_of(st, ref)):
        if isinstance(atom, Inst):
            info = frame.a.classes.get(atom.key)
            method = info.find(name) if info else None
            if method is not None and method.role == "property":
                return True
    return False


def store_back(frame: Frame, st: State, ref: Ref, name: str, val: Val, stmt: ir.Aug) -> None:
    for atom in ordered(frame.type_of(st, ref)):
        if isinstance(atom, Inst):
            info = frame.a.classes.get(atom.key)
            setter = info.find_setter(name) if info else None
            if setter is not None:
                call_setter(frame, st, ref, atom.key, setter, val, stmt.at, name)


def aug_item(frame: Frame, stmt: ir.Aug, target: ir.ToItem, st: State) -> None:
    """`o[i] op= v`: an update of an array `o`, or of an array that `o` holds at `i`."""
    owner = evaluate(frame, target.obj, st)
    index = evaluate(frame, target.index, st) if target.index is not None else None
    for node in target.operands:
        frame.read(st, evaluate(frame, node, st), node.at)
    operand = evaluate(frame, stmt.value, st)
    arrays = {k: v for k, v in owner.items() if "array" in frame.type_of(st, k.ref)}
    frame.read(st, arrays, target.at)
    frame.read(st, operand, stmt.value.at)
    update_target(frame, st, stmt, target.obj, owner, "item", stmt.op)
    for link in list(owner):
        type_ = frame.type_of(st, link.ref)
        if "array" in type_ or is_plain(type_):
            continue
        if index is None and not any(isinstance(a, Map) for a in type_):
            continue  # several axes
        if index is not None and item_method(frame, type_, "__getitem__") is not None:
            node_ = ir.Const(target.at, None)
            val = call_method_of(frame, st, link.ref, "__getitem__", [index], node_)
            frame.read(st, val, target.at)
            apply_update(frame, st, stmt, describe_target(target), val, set(), "element", stmt.op)
            continue
        for key in index_keys(frame, st, link.ref, index) if index is not None else [ANY]:
            val = element(frame, st, link.ref, key)
            frame.read(st, val, target.at)
            if any(isinstance(a, (Seq, Map)) for v in val for a in v.ref.type):
                for v in list(val):
                    extend_container(frame, st, v.ref, operand)
            text = describe_target(target)
            via = "attr-element" if isinstance(target.obj, ir.Attr) else "element"
            update_element(frame, st, stmt, text, link.ref, key, via, stmt.op)


def describe_target(target: ir.Target) -> str:
    match target:
        case ir.ToName(name=name):
            return name.partition("@")[0]
        case ir.ToAttr(obj=obj, name=name):
            return f"{describe(obj)}.{name}"
        case ir.ToItem(obj=obj):
            return f"{describe(obj)}[...]"
        case _:
            return "the target"


def update_target(
    frame: Frame,
    st: State,
    stmt: ir.Stmt | ir.Target,
    place: ir.Expr,
    val: Val,
    how: str,
    op: str,
    owners: list[Ref] | None = None,
) -> None:
    """In-place update of what the expression `place` holds, through that very binding."""
    if not any("array" in frame.type_of(st, link.ref) for link in val):
        return
    suffix = "-item" if how == "item" else ""
    match place:
        case ir.Name(name=name, scope="local"):
            inner = frame.fn.cells if frame.frame_ref is not None else ()
            cell = frame.frame_ref is not None and name in inner
            spared: set[Binding] = (
                {(frame.frame_ref, name)} if cell else {("var", frame.variable(name))}
            )
            through = name if name in frame.fn.params and holds_entry(val) else ""
            apply_update(
                frame, st, stmt, name.partition("@")[0], val, spared, "name" + suffix, op, through
            )
        case ir.Name(name=name, scope="cell", depth=depth):
            spared = {(ref, name) for ref in frame.frames_up(st, depth)}
            apply_update(frame, st, stmt, name, val, spared, "name" + suffix, op)
        case ir.Name(name=name):
            spared = {(frame.module_ref, name)}
            apply_update(frame, st, stmt, name, val, spared, "name" + suffix, op)
        case ir.Attr(obj=obj, name=name):
            refs = (
                owners
                if owners is not None
                else [link.ref for link in evaluate_again(frame, obj, st)]
            )
            for ref in refs:
                if is_property(frame, st, ref, name):
                    under: set[Binding] = {(ref, key) for key in st.heap.get(ref, ())}
                    apply_update(
                        frame,
                        st,
                        stmt,
                        describe(place),
                        val,
                        under,
                        "attr" + suffix,
                        op,
                        attr=name,
                        owners=[ref],
                    )
                    continue
                held = location_of_field(frame, st, ref, name)
                spared = {(ref, name)}
                if st.peek(ref, name) is None:
                    spared = set()  # an attribute of the class: the others see the update
                apply_update(
                    frame,
                    st,
                    stmt,
                    describe(place),
                    held,
                    spared,
                    "attr" + suffix,
                    op,
                    attr=name,
                    owners=[ref],
                )
        case ir.Item(obj=obj, index=index) if index is not None:
            for link in evaluate_again(frame, obj, st):
                for key in index_keys(frame, st, link.ref, evaluate_again(frame, index, st)):
                    via = "attr-element" if isinstance(obj, ir.Attr) else "element"
                    update_element(
                        frame, st, stmt, describe(place), link.ref, key, via + suffix, op
                    )
        case _:
            apply_update(frame, st, stmt, describe(place), val, set(), "name" + suffix, op)


def update_element(
    frame: Frame,
    st: State,
    stmt: ir.Stmt | ir.Target,
    text: str,
    ref: Ref,
    pos: Pos,
    via: str,
    op: str,
) -> None:
    """In-place update of an array that the container `ref` holds at `pos`."""
    if is_plain(frame.type_of(st, ref)) or "array" in frame.type_of(st, ref):
        return
    for key in element_keys(frame, st, ref, pos):
        held = st.peek(ref, key) or EMPTY
        apply_update(frame, st, stmt, text, held, {(ref, key)}, via, op)


def evaluate_again(frame: Frame, expr: ir.Expr, st: State) -> Val:
    """Look an operand up again without running calls twice."""
    match expr:
        case ir.Name():
            return frame.load_name(st, expr)
        case ir.Attr(obj=obj, name=name):
            result = EMPTY
            for link in evaluate_again(frame, obj, st):
                if not is_property(frame, st, link.ref, name):
                    result = join(result, location_of_field(frame, st, link.ref, name))
            return result
        case ir.Item(obj=obj, index=index) if index is not None:
            result = EMPTY
            for link in evaluate_again(frame, obj, st):
                if not is_plain(link.ref.type) and "array" not in link.ref.type:
                    for key in index_keys(frame, st, link.ref, evaluate_again(frame, index, st)):
                        result = join(result, element(frame, st, link.ref, key))
            return result
        case ir.Const():
            return evaluate(frame, expr, st)
        case _:
            return EMPTY


def holds_entry(val: Val) -> bool:
    return any(link.prov.kind in {"token", "param"} for link in val)


def apply_update(
    frame: Frame,
    st: State,
    stmt: ir.Stmt | ir.Target,
    text: str,
    val: Val,
    spared: set[Binding],
    via: str,
    op: str,
    through: str = "",
    attr: str = "",
    owners: list[Ref] | None = None,
) -> None:
    if (
        attr
        and frame.a.guessing
        and all(never_holds_array(frame, st, r, attr) for r in owners or ())
    ):
        return  # the guessed class holds a number there
    site = Site(
        frame.where(stmt.at),
        via,
        text,
        attr,
        frame.fn.name,
        op,
    )
    if frame.update(st, val, site, spared, through):
        frame.note_site(st, site, owners or [])
        if isinstance(stmt, ir.Aug):
            frame.a.statements[site.where] = stmt


def never_holds_array(frame: Frame, st: State, ref: Ref, attr: str) -> bool:
    """True if every class that the owner may have holds something else than an array there."""
    for atom in ordered(frame.type_of(st, ref)):
        if not isinstance(atom, Inst):
            return False
        kind = frame.a.kinds.attribute(atom.key, attr)
        if not kind or "array" in kind or "unknown" in kind:
            return False
    return bool(frame.type_of(st, ref))


# --- leaving


@handles(ir.Return)
def return_(frame: Frame, stmt: ir.Return, st: State) -> State | None:
    if isinstance(stmt.value, ir.Build):
        val = display(frame, stmt.value, st, lambda held: held)
    else:
        val = evaluate(frame, stmt.value, st) if stmt.value is not None else frame.plain()
    frame.returns.append((escape(frame, st, val), st))
    return None


@handles(ir.Raise)
def raise_(frame: Frame, stmt: ir.Raise, st: State) -> State | None:
    for value in stmt.values:
        frame.read(st, evaluate(frame, value, st), value.at)
    throw(frame, st)
    return None


@handles(ir.Break)
def break_(frame: Frame, stmt: ir.Break, st: State) -> State | None:
    loop = frame.loops[-1]
    leave(frame, st, loop.active)  # those of a generator that the loop takes its values from
    loop.breaks.append(st)
    return None


@handles(ir.Continue)
def continue_(frame: Frame, stmt: ir.Continue, st: State) -> State | None:
    frame.loops[-1].continues.append(st)
    return None


# --- branches


@handles(ir.If)
def if_(frame: Frame, stmt: ir.If, st: State) -> State | None:
    test(frame, stmt.test, st)
    other_st = st.copy()
    then: State | None = None
    other: State | None = None
    if narrow(frame, st, stmt.test, True):
        then = execute(frame, stmt.then, st)
    if narrow(frame, other_st, stmt.test, False):
        other = execute(frame, stmt.other, other_st) if stmt.other is not None else other_st
    return frame.union(then, other)


@handles(ir.Match)
def match_(frame: Frame, stmt: ir.Match, st: State) -> State | None:
    from aliaslint.flow.expressions import load_attr, load_element

    subject = evaluate(frame, stmt.subject, st)
    result: State | None = None
    for case in stmt.cases:
        branch = st.copy()
        if case.reads:
            frame.read(branch, subject, stmt.subject.at)
        kinds = ir.Build(case.at, "tuple", case.classes)
        if case.classes and not narrow_class(frame, branch, stmt.subject, kinds, True):
            continue
        for target, path in case.binds:
            val = subject
            for step in path:
                assert isinstance(step, tuple)
                kind: str = step[0]
                what: object = step[1]
                if kind == "attr":
                    node_ = ir.Attr(case.at, stmt.subject, str(what))
                    val = load_attr(frame, branch, val, str(what), node_)
                    continue
                pos = Pos("i", what) if isinstance(what, (int, str)) and what != "*" else ANY
                node = ir.Item(case.at, stmt.subject, None)
                parts = EMPTY
                for link in list(val):
                    parts = join(parts, load_element(frame, branch, link.ref, pos, node))
                val = parts
            val = named(frame, stmt.subject, val) if not path else val
            assign_to(frame, target, bind(val), branch)
        if case.guard is not None:
            test(frame, case.guard, branch)
        if case.guard is None or narrow(frame, branch, case.guard, True):
            result = frame.union(result, execute(frame, case.body, branch))
        if case.irrefutable:
            return result
        if case.classes and case.whole:
            if not narrow_class(frame, st, stmt.subject, kinds, False):
                return result
    return frame.union(result, st)


# --- loops live in `loops`; here is what both kinds share


@handles(ir.While)
def while_(frame: Frame, stmt: ir.While, st: State) -> State | None:
    from aliaslint.flow.loops import run_while

    return run_while(frame, stmt, st)


@handles(ir.For)
def for_(frame: Frame, stmt: ir.For, st: State) -> State | None:
    from aliaslint.flow.loops import run_for

    return run_for(frame, stmt, st)


# --- exceptions and contexts


@handles(ir.Try)
def try_(frame: Frame, stmt: ir.Try, st: State) -> State | None:
    returns = len(frame.returns)
    outer_loops = [(loop, len(loop.breaks), len(loop.continues)) for loop in frame.loops]
    frame.tries.append(TryFrame(st.copy(), len(frame.active)))
    normal = execute(frame, stmt.body, st)
    caught = frame.tries.pop().state
    if normal is not None and stmt.orelse is not None:
        normal = execute(frame, stmt.orelse, normal)
    if stmt.handlers and caught is not None:
        if stmt.final is not None:
            frame.tries.append(TryFrame(None, len(frame.active)))
        for target, body in stmt.handlers:
            branch = caught.copy()
            if target is not None:
                assign_to(frame, target, frame.plain(UNKNOWN), branch)
            normal = frame.union(normal, execute(frame, body, branch))
        if stmt.final is not None:
            caught = frame.tries.pop().state
    if stmt.final is None:
        return normal
    return finally_(frame, stmt.final, normal, caught, returns, outer_loops)


RETURNED = "<returned>"


def finally_(
    frame: Frame,
    final: ir.Stmt,
    normal: State | None,
    caught: State | None,
    returns: int,
    loops: list[tuple[LoopFrame, int, int]],
) -> State | None:
    """Run the final block on every way out: normal, exceptions, returns, breaks."""
    pending = frame.returns[returns:]
    del frame.returns[returns:]
    for val, state in pending:
        held = state.copy()
        held.env[RETURNED] = bind(val)  # the final block may update what is about to be given back
        after = execute(frame, final, held)
        if after is not None:
            frame.returns.append((after.env.pop(RETURNED, val), after))
    for loop, breaks, continues in loops:
        for states, start in ((loop.breaks, breaks), (loop.continues, continues)):
            late = states[start:]
            del states[start:]
            for state in late:
                after = execute(frame, final, state.copy())
                if after is not None:
                    states.append(after)
    if caught is not None:
        after = execute(frame, final, caught.copy())
        if after is not None:
            throw(frame, after)
    return execute(frame, final, normal) if normal is not None else None


@handles(ir.With)
def with_(frame: Frame, stmt: ir.With, st: State) -> State | None:
    """`with c as t`: `__enter__` gives the target, `__exit__` runs on the way out."""
    from aliaslint.flow.generators import enter_generator, exit_generator
    from aliaslint.flow.library_calls import ENTERED, close_stack, is_exit_stack

    context = evaluate(frame, stmt.context, st)
    entered = EMPTY
    for link in list(context):
        val = context_method(frame, st, link.ref, ("__enter__", "__aenter__"), 0, stmt)
        if val is None and is_exit_stack(link.ref):
            val = {link: frozenset()}
        if val is None:
            val = st.peek(link.ref, ENTERED)
        if val is None:
            val = enter_generator(frame, st, link, stmt)
        entered = join(entered, val)
    if stmt.target is not None:
        assign_part(frame, stmt.target, bind(entered), st)
    after = execute(frame, stmt.body, st)
    if after is None:
        return None
    for link in list(context):
        if is_exit_stack(link.ref):
            close_stack(frame, after, link.ref, ir.Const(stmt.context.at, None))
        elif context_method(frame, after, link.ref, ("__exit__", "__aexit__"), 3, stmt) is None:
            exit_generator(frame, after, link, stmt)
    return after


def context_method(
    frame: Frame, st: State, ref: Ref, names: tuple[str, ...], count: int, stmt: ir.With
) -> Val | None:
    """Run `__enter__` or `__exit__` (or await the asynchronous one); None without either."""
    from aliaslint.flow.generators import await_value

    node = ir.Const(stmt.context.at, None)
    for name in names:
        if item_method(frame, frame.type_of(st, ref), name) is not None:
            val = call_method_of(frame, st, ref, name, [EMPTY] * count, node)
            if name.startswith("__a"):
                val = await_value(frame, st, val, ir.Suspend(stmt.context.at, "await", None))
            return val
    return None


@handles(ir.Delete)
def delete(frame: Frame, stmt: ir.Delete, st: State) -> State | None:
    match stmt.target:
        case ir.ToName(name=name, scope="local"):
            st.env.pop(frame.variable(name), None)
        case ir.ToAttr(obj=obj, name=name):
            for link in evaluate(frame, obj, st):
                if not link.ref.many:
                    st.put(link.ref, name, EMPTY)
        case ir.ToItem(obj=obj, index=index) if index is not None:
            for link in evaluate(frame, obj, st):
                keys = index_keys(frame, st, link.ref, evaluate(frame, index, st))
                if len(keys) == 1 and keys[0].kind == "i" and isinstance(keys[0].index, str):
                    st.put(link.ref, keys[0], EMPTY)
        case _:
            pass
    return st


@handles(ir.ClassDef)
def class_def(frame: Frame, stmt: ir.ClassDef, st: State) -> State | None:
    frame.a.classes.get(stmt.key)
    frame.store_name(st, stmt.name, frame.class_val(stmt.key))
    execute(frame, stmt.body, st)
    return st


__all__ = ["EXEC", "FRESH_PROV", "Prov", "array_attr", "assign_to", "execute"]
