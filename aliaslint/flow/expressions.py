"""Transfer functions of expressions: what each gives, reads and updates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from aliaslint.flow.exclusion import is_ruled_out
from aliaslint.flow.frame import (
    FRESH_PROV,
    STATIC_PROV,
    Emitter,
    Frame,
    bind,
    describe,
)
from aliaslint.flow.narrowing import narrow
from aliaslint.flow.state import State, is_object
from aliaslint.flow.values import ANY, EMPTY, FRESH, Key, Link, Pos, Prov, Ref, Val, join, single
from aliaslint.lower import ir
from aliaslint.program import library
from aliaslint.program.kinds import const_type, fresh_type
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
    Inst,
    Map,
    Mod,
    Seq,
    Tup,
    Type,
    is_plain,
    ordered,
)

Evaluate = Callable[[Frame, "ir.Expr", State], Val]
EVAL: dict[type, Evaluate] = {}


def evaluate(frame: Frame, expr: ir.Expr, st: State) -> Val:
    """Return what `expr` may hold, changing `st` by what its evaluation does."""
    val = EVAL[type(expr)](frame, expr, st)
    if len(val) > WIDE:
        frame.a.spend(len(val) // WIDE)
    return val


WIDE = 4  # what may be more things than this costs more than a statement


def handles(kind: type) -> Callable[[Callable[..., Val]], Callable[..., Val]]:
    def register(function: Callable[..., Val]) -> Callable[..., Val]:
        EVAL[kind] = function
        return function

    return register


def evaluate_all(frame: Frame, exprs: Sequence[ir.Expr], st: State) -> list[Val]:
    """Evaluate operands in order. What is already evaluated is held like a variable, so that
    an update by a later operand is seen by it."""
    if len(exprs) < 2 or not any(frame.a.may_update(e) for e in exprs[1:]):
        return [evaluate(frame, e, st) for e in exprs]
    start = frame.held
    frame.held += len(exprs)
    names = [f"#{frame.prefix}{start + i}" for i in range(len(exprs))]
    for held, expr in zip(names, exprs, strict=True):
        st.env[held] = evaluate(frame, expr, st)
    vals = [st.env.pop(held, EMPTY) for held in names]
    frame.held = start
    return vals


@handles(ir.Const)
def const(frame: Frame, expr: ir.Const, st: State) -> Val:
    value = expr.value
    if value is None or isinstance(value, (bool, int, str)):
        return single(frame.refs.const(value, const_type(value)), FRESH_PROV)
    return frame.plain(const_type(value))


@handles(ir.Name)
def name(frame: Frame, expr: ir.Name, st: State) -> Val:
    return frame.load_name(st, expr)


@handles(ir.Attr)
def attr(frame: Frame, expr: ir.Attr, st: State) -> Val:
    return load_attr(frame, st, evaluate(frame, expr.obj, st), expr.name, expr)


def load_attr(frame: Frame, st: State, base: Val, name: str, expr: ir.Expr) -> Val:
    """Attribute access: a field, a property of the program, or a name of a module."""
    result = EMPTY
    for link, stale in list(base.items()):
        result = join(result, attr_of(frame, st, link, stale, name, expr))
    return result


def attr_of(
    frame: Frame, st: State, link: Link, stale: frozenset[object], name: str, expr: ir.Expr
) -> Val:
    ref = link.ref
    result = EMPTY
    for atom in ordered(frame.type_of(st, ref)):
        match atom:
            case Ext(dotted=dotted):
                result = join(result, frame.symbol_val(st, Ext(f"{dotted}.{name}")))
            case Mod(key=key):
                result = join(result, module_attr(frame, st, key, name))
            case ClassOf(key=key):
                result = join(result, class_attr(frame, st, ref, key, name, expr))
            case Inst(key=key):
                result = join(result, instance_attr(frame, st, ref, key, name, expr))
            case "array":
                result = join(result, array_attr(frame, st, link, name, expr))
            case "none" | "scalar" | "str":
                pass
            case _:
                result = join(result, field_val(frame, st, ref, name, expr))
    return result


def module_attr(frame: Frame, st: State, key: str, name: str) -> Val:
    module = frame.a.modules.by_id[key]
    ref = frame.refs.static("module", key, frozenset({Mod(key)}))
    known = st.peek(ref, name)
    if known is not None:
        return known
    symbol = frame.a.classes.member(module, name)
    return frame.symbol_val(st, symbol) if symbol is not None else frame.plain(UNKNOWN)


def class_attr(frame: Frame, st: State, ref: Ref, key: str, name: str, expr: ir.Expr) -> Val:
    """`Class.attr`: a method (bound for class methods) or a class attribute."""
    if name == "__dict__":
        return EMPTY
    stored = st.peek(ref, name)
    if stored is not None:
        return captured(frame, ref, stored, expr)
    info = frame.a.classes.get(key)
    method = info.find(name) if info else None
    if method is not None:
        return single(frame.refs.init(ref, f"()#{name}", NOTHING), STATIC_PROV)
    nested = info.find_nested(name) if info else None
    if nested is not None:
        return frame.class_val(nested)
    owner = info.has_class_name(name) if info else None
    if owner is not None:
        return captured(frame, ref, class_location(frame, st, owner.key, name), expr)
    return frame.plain(UNKNOWN)


def class_location(frame: Frame, st: State, key: str, name: str) -> Val:
    """The binding of a class attribute: one for all instances that have not set their own."""
    ref = frame.refs.static("class", key, frozenset({ClassOf(key)}))
    known = st.peek(ref, name)
    if known is None:
        type_ = frame.a.kinds.attribute(key, name) or UNKNOWN
        if is_plain(type_):
            return frame.plain(type_)
        inner = frame.refs.init(ref, name, type_)
        where = frame.a.class_attribute_where(key, name)
        text = f"{key.partition(':')[2]}.{name}"
        prov = Prov("static", where, text, (ref, name), owner=True, in_location=True)
        known = {Link(inner, prov): FRESH}
        st.put(ref, name, known)
    return known


def instance_attr(frame: Frame, st: State, ref: Ref, key: str, name: str, expr: ir.Expr) -> Val:
    if name == "__dict__":
        from aliaslint.flow.library_calls import attributes_by_name

        return attributes_by_name(frame, st, [ref], expr)
    if name == "__class__":
        return frame.class_val(key)
    info = frame.a.classes.get(key)
    nested = info.find_nested(name) if info else None
    if nested is not None and st.peek(ref, name) is None:
        return frame.class_val(nested)
    method = info.find(name) if info else None
    if method is not None and method.role == "property":
        from aliaslint.flow.calls import call_property, is_cached

        if st.peek(ref, name) is not None and is_cached(frame.a.classes.method(method)):
            return field_val(frame, st, ref, name, expr)
        return call_property(frame, st, ref, key, method, name, expr)
    if method is not None and st.peek(ref, name) is None:
        return single(frame.refs.init(ref, f"()#{name}", NOTHING), STATIC_PROV)
    getter = info.find("__getattr__") if info else None
    unset = getter is not None and st.peek(ref, name) is None
    if unset and not frame.a.kinds.attribute(key, name):
        from aliaslint.flow.calls import looked_up

        return looked_up(frame, st, ref, name, expr)
    return field_val(frame, st, ref, name, expr)


def array_attr(frame: Frame, st: State, link: Link, name: str, expr: ir.Expr) -> Val:
    if name in library.METADATA:
        if name == "shape":
            return frame.fresh(expr.at, frozenset({Seq("tuple", SCALAR)}))
        return frame.plain()
    frame.read(st, {link: FRESH}, expr.at)
    return frame.fresh(expr.at, ARRAY if name in {"T", "real", "imag", "at"} else UNKNOWN)


def field_val(frame: Frame, st: State, ref: Ref, name: str, expr: ir.Expr) -> Val:
    """Load a field: the live handle, captured here."""
    if is_ruled_out(frame, st, ref, name):
        return frame.plain(UNKNOWN)
    located = location_of_field(frame, st, ref, name)
    if not located and "unknown" in ref.type:
        return frame.plain(UNKNOWN)  # not nothing: what is left of it would be ruled out
    return captured(frame, ref, located, expr)


def location_of_field(frame: Frame, st: State, ref: Ref, name: str) -> Val:
    known = st.peek(ref, name)
    if known is not None:
        return known
    if ref.kind == "alloc":
        for atom in ordered(ref.type):
            if isinstance(atom, Inst):
                info = frame.a.classes.get(atom.key)
                owner = info.has_class_name(name) if info else None
                if owner is not None:
                    return class_location(frame, st, owner.key, name)
        return EMPTY
    for atom in ordered(ref.type):
        if isinstance(atom, Inst):
            info = frame.a.classes.get(atom.key)
            owner = info.has_class_name(name) if info else None
            own = info is not None and frame.a.kinds.sets(info, name)
            if owner is not None and not own and not (info and info.record):
                return class_location(frame, st, owner.key, name)
    return frame.load_location(st, ref, name)


def captured(frame: Frame, ref: Ref, located: Val, expr: ir.Expr) -> Val:
    """Copy a location's binding: same handles, same staleness, captured at `expr`."""
    owner = is_object(ref) or ref.kind == "class"
    array = bool(located) and all(frame.a.exact_array(link.ref) for link in located)
    prov = Prov("capture", frame.where(expr.at), describe(expr), owner=owner, array=array)
    if any("scalar" in link.ref.type for link in located):
        frame.a.numbers.add(frame.where(expr.at))
    new: Val = {}
    for link, stale in located.items():
        if is_plain(link.ref.type) or link.ref.kind in {"func", "class", "ext", "module"}:
            new[link] = stale
        else:
            moved = Link(link.ref, prov)
            new[moved] = new.get(moved, FRESH) | stale
    return new


# --- elements


@handles(ir.Item)
def item(frame: Frame, expr: ir.Item, st: State) -> Val:
    base = evaluate(frame, expr.obj, st)
    if expr.index is None:
        for operand in expr.operands:
            frame.read(st, evaluate(frame, operand, st), operand.at)
        return sliced(frame, st, base, expr)
    index = evaluate(frame, expr.index, st)
    frame.looking_up = expr.at
    result = EMPTY
    for link, stale in list(base.items()):
        result = join(result, item_of(frame, st, link, stale, index, expr))
    if any("array" in frame.type_of(st, link.ref) for link in base) or not is_key(index):
        frame.read(st, index, expr.at)
    if isinstance(expr.obj, ir.Attr):
        from aliaslint.flow.calls import handed

        return handed(frame, st, result, expr.obj.name, expr)
    return result


def is_key(index: Val) -> bool:
    return all(is_plain(link.ref.type) or link.ref.kind == "pos" for link in index)


def sliced(frame: Frame, st: State, base: Val, expr: ir.Item) -> Val:
    """`o[a:b]` and `o[i, j]`: a new array, or a list with the same elements."""
    result = EMPTY
    for link, stale in base.items():
        type_ = frame.type_of(st, link.ref)
        if any(isinstance(a, (Seq, Tup)) for a in type_) and expr.plain_slice:
            result = join(result, slice_container(frame, st, link.ref, expr))
            continue
        if any(isinstance(a, Map) for a in type_):
            result = join(result, load_element(frame, st, link.ref, ANY, expr))
            continue
        method = item_method(frame, type_, "__getitem__")
        if method is not None:
            result = join(result, frame.plain(UNKNOWN))
            continue
        frame.read(st, {link: stale}, expr.at)
        made = ARRAY if "array" in type_ or not expr.plain_slice else UNKNOWN
        if "array" not in type_ and not frame.module.imports_mlx:
            made = UNKNOWN
        result = join(result, frame.fresh(expr.at, made))
    return result


def slice_container(frame: Frame, st: State, ref: Ref, expr: ir.Item) -> Val:
    """`o[a:b]`: some of the elements. Behind a lower bound that is not known, elements that
    were looked up by a constant index are taken for others."""
    from aliaslint.flow.containers import any_element, known_length

    length = known_length(st, ref)
    if length is not None and expr.bounds and not ref.many:
        return exact_slice(frame, st, ref, range(length)[slice(*expr.bounds)], expr)
    if length is not None or not expr.operands:
        return copy_container(frame, st, ref, expr.at, aligned=not expr.operands)
    made = frame.refs.alloc((frame.fn.key, expr.at), frame.positions[-2:], seq_of("list"))
    frame.looking_up = expr.at
    fields = st.heap.get(ref, {})
    constants: dict[Key, Val] = {
        k: v for k, v in fields.items() if isinstance(k, Pos) and k.kind == "i"
    }
    st.heap[ref] = {k: v for k, v in fields.items() if k not in constants}
    inner = any_element(frame, st, ref)
    st.heap[ref] = {**st.heap[ref], **constants}
    st.put(made, ANY, inner)
    return single(made, FRESH_PROV)


def exact_slice(frame: Frame, st: State, ref: Ref, chosen: range, expr: ir.Item) -> Val:
    """Exactly the elements at the `chosen` positions of a container of known length."""
    from aliaslint.flow.containers import element

    made = frame.refs.alloc((frame.fn.key, expr.at), frame.positions[-2:], seq_of("list"))
    fields: dict[Key, Val] = {
        Pos("i", i): element(frame, st, ref, Pos("i", k)) for i, k in enumerate(chosen)
    }
    fields["#len"] = single(frame.refs.const(len(chosen), SCALAR), FRESH_PROV)
    st.heap[made] = fields
    return single(made, FRESH_PROV)


def item_of(
    frame: Frame, st: State, link: Link, stale: frozenset[object], index: Val, expr: ir.Item
) -> Val:
    from aliaslint.flow.calls import call_method_of

    ref = link.ref
    type_ = frame.type_of(st, ref)
    if item_method(frame, type_, "__getitem__") is not None:
        return call_method_of(frame, st, ref, "__getitem__", [index], expr)
    names = named_attributes(frame, type_, index)
    if names:
        return join_all(load_attr(frame, st, {link: FRESH}, name, expr) for name in names)
    if type_ <= ARRAY or "array" in type_:
        frame.read(st, {link: stale}, expr.at)  # type: ignore[dict-item]
        if type_ <= ARRAY:
            return frame.fresh(expr.at, ARRAY)
    elif stale:
        frame.read(st, {link: stale}, expr.at)  # type: ignore[dict-item]
    if is_plain(type_):
        return frame.plain(UNKNOWN)
    result = EMPTY
    for key in index_keys(frame, st, ref, index):
        result = join(result, load_element(frame, st, ref, key, expr))
    return result if result or "unknown" not in type_ else frame.plain(UNKNOWN)


def join_all(vals: Iterable[Val]) -> Val:
    result = EMPTY
    for val in vals:
        result = join(result, val)
    return result


def named_attributes(frame: Frame, type_: Type, index: Val) -> list[str]:
    """Return the attributes that `o["name"]` gives: a module of `mlx.nn` is a dict of its own."""
    infos = [frame.a.classes.get(atom.key) for atom in type_ if isinstance(atom, Inst)]
    if not any(info is not None and info.is_module_class() for info in infos):
        return []
    consts = [k.ref.payload for k in index if k.ref.kind == "const"]
    return [p[1] for p in consts if isinstance(p, tuple) and p[0] == "str"]


def item_method(frame: Frame, type_: Type, name: str) -> object:
    for atom in ordered(type_):
        if isinstance(atom, Inst):
            info = frame.a.classes.get(atom.key)
            method = info.find(name) if info else None
            if method is not None:
                return method
    return None


def index_keys(frame: Frame, st: State, ref: Ref, index: Val) -> list[Pos]:
    """Return the positions that an index value may mean in the container `ref`."""
    keys: list[Pos] = []
    for link in index:
        match link.ref.kind:
            case "const":
                assert isinstance(link.ref.payload, tuple)
                value: object = link.ref.payload[1]
                keys.append(ANY if value == "?" else Pos("i", value))
            case "pos":
                assert isinstance(link.ref.key, Pos)
                keys.append(link.ref.key)
            case "root" | "init" if not link.ref.many and ref.kind in {"root", "init"}:
                loop = frame.positions[-1] if frame.positions else None
                inside = loop if depends_on_loop(link.ref) else None
                keys.append(Pos("v", (frame.fn.key, link.ref, inside)))
            case _:
                keys.append(ANY)
    return list(dict.fromkeys(keys)) or [ANY]


def depends_on_loop(ref: Ref) -> bool:
    """True for a value that is another one in each iteration."""
    current: Ref | None = ref
    while current is not None:
        if isinstance(current.key, Pos) or current.positions:
            return True
        current = current.base
    return False


def load_element(frame: Frame, st: State, ref: Ref, pos: Pos, expr: ir.Expr) -> Val:
    """Return the element at `pos`; an element is a binding like a variable."""
    from aliaslint.flow.containers import element

    val = element(frame, st, ref, pos)
    if ref.kind in {"root", "init"}:
        prov = Prov("capture", frame.where(expr.at), describe(expr), owner=False)
        new: Val = {}
        for link, stale in val.items():
            keep = link.prov.kind not in {"initial", "token"} or is_plain(link.ref.type)
            moved = link if keep else Link(link.ref, prov)
            new[moved] = new.get(moved, FRESH) | stale
        return new
    return val


def copy_container(
    frame: Frame, st: State, ref: Ref, at: ir.At, aligned: bool, kind: str = "list"
) -> Val:
    """A new list (tuple, set) with the same handles as elements."""
    from aliaslint.flow.containers import element, space_of

    made = frame.refs.alloc((frame.fn.key, at, "copy"), frame.positions[-2:], seq_of(kind))
    fields = st.heap.get(ref, {})
    if aligned:
        if ref.kind in {"root", "init"}:
            star = Pos("*", None, space_of(st, ref))
            element(frame, st, ref, star)
            fields = st.heap.get(ref, {})
        st.heap[made] = dict(fields)
        space = single(space_of(st, ref), STATIC_PROV)
        if not all(isinstance(k, str) or k.kind == "i" for k in fields) or "#len" not in fields:
            st.put(made, "#space", space)
    else:
        st.put(made, ANY, element(frame, st, ref, ANY))
    return single(made, FRESH_PROV)


def seq_of(kind: str) -> Type:
    return frozenset({Map(UNKNOWN)}) if kind == "dict" else frozenset({Seq(kind, UNKNOWN)})


# --- operators and displays


@handles(ir.Fresh)
def fresh(frame: Frame, expr: ir.Fresh, st: State) -> Val:
    from aliaslint.flow.calls import call_operator

    vals = evaluate_all(frame, expr.operands, st)
    if expr.how in {"is", "is not"}:
        return frame.plain()
    if expr.how == "compare":
        compare(frame, st, vals, expr)
    if expr.how == "str":
        for val in vals:
            run_special(frame, st, val, AS_TEXT, expr)
    if expr.how == "repeat":
        return repeated(frame, st, vals, expr)
    types = [frame.val_type(st, val) for val in vals]
    if expr.how in {"arith", "matmul"} and any(isinstance(a, Inst) for t in types for a in t):
        made = call_operator(frame, st, vals, expr)
        if made is not None:
            return made
    if expr.how == "arith" and len(vals) == 2 and any(is_list(t) for t in types):
        return concatenated(frame, st, vals, expr)
    if expr.how == "arith" and len(vals) == 2 and all(is_dict(t) for t in types):
        return merged(frame, st, vals, expr)
    for operand, val in zip(expr.operands, vals, strict=True):
        frame.read(st, val, operand.at)
    type_ = fresh_type(expr.how, types)
    if expr.how == "matmul" and type_ == UNKNOWN and frame.module.imports_mlx:
        type_ = UNKNOWN if frame.module.imports_other_arrays else ARRAY
    if is_plain(type_) or type_ == UNKNOWN:
        return frame.plain(type_)  # what is no array for certain is never updated in place
    return frame.fresh(expr.at, type_)


def is_list(type_: Type) -> bool:
    return bool(type_) and all(isinstance(a, (Seq, Tup)) for a in type_)


def is_dict(type_: Type) -> bool:
    return bool(type_) and all(isinstance(a, Map) for a in type_)


def merged(frame: Frame, st: State, vals: list[Val], expr: ir.Fresh) -> Val:
    """`dict | dict`: the same handles; the right one's stand where both have a key."""
    made = frame.refs.alloc((frame.fn.key, expr.at), frame.positions[-2:], seq_of("dict"))
    fields: dict[Key, Val] = {}
    for val in vals:
        before = dict(fields)
        for link in val:
            for key, inner in st.heap.get(link.ref, {}).items():
                if isinstance(key, Pos):
                    over = len(val) == 1 and key.kind == "i"
                    have = EMPTY if over else fields.get(key, before.get(key, EMPTY))
                    fields[key] = join(have, inner)
    st.heap[made] = fields
    return single(made, FRESH_PROV)


def concatenated(frame: Frame, st: State, vals: list[Val], expr: ir.Fresh) -> Val:
    """`list + list`: the handles inside are the same."""
    from aliaslint.flow.containers import element

    made = frame.refs.alloc((frame.fn.key, expr.at), frame.positions[-2:], seq_of("list"))
    inner = EMPTY
    for val in vals:
        for link in val:
            inner = join(inner, element(frame, st, link.ref, ANY))
    st.put(made, ANY, inner)
    return single(made, FRESH_PROV)


def repeated(frame: Frame, st: State, vals: list[Val], expr: ir.Fresh) -> Val:
    """`[x] * n`: one handle at every position."""
    from aliaslint.flow.containers import element

    frame.read(st, vals[1], expr.at)
    made = frame.refs.alloc((frame.fn.key, expr.at), frame.positions[-2:], seq_of("list"))
    inner = EMPTY
    for link in vals[0]:
        inner = join(inner, element(frame, st, link.ref, ANY))
    count = next((k.ref.payload[1] for k in vals[1] if isinstance(k.ref.payload, tuple)), None)
    known = isinstance(count, int) and 0 <= count <= 4
    for k in range(count if known and isinstance(count, int) else 2):
        st.put(made, Pos("i", k), inner)
    if known:
        st.put(made, "#len", single(frame.refs.const(count, SCALAR), FRESH_PROV))
    else:
        st.put(made, ANY, inner)
    return single(made, FRESH_PROV)


@handles(ir.Build)
def build(frame: Frame, expr: ir.Build, st: State) -> Val:
    return display(frame, expr, st, bind)


def display(frame: Frame, expr: ir.Build, st: State, keep: Callable[[Val], Val]) -> Val:
    """A display binds what it holds; one that is returned at once (`keep` identity) does not."""
    plain = [n.value if isinstance(n, ir.Star) else n for n in expr.items]
    vals = evaluate_all(frame, plain, st)
    made = frame.refs.alloc((frame.fn.key, expr.at), frame.positions[-2:], seq_of(expr.kind))
    fields: dict[Key, Val] = {}
    count = 0
    exact = True
    for i, node in enumerate(expr.items):
        if isinstance(node, ir.Star):
            count, exact = spread_into(frame, st, fields, vals[i], count, exact, node.at)
            continue
        val = keep(vals[i])
        if expr.kind == "dict":
            key_node = expr.keys[i]
            if key_node is None:
                count, exact = spread_into(frame, st, fields, val, count, exact, node.at)
                continue
            key_val = evaluate(frame, key_node, st)
            for key in index_keys(frame, st, made, key_val):
                fields[key] = join(fields[key], val) if key in fields else val
        elif exact:
            fields[Pos("i", count)] = val
            count += 1
        else:
            fields[ANY] = join(fields.get(ANY, EMPTY), val)
    if exact:
        size = count if expr.kind != "dict" else "?"
        fields["#len"] = single(frame.refs.const(size, SCALAR), FRESH_PROV)
    st.heap[made] = fields
    return single(made, FRESH_PROV)


def spread_into(
    frame: Frame, st: State, fields: dict[Key, Val], val: Val, count: int, exact: bool, at: ir.At
) -> tuple[int, bool]:
    """`*val` (or `**val`) inside a display: exact where the container's length is known."""
    from aliaslint.flow.containers import element, known_length
    from aliaslint.flow.loops import run_out

    val = run_out(frame, st, val, ir.Const(at, None))
    refs = [link.ref for link in val]
    if len(refs) == 1 and exact:
        length = known_length(st, refs[0])
        if length is not None:
            for k in range(length):
                fields[Pos("i", count + k)] = element(frame, st, refs[0], Pos("i", k))
            return count + length, True
    for ref in refs:
        for key, inner in st.heap.get(ref, {}).items():
            if isinstance(key, Pos) and isinstance(key.index, str):
                fields[key] = join(fields.get(key, EMPTY), inner)
        fields[ANY] = join(fields.get(ANY, EMPTY), element(frame, st, ref, ANY))
    return count, False


@handles(ir.Star)
def star(frame: Frame, expr: ir.Star, st: State) -> Val:
    return evaluate(frame, expr.value, st)


@handles(ir.Choice)
def choice(frame: Frame, expr: ir.Choice, st: State) -> Val:
    test(frame, expr.test, st)
    left, right = st.copy(), st.copy()
    then_ok = narrow(frame, left, expr.test, True)
    else_ok = narrow(frame, right, expr.test, False)
    then = evaluate(frame, expr.then, left) if then_ok else EMPTY
    other = evaluate(frame, expr.other, right) if else_ok else EMPTY
    if then_ok and else_ok:
        st.become(frame.union(left, right))
        return join(then, other)
    st.become(left if then_ok else right)
    return then if then_ok else other


def test(frame: Frame, expr: ir.Expr, st: State) -> None:
    """Evaluate a condition; its truth is a read of the value."""
    truth(frame, st, evaluate(frame, expr, st), expr)


def truth(frame: Frame, st: State, val: Val, expr: ir.Expr) -> None:
    """The truth of an object of the program is told by a method of its class."""
    run_special(frame, st, val, ("__bool__", "__len__"), expr)
    frame.read(st, val, expr.at)


def run_special(
    frame: Frame, st: State, val: Val, names: tuple[str, ...], expr: ir.Expr, *args: Val
) -> bool:
    """Run the first of these methods that the class of an object of the program has.

    True if there was one.
    """
    from aliaslint.flow.calls import after_call, call_method_of

    ran = False
    for link in list(val):
        type_ = frame.type_of(st, link.ref)
        name = next((n for n in names if item_method(frame, type_, n) is not None), None)
        if name is not None:
            call_method_of(frame, st, link.ref, name, list(args), expr)
            after_call(frame, st)
            ran = True
    return ran


def compare(frame: Frame, st: State, vals: list[Val], expr: ir.Fresh) -> None:
    """A comparison runs the method of its left operand, or the mirrored one of its right."""
    for left, right, op in zip(vals, vals[1:], expr.ops, strict=False):
        method, mirrored = COMPARISONS.get(op, ((), ()))
        if not run_special(frame, st, left, method, expr, right):
            run_special(frame, st, right, mirrored, expr, left)


COMPARISONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "Eq": (("__eq__",), ("__eq__",)),
    "NotEq": (("__ne__", "__eq__"), ("__ne__", "__eq__")),
    "Lt": (("__lt__",), ("__gt__",)),
    "LtE": (("__le__",), ("__ge__",)),
    "Gt": (("__gt__",), ("__lt__",)),
    "GtE": (("__ge__",), ("__le__",)),
    "In": ((), ("__contains__",)),
    "NotIn": ((), ("__contains__",)),
}
AS_TEXT = ("__format__", "__str__", "__repr__")


@handles(ir.BoolOp)
def bool_op(frame: Frame, expr: ir.BoolOp, st: State) -> Val:
    result = evaluate(frame, expr.values[0], st)
    truth(frame, st, result, expr.values[0])
    branch = st.copy()
    for before, node in zip(expr.values, expr.values[1:], strict=False):
        if not narrow(frame, branch, before, expr.op == "and"):
            break
        val = evaluate(frame, node, branch)
        if node is not expr.values[-1]:
            truth(frame, branch, val, node)
        result = join(result, val)
        st.become(frame.union(st, branch.copy()))
    return result


@handles(ir.Not)
def not_(frame: Frame, expr: ir.Not, st: State) -> Val:
    test(frame, expr.value, st)
    return frame.plain()


@handles(ir.Walrus)
def walrus(frame: Frame, expr: ir.Walrus, st: State) -> Val:
    from aliaslint.flow.statements import assign_to

    val = bind(evaluate(frame, expr.value, st))
    assign_to(frame, expr.target, val, st)
    return val


@handles(ir.Closure)
def closure(frame: Frame, expr: ir.Closure, st: State) -> Val:
    function = expr.function
    frame.a.classes.register(function)
    if frame.cls is not None:
        frame.a.closure_class[function.key] = frame.cls
    type_: Type = frozenset({FuncOf(function.key)})
    if not function.uses_cells and not expr.defaults:
        return single(frame.refs.static("func", function.key, type_), STATIC_PROV)
    made = frame.refs.alloc((frame.fn.key, expr.at), frame.positions, type_)
    if frame.frame_ref is not None:
        st.put(made, "<up>", single(frame.frame_ref, STATIC_PROV))
    for name_, default in expr.defaults:
        st.put(made, f"@{name_}", bind(evaluate(frame, default, st)))
    return single(made, FRESH_PROV)


@handles(ir.Comprehension)
def comprehension(frame: Frame, expr: ir.Comprehension, st: State) -> Val:
    from aliaslint.flow.statements import execute

    made = frame.refs.alloc((frame.fn.key, expr.at), frame.positions[-2:], seq_of(expr.kind))
    st.put(made, "#len", single(frame.refs.const(0, SCALAR), FRESH_PROV))
    aligned = isinstance(expr.body, ir.For) and not expr.body.conditional_emit
    frame.emitters.append(Emitter(made, expr.kind, 0, aligned and expr.kind == "list"))
    after = execute(frame, expr.body, st)
    frame.emitters.pop()
    if after is not None and after is not st:
        st.become(after)
    return single(made, FRESH_PROV)


@handles(ir.Opaque)
def opaque(frame: Frame, expr: ir.Opaque, st: State) -> Val:
    for operand in expr.operands:
        frame.read(st, evaluate(frame, operand, st), operand.at)
    frame.a.unresolved.setdefault(frame.where(expr.at), "a construct without a lowering")
    return frame.plain(UNKNOWN)


@handles(ir.Suspend)
def suspend(frame: Frame, expr: ir.Suspend, st: State) -> Val:
    from aliaslint.flow.generators import await_value, yield_from

    val = evaluate(frame, expr.value, st) if expr.value is not None else frame.plain(UNKNOWN)
    match expr.how:
        case "await":
            return await_value(frame, st, val, expr)
        case "from":
            return yield_from(frame, st, val, expr)
        case _:
            if frame.consumer is not None:
                after = frame.consumer(bind(val), st)
                if after is None:
                    raise Stopped
                if after is not st:
                    st.become(after)
            else:
                frame.returns.append((bind(val), st.copy()))
            sent = st.peek(frame.resumed, "#sent") if frame.resumed is not None else None
            return join(frame.plain(UNKNOWN), sent or EMPTY)


class Stopped(Exception):
    """The consumer of a generator does not come back: the path ends at this yield."""


__all__ = ["EVAL", "STR", "ExtInst", "Stopped", "evaluate"]


@handles(ir.Call)
def call_expression(frame: Frame, expr: ir.Call, st: State) -> Val:
    from aliaslint.flow.calls import call

    val = call(frame, expr, st)
    if frame.a.observer is not None:
        frame.a.observer.called(frame, expr, val, st)
    return val
