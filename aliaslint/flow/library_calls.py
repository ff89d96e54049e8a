"""Calls that leave the program: MLX, builtins, copying, functional tools, containers."""

from __future__ import annotations

from collections.abc import Callable

from aliaslint.flow.calls import (
    Args,
    call_method_of,
    call_property,
    call_ref,
    call_val,
    handed,
    stored,
    unresolved,
)
from aliaslint.flow.containers import append, element, known_length, set_length, store_element
from aliaslint.flow.expressions import (
    AS_TEXT,
    copy_container,
    index_keys,
    item_of,
    load_attr,
    location_of_field,
    run_special,
    seq_of,
)
from aliaslint.flow.frame import FRESH_PROV, STATIC_PROV, Frame, bind, describe
from aliaslint.flow.generators import advance, collect, drain
from aliaslint.flow.loops import iterate_val, iterators, run_out, walker
from aliaslint.flow.state import State
from aliaslint.flow.values import (
    ANY,
    EMPTY,
    FRESH,
    Hop,
    Key,
    Link,
    Pos,
    Prov,
    Ref,
    Val,
    join,
    single,
)
from aliaslint.lower import ir
from aliaslint.program import library
from aliaslint.program.kinds import GETTERS, const_type
from aliaslint.program.types import (
    ARRAY,
    SCALAR,
    STR,
    UNKNOWN,
    ClassOf,
    ExtInst,
    GenOf,
    Inst,
    Map,
    PartialOf,
    Seq,
    Tup,
    Type,
    is_plain,
    ordered,
)

Model = Callable[[Frame, State, Args, "ir.Expr"], Val]
MODELS: dict[str, Model] = {}


def models(*names: str) -> Callable[[Model], Model]:
    def register(function: Model) -> Model:
        for name in names:
            MODELS[name] = function
        return function

    return register


def read_all(frame: Frame, st: State, args: Args, expr: ir.Expr) -> None:
    for val, node in args.all():
        frame.read(st, val, node.at if node is not None else expr.at)


def library_call(frame: Frame, st: State, dotted: str, args: Args, expr: ir.Expr) -> Val:
    """A call of a name outside the program: by its model, or by MLX's table."""
    model = MODELS.get(dotted) or MODELS.get("*." + dotted.rpartition(".")[2])
    if model is not None:
        return model(frame, st, args, expr)
    if dotted in library.MX_NOT_READS or dotted in library.NOT_READS:
        drained = any(isinstance(a, GenOf) for v, _ in args.all() for k in v for a in k.ref.type)
        if not drained:
            return frame.plain()
    if dotted in library.MX_ISOLATING:
        return isolated(frame, expr)
    if dotted in library.MX_TRANSPARENT and args.positional:
        return args.positional[0]
    if dotted in library.NN_CONTAINERS or dotted in library.NN_IDENTITY:
        return layer(frame, st, dotted, args, expr)
    for val, node in args.all():
        at = node.at if node is not None else expr.at
        if any(isinstance(a, GenOf) for link in val for a in link.ref.type):
            drain(frame, st, val, ir.Const(at, None))
        read_deep(frame, st, val, at)
    result = library.call_result(dotted)
    if is_plain(result):
        return frame.plain(result)
    if result == UNKNOWN and not dotted.startswith(("builtins.", "mlx.")):
        frame.a.unresolved.setdefault(frame.where(expr.at), dotted)
    return frame.fresh(expr.at, result)


def read_deep(frame: Frame, st: State, val: Val, at: ir.At, depth: int = 0) -> None:
    """A function outside the program reads what it is given, lists of arrays included."""
    frame.read(st, val, at)
    if depth > 2:
        return
    for link in list(val):
        if any(isinstance(a, (Seq, Map, Tup)) for a in link.ref.type):
            for key, inner in list(st.heap.get(link.ref, {}).items()):
                if isinstance(key, Pos) or key.startswith("#part"):
                    read_deep(frame, st, inner, at, depth + 1)


def isolated(frame: Frame, expr: ir.Expr) -> Val:
    """`mx.compile(f)`: what it makes sees copies of its arguments."""
    ref = frame.refs.alloc((frame.fn.key, expr.at, "isolated"), frame.positions[-2:], UNKNOWN)
    return single(ref, FRESH_PROV)


def layer(frame: Frame, st: State, dotted: str, args: Args, expr: ir.Expr) -> Val:
    """Make a layer of mlx.nn that may hand its argument on unchanged."""
    ref = frame.refs.alloc(
        (frame.fn.key, expr.at), frame.positions[-2:], frozenset({ExtInst(dotted)})
    )
    for i, val in enumerate(args.positional):
        st.put(ref, Pos("i", i), val)
    return single(ref, FRESH_PROV)


def layer_call(frame: Frame, st: State, ref: Ref, dotted: str, args: Args, expr: ir.Expr) -> Val:
    if dotted in library.NN_IDENTITY and args.positional:
        return join(args.positional[0], frame.fresh(expr.at, ARRAY))
    if dotted in library.NN_CONTAINERS:
        val = args.positional[0] if args.positional else EMPTY
        parts = [v for k, v in st.heap.get(ref, {}).items() if isinstance(k, Pos)]
        if not parts:
            return val if ref.kind == "alloc" else join(val, frame.fresh(expr.at, ARRAY))
        for part in parts:
            val = call_val(frame, st, part, Args([val], nodes=[None]), expr)
        return val
    for val, node in args.all():
        read_deep(frame, st, val, node.at if node is not None else expr.at)
    return frame.fresh(expr.at, library.instance_call_result(dotted))


ENTERED = "#entered"  # what a context manager gives its block


@models("contextlib.nullcontext", "contextlib.closing")
def null_context(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    """The block is given the very thing that the context was made of."""
    ref = frame.refs.alloc((frame.fn.key, expr.at), frame.positions[-2:], CONTEXT)
    st.put(ref, ENTERED, bind(args.positional[0]) if args.positional else EMPTY)
    return single(ref, FRESH_PROV)


@models("contextlib.ExitStack", "contextlib.AsyncExitStack")
def exit_stack(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    """A stack of calls that run when the block of its `with` is left."""
    ref = frame.refs.alloc((frame.fn.key, expr.at), frame.positions[-2:], EXIT_STACK)
    set_length(frame, st, ref, 0)
    return single(ref, FRESH_PROV)


EXIT_STACK = frozenset({ExtInst("contextlib.ExitStack")})
CONTEXT: Type = frozenset({ExtInst("contextlib.nullcontext")})


def is_exit_stack(ref: Ref) -> bool:
    return ref.type == EXIT_STACK


def close_stack(frame: Frame, st: State, ref: Ref, node: ir.Expr) -> None:
    """Run what was pushed, the last one first."""
    length = known_length(st, ref)
    positions = [ANY] if length is None else [Pos("i", k) for k in reversed(range(length))]
    for pos in positions:
        for link in list(element(frame, st, ref, pos)):
            call_ref(frame, st, link.ref, Args(), node)
    clear_elements(frame, st, ref)


def nn_method(
    frame: Frame, st: State, ref: Ref, dotted: str, name: str, args: Args, expr: ir.Expr
) -> Val:
    if is_exit_stack(ref) and name in {"callback", "push_async_callback"} and args.positional:
        append(frame, st, ref, partial_(frame, st, args, expr))
        return args.positional[0]
    if is_exit_stack(ref) and name in {"close", "aclose"}:
        close_stack(frame, st, ref, expr)
        return frame.plain()
    read_all(frame, st, args, expr)
    if dotted.startswith("mlx.nn.") and name not in {"parameters", "trainable_parameters"}:
        return frame.fresh(expr.at, ARRAY if name == "as_linear" else UNKNOWN)
    return frame.fresh(expr.at, UNKNOWN)


def array_method(frame: Frame, st: State, name: str, args: Args, expr: ir.Expr) -> Val:
    read_all(frame, st, args, expr)
    if name in library.ARRAY_SCALARS:
        return frame.plain()
    return frame.fresh(expr.at, ARRAY)


# --- copies


@models("copy.copy")
def copy_copy(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    """A copy of an array is new; a copy of anything else holds the same handles."""
    result = EMPTY
    for val in args.positional[:1]:
        for link, stale in list(val.items()):
            type_ = frame.type_of(st, link.ref)
            if "array" in type_ or type_ == UNKNOWN:
                frame.read(st, {link: stale}, expr.at)
                result = join(result, frame.fresh(expr.at, type_))
            elif is_plain(type_):
                result = join(result, {link: stale})
            elif any(isinstance(a, (Seq, Tup, Map)) for a in type_):
                result = join(result, copy_container(frame, st, link.ref, expr.at, True))
            else:
                result = join(result, copy_object(frame, st, link.ref, expr))
    return result


def copy_object(frame: Frame, st: State, ref: Ref, expr: ir.Expr) -> Val:
    """A shallow copy of an object: a second owner of every handle."""
    for atom in ordered(frame.type_of(st, ref)):
        if isinstance(atom, Inst):
            info = frame.a.classes.get(atom.key)
            if info and info.find("__copy__"):
                val = call_method_of(frame, st, ref, "__copy__", [], expr)
                return handed(frame, st, val, "copy", expr)
    made = frame.refs.alloc((frame.fn.key, expr.at, "copy"), frame.positions[-2:], ref.type)
    hop = Hop("hand-over", frame.where(expr.at), describe(expr))
    names: set[str] = {k for k in st.heap.get(ref, {}) if isinstance(k, str)}
    for atom in ordered(ref.type):
        if isinstance(atom, Inst):
            info = frame.a.classes.get(atom.key)
            for ancestor in info.mro if info else ():
                names |= set(frame.a.kinds.assigned(ancestor))
                names |= set(ancestor.fields)
    for name in sorted(names):
        if not name.startswith(("()#", "#")):
            held = location_of_field(frame, st, ref, name)
            st.put(made, name, with_hop(held, hop))
            st.owned |= {link.ref for link in held if "array" in link.ref.type}
    return single(made, FRESH_PROV)


def with_hop(val: Val, hop: Hop) -> Val:
    from aliaslint.flow.context import extend

    new: Val = {}
    for link, stale in val.items():
        prov = link.prov if is_plain(link.ref.type) else extend(link.prov, hop)
        new[Link(link.ref, prov)] = stale
    return new


@models("copy.deepcopy", "dataclasses.asdict", "dataclasses.astuple")
def deep_copy(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    for val in args.positional[:1]:
        frame.read(st, val, expr.at)
        return frame.fresh(expr.at, frame.val_type(st, val) or UNKNOWN)
    return frame.plain(UNKNOWN)


@models("dataclasses.replace")
def record_replace(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    result = EMPTY
    for val in args.positional[:1]:
        for link in list(val):
            result = join(result, replaced_record(frame, st, link.ref, args, expr))
    return result


def replaced_record(frame: Frame, st: State, ref: Ref, args: Args, expr: ir.Expr) -> Val:
    made = copy_object(frame, st, ref, expr)
    for link in made:
        for key, val in st.heap.get(ref, {}).items():
            if isinstance(key, Pos):
                st.put(link.ref, key, val)
        for name, val in args.keywords.items():
            st.put(link.ref, name, bind(val))
    return made


def record_method(frame: Frame, st: State, ref: Ref, name: str, args: Args, expr: ir.Expr) -> Val:
    if name == "_replace":
        return replaced_record(frame, st, ref, args, expr)
    made = frame.refs.alloc((frame.fn.key, expr.at), frame.positions[-2:], seq_of("dict"))
    for key, val in st.heap.get(ref, {}).items():
        if isinstance(key, str):
            st.put(made, Pos("i", key), val)
    return single(made, FRESH_PROV)


# --- objects of the standard library


@models("types.SimpleNamespace", "argparse.Namespace")
def namespace(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    """An object without a class of the program: its attributes are the keywords."""
    made = frame.fresh(expr.at, UNKNOWN)
    hop = Hop("store", frame.where(expr.at), describe(expr))
    for link in made:
        for name, val in args.keywords.items():
            st.put(link.ref, name, stored(val, hop))
            st.owned |= {held.ref for held in val if "array" in held.ref.type}
    return made


def getter(kind: str) -> Model:
    """What takes an attribute, an element or the result of a method from its argument."""

    def model(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
        type_: Type = frozenset({PartialOf(kind)})
        made = frame.refs.alloc((frame.fn.key, expr.at), frame.positions[-2:], type_)
        for i, val in enumerate(args.positional):
            st.put(made, Pos("i", i), bind(val))
        for name, val in args.keywords.items():
            st.put(made, f"kw:{name}", bind(val))
        return single(made, FRESH_PROV)

    return model


for _kind in GETTERS:
    MODELS[f"operator.{_kind}"] = getter(_kind)


def getter_call(
    frame: Frame, st: State, ref: Ref, how: PartialOf, args: Args, expr: ir.Expr
) -> Val:
    """`attrgetter("a")(o)` is `o.a`; with several names it is a tuple, like `itemgetter`."""
    fields = st.heap.get(ref, {})
    given = [fields[Pos("i", i)] for i in range(len(fields)) if Pos("i", i) in fields]
    if not given:  # a variable of a module
        given = [single(frame.refs.const(n, const_type(n)), FRESH_PROV) for n in how.names]
    if how.kind != "methodcaller":
        names = {constant(link) for link in given[0]} if len(given) == 1 else {None}
        frame.a.taken.setdefault(frame.where(expr.at), set()).update(names)
    node = next(iter(args.nodes), None) or expr
    base = args.positional[0] if args.positional else EMPTY
    match how.kind:
        case "attrgetter":
            parts = [attribute_path(frame, st, base, val, node, expr.at) for val in given]
        case "itemgetter":
            item = ir.Item(expr.at, node, None)
            parts = []
            for index in given:
                part = EMPTY
                for link, stale in list(base.items()):
                    part = join(part, item_of(frame, st, link, stale, index, item))
                parts.append(part)
        case _:
            fn = attribute_path(frame, st, base, given[0] if given else EMPTY, node, expr.at)
            words = {k[3:]: v for k, v in fields.items() if isinstance(k, str) and k[:3] == "kw:"}
            inner = Args(given[1:], words, nodes=[None] * len(given[1:]))
            return call_val(frame, st, fn, inner, expr)
    if len(parts) == 1:
        return parts[0]
    made = frame.refs.alloc((frame.fn.key, expr.at), frame.positions[-2:], seq_of("tuple"))
    st.heap[made] = {Pos("i", i): bind(part) for i, part in enumerate(parts)}
    set_length(frame, st, made, len(parts))
    return single(made, FRESH_PROV)


def constant(link: Link) -> str | None:
    """The constant that a name or an index is, as text; None where it is not known."""
    payload = link.ref.payload
    if link.ref.kind != "const" or not isinstance(payload, tuple) or payload[1] == "?":
        return None
    return str(payload[1])


def attribute_path(frame: Frame, st: State, base: Val, names: Val, node: ir.Expr, at: ir.At) -> Val:
    """What `a.b` leads to from an object, for each text that the name may be."""
    result = EMPTY
    for link in names:
        text = constant(link)
        val, inner = base, node
        for name in text.split(".") if text is not None else ():
            inner = ir.Attr(at, inner, name)
            val = load_attr(frame, st, val, name, inner)
        result = join(result, val if val is not base else frame.plain(UNKNOWN))
    return result


# --- classes of objects


@models("builtins.type")
def type_(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    """`type(o)`: the class of an object of the program, to be called like its name."""
    result = EMPTY
    for link in args.positional[0] if len(args.positional) == 1 else ():
        for atom in ordered(frame.type_of(st, link.ref)):
            made = frame.class_val(atom.key) if isinstance(atom, Inst) else frame.plain(UNKNOWN)
            result = join(result, made)
    return result or frame.plain(UNKNOWN)


@models("builtins.object.__new__")
def object_new(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    """`object.__new__(cls)`: an instance without any attribute."""
    result = EMPTY
    for link in args.positional[0] if args.positional else ():
        for atom in ordered(frame.type_of(st, link.ref)):
            if isinstance(atom, ClassOf):
                result = join(result, frame.fresh(expr.at, frozenset({Inst(atom.key)})))
    return result or frame.fresh(expr.at, UNKNOWN)


# --- attributes by name


@models("builtins.getattr")
def getattr_(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    if len(args.positional) < 2:
        return frame.plain(UNKNOWN)
    base, names = args.positional[0], args.positional[1]
    result = args.positional[2] if len(args.positional) > 2 else EMPTY
    for link in names:
        payload = link.ref.payload
        name = payload[1] if isinstance(payload, tuple) and link.ref.kind == "const" else None
        if isinstance(name, str) and name != "?":
            loaded = load_attr(frame, st, base, name, expr)
            result = join(result, loaded or frame.plain(UNKNOWN))
        else:
            result = join(result, any_attribute(frame, st, base, expr))
    return result


def any_attribute(frame: Frame, st: State, base: Val, expr: ir.Expr) -> Val:
    result = frame.plain(UNKNOWN)
    for link in base:
        for key in list(st.heap.get(link.ref, {})):
            if isinstance(key, str) and not key.startswith(("#", "()", "@", "<")):
                result = join(result, load_attr(frame, st, {link: FRESH}, key, expr))
    return result


@models("builtins.setattr")
def setattr_(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    from aliaslint.flow.statements import never_holds_array, store_attr

    if len(args.positional) == 3:
        base, names, val = args.positional
        for link in names:
            payload = link.ref.payload
            name = payload[1] if isinstance(payload, tuple) and link.ref.kind == "const" else None
            if isinstance(name, str) and name != "?":
                store_attr(frame, st, base, name, bind(val), expr.at, f"setattr({name!r})")
            else:
                for owner in base:
                    for key, held in list(st.heap.get(owner.ref, {}).items()):
                        if not isinstance(key, str) or key.startswith(("#", "()", "@", "<")):
                            continue
                        if not never_holds_array(frame, st, owner.ref, key):
                            st.put(owner.ref, key, join(held, bind(val)))
    return frame.plain()


@models("builtins.vars")
def vars_(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    """`vars(o)`: the object's own attributes by name."""
    refs = [link.ref for val in args.positional[:1] for link in val]
    return attributes_by_name(frame, st, refs, expr)


def attributes_by_name(frame: Frame, st: State, refs: list[Ref], expr: ir.Expr) -> Val:
    """A dict of the very handles that the attributes of some objects hold."""
    made = frame.refs.alloc((frame.fn.key, expr.at), frame.positions[-2:], seq_of("dict"))
    for ref in refs:
        names = {k for k in st.heap.get(ref, {}) if isinstance(k, str)}
        for atom in ordered(ref.type):
            info = frame.a.classes.get(atom.key) if isinstance(atom, Inst) else None
            for ancestor in info.mro if info else ():
                names |= set(frame.a.kinds.assigned(ancestor))
        for name in sorted(names - {"__dict__"}):  # Assigned in `__setstate__`: this very dict.
            if not name.startswith(("#", "()", "@", "<", "as:")):
                node = ir.Attr(expr.at, ir.Const(expr.at, None), name)
                link = Link(ref, STATIC_PROV)
                field = load_attr(frame, st, {link: FRESH}, name, node)
                st.put(made, Pos("i", name), bind(field))
    return single(made, FRESH_PROV)


# --- walks and sequences


@models("builtins.zip")
def zip_(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    if args.loose:
        return walker(frame, st, expr.at, "zip", [args.loose])
    return walker(frame, st, expr.at, "zip", args.positional)


@models("builtins.enumerate")
def enumerate_(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    return walker(frame, st, expr.at, "enumerate", args.positional[:1])


@models("builtins.range")
def range_(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    read_all(frame, st, args, expr)
    if len(args.positional) == 1:
        return walker(frame, st, expr.at, "range", args.positional)
    first = next(iter(args.positional[0]), None) if args.positional else None
    payload = first.ref.payload if first is not None else None
    if len(args.positional) == 2 and payload == ("int", 0):
        return walker(frame, st, expr.at, "range", args.positional[1:])
    made = frame.refs.alloc(
        (frame.fn.key, expr.at), frame.positions[-2:], frozenset({Seq("list", SCALAR)})
    )
    st.put(made, ANY, frame.plain())
    return single(made, FRESH_PROV)


@models("builtins.reversed")
def reversed_(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    return walker(frame, st, expr.at, "reversed", args.positional[:1])


@models("builtins.map")
def map_(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    return walker(frame, st, expr.at, "map", args.positional)


@models("builtins.iter")
def iter_(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    val = args.positional[0] if args.positional else EMPTY
    if any(isinstance(a, GenOf) for link in val for a in link.ref.type):
        return val
    return walker(frame, st, expr.at, "iter", [val])


@models("builtins.filter", "itertools.chain", "itertools.islice")
def loosely(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    """Some of the elements, in some order."""
    made = frame.refs.alloc((frame.fn.key, expr.at), frame.positions[-2:], seq_of("list"))
    inner = EMPTY
    for val in args.positional:
        if any(not is_plain(frame.type_of(st, k.ref)) and k.ref.kind != "func" for k in val):
            inner = join(inner, iterate_val(frame, st, val, ANY, expr))
    st.put(made, ANY, inner)
    return single(made, FRESH_PROV)


@models("builtins.next")
def next_(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    result = args.positional[1] if len(args.positional) > 1 else EMPTY
    for val in args.positional[:1]:
        for link in list(val):
            if any(isinstance(a, GenOf) for a in link.ref.type):
                result = join(result, advance(frame, st, link, expr))
            elif any(isinstance(a, Inst) for a in link.ref.type):
                result = join(result, call_method_of(frame, st, link.ref, "__next__", [], expr))
            else:
                result = join(result, iterate_val(frame, st, {link: FRESH}, ANY, expr))
    return result


def sequence(kind: str) -> Model:
    def model(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
        if not args.positional:
            made = frame.refs.alloc((frame.fn.key, expr.at), frame.positions[-2:], seq_of(kind))
            size = frame.refs.const(0, SCALAR)
            st.put(made, "#len", single(size, FRESH_PROV))
            return single(made, FRESH_PROV)
        result = EMPTY
        for link, stale in list(args.positional[0].items()):
            result = join(result, as_sequence(frame, st, link, stale, kind, expr))
        return result

    return model


def as_sequence(
    frame: Frame, st: State, link: Link, stale: frozenset[object], kind: str, expr: ir.Expr
) -> Val:
    """`list(x)`: the same handles; in step with `x` where `x` is a sequence."""
    from aliaslint.flow.loops import walk_kind

    type_ = frame.type_of(st, link.ref)
    walked = iterators(frame, st, {link: FRESH}, expr)
    if any(isinstance(a, GenOf) for k in walked for a in k.ref.type):
        return collect(frame, st, walked, expr, kind)
    if "array" in type_:
        frame.read(st, {link: stale}, expr.at)  # type: ignore[dict-item]
        made = frame.refs.alloc((frame.fn.key, expr.at), frame.positions[-2:], seq_of(kind))
        st.put(made, ANY, frame.fresh((expr.at, "row"), ARRAY))
        return single(made, FRESH_PROV)
    if walk_kind(st, link.ref):
        length = exact(frame, st, link)
        made = frame.refs.alloc((frame.fn.key, expr.at), frame.positions[-2:], seq_of(kind))
        if length is not None and length <= 6:
            for k in range(length):
                st.put(made, Pos("i", k), iterate_val(frame, st, {link: FRESH}, Pos("i", k), expr))
            st.put(made, "#len", single(frame.refs.const(length, SCALAR), FRESH_PROV))
        else:
            st.put(made, ANY, iterate_val(frame, st, {link: FRESH}, ANY, expr))
        return single(made, FRESH_PROV)
    if any(isinstance(a, Inst) for a in type_) or any(isinstance(a, Map) for a in type_):
        made = frame.refs.alloc((frame.fn.key, expr.at), frame.positions[-2:], seq_of(kind))
        st.put(made, ANY, iterate_val(frame, st, {link: FRESH}, ANY, expr))
        return single(made, FRESH_PROV)
    if is_plain(type_):
        return frame.plain(UNKNOWN)
    return copy_container(frame, st, link.ref, expr.at, kind != "set", kind)


def exact(frame: Frame, st: State, link: Link) -> int | None:
    from aliaslint.flow.loops import exact_length

    return exact_length(frame, st, {link: FRESH})


for _kind in ("list", "tuple", "set", "frozenset"):
    MODELS[f"builtins.{_kind}"] = sequence("set" if _kind == "frozenset" else _kind)
MODELS["collections.deque"] = sequence("list")


@models("builtins.sorted")
def sorted_(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    made = frame.refs.alloc((frame.fn.key, expr.at), frame.positions[-2:], seq_of("list"))
    given = run_out(frame, st, args.positional[0], expr) if args.positional else EMPTY
    inner = iterate_val(frame, st, given, ANY, expr)
    frame.read(st, inner, expr.at)
    st.put(made, ANY, inner)
    return single(made, FRESH_PROV)


@models("builtins.dict")
def dict_(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    made = frame.refs.alloc((frame.fn.key, expr.at), frame.positions[-2:], seq_of("dict"))
    for val in args.positional[:1]:
        for link in val:
            for key, inner in list(st.heap.get(link.ref, {}).items()):
                if isinstance(key, Pos):
                    st.put(made, key, join(st.peek(made, key) or EMPTY, inner))
            if not any(isinstance(a, Map) for a in link.ref.type):
                pairs = iterate_val(frame, st, {link: FRESH}, ANY, expr)
                inner = EMPTY
                for pair in pairs:
                    inner = join(inner, element(frame, st, pair.ref, Pos("i", 1)))
                st.put(made, ANY, inner)
    for name, val in args.keywords.items():
        st.put(made, Pos("i", name), val)
    return single(made, FRESH_PROV)


@models("builtins.max", "builtins.min")
def pick(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    """`max([a])` gives back one of the very handles."""
    result = EMPTY
    if len(args.positional) == 1:
        val = run_out(frame, st, args.positional[0], expr)
        result = iterate_val(frame, st, val, ANY, expr)
    else:
        for val in args.positional:
            result = join(result, val)
    frame.read(st, result, expr.at)
    for val in args.keywords.values():
        result = join(result, val) if not any(k.ref.kind == "func" for k in val) else result
    return result


@models("builtins.sum", "builtins.any", "builtins.all")
def reduce_values(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    for val in args.positional:
        if any(isinstance(a, GenOf) for link in val for a in link.ref.type):
            drain(frame, st, val, expr)
        else:
            frame.read(st, val, expr.at)
            read_deep(frame, st, val, expr.at)
    return frame.fresh(expr.at, UNKNOWN)


@models("functools.partial", "types.MethodType")
def partial_(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    made = frame.refs.alloc(
        (frame.fn.key, expr.at), frame.positions[-2:], frozenset({PartialOf("partial")})
    )
    if args.positional:
        st.put(made, "fn", args.positional[0])
    for i, val in enumerate(args.positional[1:]):
        st.put(made, Pos("i", i), bind(val))
    for name, val in args.keywords.items():
        st.put(made, f"kw:{name}", bind(val))
    return single(made, FRESH_PROV)


@models("functools.reduce")
def reduce_(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    """A reduction of one element gives back the element."""
    inner = EMPTY
    for val in args.positional[1:2]:
        inner = iterate_val(frame, st, val, ANY, expr)
    for val in args.positional[2:]:
        inner = join(inner, val)
    if args.positional:
        pair = Args([inner, inner], nodes=[None, None])
        inner = join(inner, call_val(frame, st, args.positional[0], pair, expr))
    return inner


@models("*.tree_map", "*.tree_map_with_path")
def tree_map(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    """`tree_map(f, tree)`: containers are new, their leaves are what `f` gives back."""
    if len(args.positional) < 2:
        return frame.plain(UNKNOWN)
    return mapped(frame, st, args.positional[0], args.positional[1], expr, 0)


def mapped(frame: Frame, st: State, fn: Val, tree: Val, expr: ir.Expr, depth: int) -> Val:
    """One new container for all that `tree` may be: it is one of them, and what `f` makes for
    an element of one is not shared with the others."""
    result = EMPTY
    made: Ref | None = None
    parts: dict[Key, Val] = {}
    for link, stale in list(tree.items()):
        ref = link.ref
        if any(isinstance(a, (Seq, Tup, Map)) for a in ref.type) and depth < 3:
            if made is None:
                kind = next((a.kind for a in ref.type if isinstance(a, Seq)), "list")
                site = (frame.fn.key, expr.at, depth)
                made = frame.refs.alloc(site, frame.positions[-2:], seq_of(kind))
                result = join(result, single(made, FRESH_PROV))
            if not st.heap.get(ref):
                element(frame, st, ref, ANY)
            for key, val in list(st.heap.get(ref, {}).items()):
                if isinstance(key, Pos):
                    outer = frame.positions
                    frame.positions = (*outer, key)
                    leaves = mapped(frame, st, fn, val, expr, depth + 1)
                    parts[key] = join(parts.get(key, EMPTY), leaves)
                    frame.positions = outer
                elif key in {"#len", "#space"}:
                    parts[key] = join(parts.get(key, EMPTY), val)
        else:
            one = Args([{link: stale}], nodes=[None])
            result = join(result, call_val(frame, st, fn, one, expr))
    for key, val in parts.items():
        assert made is not None
        st.put(made, key, val)
    return result


@models("*.tree_flatten")
def tree_flatten(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    """Pairs of a name and the very handle of each leaf."""
    made = frame.refs.alloc((frame.fn.key, expr.at), frame.positions[-2:], seq_of("list"))
    pair = frame.refs.alloc((frame.fn.key, expr.at, "pair"), frame.positions[-2:], seq_of("tuple"))
    leaves = EMPTY
    for val in args.positional[:1]:
        leaves = leaves_of(frame, st, val, 0)
    st.heap[pair] = {Pos("i", 0): frame.plain(), Pos("i", 1): leaves}
    st.put(made, ANY, single(pair, FRESH_PROV))
    return single(made, FRESH_PROV)


def leaves_of(frame: Frame, st: State, val: Val, depth: int) -> Val:
    result = EMPTY
    for link, stale in list(val.items()):
        ref = link.ref
        if any(isinstance(a, (Seq, Tup, Map)) for a in ref.type) and depth < 4:
            result = join(result, leaves_of(frame, st, element(frame, st, ref, ANY), depth + 1))
        elif any(isinstance(a, Inst) for a in ref.type) and depth < 4:
            for key, inner in list(st.heap.get(ref, {}).items()):
                if isinstance(key, str) and not key.startswith(("#", "()", "@", "<")):
                    result = join(result, leaves_of(frame, st, inner, depth + 1))
        else:
            result = join(result, {link: stale})
    return result


@models(
    *(
        f"operator.{n}"
        for n in ["iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior"]
    )
)
def operator_in_place(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    """`operator.iadd(a, b)` does what `a += b` does, and gives back `a`."""
    from aliaslint.flow.statements import update_target

    read_all(frame, st, args, expr)
    if args.positional and args.nodes and args.nodes[0] is not None:
        holder = ir.Target(expr.at)
        update_target(frame, st, holder, args.nodes[0], args.positional[0], "aug", "iadd")
        return args.positional[0]
    return frame.plain(UNKNOWN)


def special_method(name: str) -> Model:
    """`len(o)` on an object of the program runs its method; on an array it is metadata."""

    def model(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
        for val in args.positional[:1]:
            for link, stale in list(val.items()):
                run_special(frame, st, {link: FRESH}, SPECIAL.get(name, (f"__{name}__",)), expr)
                if name != "len":
                    frame.read(st, {link: stale}, expr.at)
        if name == "abs" and args.positional:
            return frame.fresh(expr.at, frame.val_type(st, args.positional[0]) or UNKNOWN)
        return frame.plain(STR if name in {"str", "repr", "ascii", "format"} else SCALAR)

    return model


SPECIAL = {
    "bool": ("__bool__", "__len__"),
    "str": AS_TEXT[1:],
    "ascii": AS_TEXT[2:],
    "format": AS_TEXT,
}


@models("builtins.print")
def print_(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    for val, node in args.all():
        at = node.at if node is not None else expr.at
        run_special(frame, st, val, AS_TEXT[1:], expr)
        read_deep(frame, st, val, at)
    return frame.plain(frozenset({"none"}))


for _name in ("len", "bool", "str", "repr", "abs", "ascii", "format"):
    MODELS[f"builtins.{_name}"] = special_method(_name)


@models("builtins.dict.fromkeys")
def from_keys(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    """`dict.fromkeys(keys, v)`: one handle under every key."""
    made = frame.refs.alloc((frame.fn.key, expr.at), frame.positions[-2:], seq_of("dict"))
    held = bind(args.positional[1]) if len(args.positional) > 1 else EMPTY
    for link in args.positional[0] if args.positional else ():
        payload = link.ref.payload
        if isinstance(payload, tuple) and payload[0] == "str" and payload[1] != "?":
            for letter in payload[1]:
                st.put(made, Pos("i", letter), held)
        for key, val in st.heap.get(link.ref, {}).items():
            if isinstance(key, Pos) and key.kind == "i":
                for pos in index_keys(frame, st, made, val):
                    st.put(made, pos, held)
    for pos in (Pos("i", "?a"), Pos("i", "?b")):
        st.put(made, pos, held)
    return single(made, FRESH_PROV)


@models("numpy.asarray", "numpy.asanyarray", "numpy.ascontiguousarray", "numpy.frombuffer")
def as_view(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    """A zero-copy view sees `a += 1` and `a[0] = v`: it is one more name for the handle."""
    return view_of(frame, st, args, expr)


@models("builtins.memoryview")
def memory_view(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    return view_of(frame, st, args, expr)


@models("numpy.array")
def np_array(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    for link in args.keywords.get("copy", EMPTY):
        if link.ref.payload == ("bool", False):
            return view_of(frame, st, args, expr)
    read_all(frame, st, args, expr)
    return frame.plain(frozenset({"other"}))


def view_of(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    result = frame.plain(frozenset({"other"}))
    prov = Prov("capture", frame.where(expr.at), describe(expr), bound=False)
    for val in args.positional[:1]:
        for link, stale in val.items():
            if "array" in frame.type_of(st, link.ref):
                owner = link.prov.owner
                made = prov if not owner else Prov(prov.kind, prov.where, prov.text, owner=True)
                result = {**result, Link(link.ref, made): stale}
    return result


@models("mlx.core.array", "mlx.core.asarray")
def mx_array(frame: Frame, st: State, args: Args, expr: ir.Expr) -> Val:
    read_all(frame, st, args, expr)
    for val in args.positional[:1]:
        read_deep(frame, st, val, expr.at)
    return frame.fresh(expr.at, ARRAY)


# --- methods of containers


def container_method(
    frame: Frame, st: State, ref: Ref, name: str, args: Args, expr: ir.Call
) -> Val:
    """Methods of lists, dicts, sets and of generator objects."""
    first = bind(args.positional[0]) if args.positional else EMPTY
    second = bind(args.positional[1]) if len(args.positional) > 1 else EMPTY
    match name:
        case "append" | "add" | "appendleft":
            append(frame, st, ref, first)
        case "extend" | "update":
            extend_with(frame, st, ref, first, args)
        case "insert":
            store_element(frame, st, ref, ANY, second, True)
            set_length(frame, st, ref, None)
        case "get" | "setdefault" | "pop":
            return take(frame, st, ref, name, args)
        case "popleft" | "popitem" | "next" | "__next__" | "send":
            if name == "send":
                st.put(ref, "#sent", first)
            if any(isinstance(a, GenOf) for a in ref.type):
                return advance(frame, st, Link(ref, STATIC_PROV), expr)
            set_length(frame, st, ref, None)
            return loosen(frame, st, ref)
        case "copy":
            kind = "dict" if any(isinstance(a, Map) for a in ref.type) else "list"
            return copy_container(frame, st, ref, expr.at, True, kind)
        case "items" | "values" | "keys":
            return walker(frame, st, expr.at, name, [single(ref, STATIC_PROV)])
        case "reverse" | "sort" | "rotate":
            val = element(frame, st, ref, ANY)
            clear_elements(frame, st, ref)
            st.put(ref, ANY, val)
        case "clear":
            clear_elements(frame, st, ref)
        case "index" | "count":
            read_all(frame, st, args, expr)
            return frame.plain()
        case _:
            read_all(frame, st, args, expr)
            return frame.plain(UNKNOWN)
    return frame.plain()


def clear_elements(frame: Frame, st: State, ref: Ref) -> None:
    if ref.many:
        return
    st.heap[ref] = {k: v for k, v in st.heap.get(ref, {}).items() if not isinstance(k, Pos)}
    set_length(frame, st, ref, 0)


def loosen(frame: Frame, st: State, ref: Ref) -> Val:
    """Positions have shifted: every element may be anywhere."""
    val = element(frame, st, ref, ANY)
    if not ref.many:
        st.heap[ref] = {k: v for k, v in st.heap.get(ref, {}).items() if not isinstance(k, Pos)}
        st.heap[ref].pop("#space", None)
    st.put(ref, ANY, val)
    return val


def take(frame: Frame, st: State, ref: Ref, name: str, args: Args) -> Val:
    index = args.positional[0] if args.positional else EMPTY
    other = args.positional[1] if len(args.positional) > 1 else EMPTY
    if any(isinstance(a, Map) for a in ref.type) or name == "get":
        result = other
        for pos in index_keys(frame, st, ref, index):
            result = join(result, element(frame, st, ref, pos))
            if name == "setdefault":
                store_element(frame, st, ref, pos, bind(other), True)
        return result
    length = known_length(st, ref)
    if name == "pop" and length and not args.positional and not ref.many:
        last = Pos("i", length - 1)
        val = element(frame, st, ref, last)
        st.heap[ref] = {k: v for k, v in st.heap.get(ref, {}).items() if k != last}
        set_length(frame, st, ref, length - 1)
        return val
    set_length(frame, st, ref, None)
    return loosen(frame, st, ref)


def extend_with(frame: Frame, st: State, ref: Ref, other: Val, args: Args) -> None:
    if any(isinstance(a, Map) for a in ref.type):
        for link in other:
            for key, val in list(st.heap.get(link.ref, {}).items()):
                if isinstance(key, Pos):
                    st.put(ref, key, join(st.peek(ref, key) or EMPTY, val))
        for name, val in args.keywords.items():
            st.put(ref, Pos("i", name), bind(val))
        return
    for link in list(other):
        length = known_length(st, link.ref)
        mine = known_length(st, ref)
        if length is not None and mine is not None and not frame.loops:
            for k in range(length):
                st.put(ref, Pos("i", mine + k), element(frame, st, link.ref, Pos("i", k)))
            set_length(frame, st, ref, mine + length)
            continue
        inner = iterate_val(frame, st, {link: FRESH}, ANY, ir.Const(ir.NOWHERE, None))
        if any(isinstance(a, GenOf) for a in link.ref.type):
            made = collect(frame, st, {link: FRESH}, ir.Const(ir.NOWHERE, None))
            inner = EMPTY
            for item in made:
                inner = join(inner, element(frame, st, item.ref, ANY))
        store_element(frame, st, ref, ANY, inner, True)
        set_length(frame, st, ref, None)


__all__ = ["call_property", "library_call", "unresolved"]
