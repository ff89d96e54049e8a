"""One activation of a function: names, locations, reads, in-place updates.

`evaluate` and `execute` dispatch on the node type to what the sibling modules register.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import overload

from aliaslint.flow.context import Analysis, Read, SiteInfo, extend
from aliaslint.flow.state import Binding, State, initial, is_object
from aliaslint.flow.values import (
    ANY,
    EMPTY,
    ENTRY,
    FRESH,
    Hop,
    Key,
    Link,
    Mark,
    Pos,
    Prov,
    Ref,
    Site,
    Stale,
    Val,
    Where,
    join,
    single,
)
from aliaslint.lower import ir
from aliaslint.program.modules import GlobalVar, Module
from aliaslint.program.types import (
    NOTHING,
    SCALAR,
    UNKNOWN,
    ClassOf,
    Ext,
    FuncOf,
    Inst,
    Mod,
    Type,
    is_plain,
    known_atoms,
)

FRESH_PROV = Prov("fresh")
STATIC_PROV = Prov("static")
Consumer = Callable[[Val, State], "State | None"]


@dataclass(slots=True)
class LoopFrame:
    key: object
    breaks: list[State] = field(default_factory=list)
    continues: list[State] = field(default_factory=list)
    aligned: dict[Ref, None] = field(default_factory=dict)
    generic: bool = False
    active: int = 0  # how many loops are under way in its body, itself included


@dataclass(frozen=True, slots=True)
class Active:
    """A loop whose current element is under way, and the index space of its elements."""

    key: object
    home: Ref


@dataclass(slots=True)
class TryFrame:
    state: State | None = None
    active: int = 0  # how many loops were under way when it was entered


@dataclass(slots=True)
class Emitter:
    """A comprehension being built: where its elements go, and at which positions."""

    target: Ref
    kind: str
    count: int = 0
    aligned: bool = True


class Frame:
    """The activation of `fn` (with `self` an instance of `cls`) in one calling context."""

    def __init__(
        self, analysis: Analysis, fn: ir.Function, cls: str | None, depth: int, prefix: str = ""
    ) -> None:
        self.a = analysis
        self.refs = analysis.refs
        self.fn = fn
        self.cls = cls
        self.depth = depth
        self.prefix = prefix
        self.module: Module = analysis.modules.by_id[fn.module]
        self.module_ref = analysis.refs.static("module", fn.module, frozenset({Mod(fn.module)}))
        self.returns: list[tuple[Val, State]] = []
        self.raised: State | None = None
        self.loops: list[LoopFrame] = []
        self.active: list[Active] = []  # inlined generators share one list
        self.base = 0  # where in it the loops of this frame begin
        self.tries: list[TryFrame] = []
        self.emitters: list[Emitter] = []
        self.positions: tuple[Pos, ...] = ()
        self.updates: dict[tuple[Ref, Mark, str], None] = {}
        self.reads: dict[object, Read] = {}
        self.consumer: Consumer | None = None
        self.parent_frame: Frame | None = None
        self.weak = False
        self.resumed: Ref | None = None  # the generator object whose body this is
        self.held = 0
        self.guessing = False  # the class of the receiver is one candidate of several
        self.walking = False  # a loop takes its element: no other position is meant
        self.alternatives = False  # the receiver of the call under way may be several objects
        self.looking_up: ir.At = ir.NOWHERE  # the element access under way
        self.value_at: ir.At | None = None  # the value of the assignment under way
        self.unresolved = False
        self.frame_ref: Ref | None = None
        if fn.cells or fn.uses_cells:
            self.frame_ref = self.refs.alloc(("frame", fn.key), (), NOTHING)

    def where(self, at: ir.At) -> Where:
        return self.a.where(self.fn.module, at)

    def outer(self) -> Frame:
        """The frame that collects updates and reads: inlined generators share one."""
        frame = self
        while frame.parent_frame is not None:
            frame = frame.parent_frame
        return frame

    @overload
    def union(self, a: State | None, b: State) -> State: ...
    @overload
    def union(self, a: State, b: State | None) -> State: ...
    @overload
    def union(self, a: State | None, b: State | None) -> State | None: ...
    def union(self, a: State | None, b: State | None) -> State | None:
        """Return the union of two states; None for the state of what is not reached."""
        if a is None or b is None:
            return a if b is None else b
        from aliaslint.flow.containers import split_like

        return split_like(self, a, b).join(split_like(self, b, a), self.refs, self.a.init_type)

    # --- types

    def type_of(self, st: State, ref: Ref) -> Type:
        return known_atoms(st.narrowed.get(ref, ref.type))

    def val_type(self, st: State, val: Val) -> Type:
        result = NOTHING
        for link in val:
            result |= self.type_of(st, link.ref)
        return result

    def fresh(self, at: object, type_: Type) -> Val:
        """Return a new value made here and now, in the current iteration."""
        return single(self.refs.alloc((self.fn.key, at), self.positions[-2:], type_), FRESH_PROV)

    def plain(self, type_: Type = SCALAR) -> Val:
        """Return a value that holds no handle: a number, a text, None."""
        return single(self.refs.const("?", type_), FRESH_PROV)

    # --- variables

    def variable(self, name: str) -> str:
        return self.prefix + name if self.prefix else name

    def load_name(self, st: State, expr: ir.Name) -> Val:
        match expr.scope:
            case "local":
                if self.frame_ref is not None and expr.name in self.fn.cells:
                    return self.load_location(st, self.frame_ref, expr.name)
                return st.env.get(self.variable(expr.name), EMPTY)
            case "cell":
                result = EMPTY
                for ref in self.frames_up(st, expr.depth):
                    result = join(result, self.load_location(st, ref, expr.name))
                return result
            case "global":
                return self.load_global(st, self.module, expr.name)
            case "class":
                return self.class_val(expr.name)
            case "module":
                return self.symbol_val(st, self.a.modules.module_symbol(self.module, expr.name))
            case _:
                source, _, attr = expr.name.partition(":")
                return self.symbol_val(st, self.a.modules.imported(self.module, source, attr))

    def frames_up(self, st: State, depth: int) -> list[Ref]:
        """Return the frame objects `depth` functions outwards."""
        current = [link.ref for link in st.env.get(self.variable("<up>"), EMPTY)]
        for _ in range(depth - 1):
            above: list[Ref] = []
            for ref in current:
                above.extend(link.ref for link in st.peek(ref, "<up>") or EMPTY)
            current = above
        return current

    def load_global(self, st: State, module: Module, name: str) -> Val:
        mine = st.peek(self.module_ref, name) if module is self.module else None
        if mine is not None:
            return mine
        symbol = self.a.modules.resolve(module, name)
        return self.symbol_val(st, symbol) if symbol is not None else self.plain(UNKNOWN)

    def symbol_val(self, st: State, symbol: object) -> Val:
        match symbol:
            case FuncOf(key=key):
                return single(self.refs.static("func", key, frozenset({symbol})), STATIC_PROV)
            case ClassOf(key=key):
                return self.class_val(key)
            case Ext(dotted=dotted):
                return single(self.refs.static("ext", dotted, frozenset({symbol})), STATIC_PROV)
            case Mod(key=key):
                return single(self.refs.static("module", key, frozenset({symbol})), STATIC_PROV)
            case GlobalVar(module=module_id, name=name):
                ref = self.refs.static("module", module_id, frozenset({Mod(module_id)}))
                known = st.peek(ref, name)
                if known is not None:
                    return known
                type_ = self.a.kinds.global_variable(module_id, name)
                if is_plain(type_):
                    return self.plain(type_)
                names = self.a.kinds.names_of_variable(module_id, name)
                held = self.refs.init(ref, names[0], type_)
                for other in names:
                    val: Val = {Link(held, Prov("static", token=(ref, other))): FRESH}
                    if st.peek(ref, other) is None:
                        st.put(ref, other, val)
                return st.peek(ref, name) or EMPTY
            case _:
                return self.plain(UNKNOWN)

    def class_val(self, key: str) -> Val:
        return single(self.refs.static("class", key, frozenset({ClassOf(key)})), STATIC_PROV)

    def store_name(self, st: State, target: ir.ToName, val: Val) -> None:
        match target.scope:
            case "local":
                if self.frame_ref is not None and target.name in self.fn.cells:
                    self.store_location(st, self.frame_ref, target.name, val)
                    return
                name = self.variable(target.name)
                st.bind(name, join(st.env.get(name, EMPTY), val) if self.weak else val)
            case "cell":
                for ref in self.frames_up(st, target.depth):
                    self.store_location(st, ref, target.name, val)
            case "global":
                self.store_location(st, self.module_ref, target.name, val)
            case _:
                pass

    # --- locations

    def load_location(self, st: State, ref: Ref, key: Key) -> Val:
        """Return the binding at (ref, key); an untouched entry location is made explicit."""
        known = st.peek(ref, key)
        if known is not None:
            return known
        if ref.kind in {"alloc", "const", "func", "ext"}:
            return EMPTY
        val = initial(ref, key, self.refs, self.a.init_type)
        st.put(ref, key, val)
        return val

    def store_location(self, st: State, ref: Ref, key: Key, val: Val, weak: bool = False) -> None:
        many = ref.many or (isinstance(key, Pos) and key.kind in {"*", "old", "?"})
        if weak or many:
            have = (
                self.load_location(st, ref, key) if not isinstance(key, Pos) else st.peek(ref, key)
            )
            val = join(have or EMPTY, val)
        st.put(ref, key, val)

    # --- reads and updates

    def read(self, st: State, val: Val, at: ir.At) -> None:
        """Record a use of the value: a fault for what is stale, a note for entry bindings."""
        for stale in val.values():
            if stale:
                self.note_read(stale, self.where(at), ())

    def note_read(self, stale: frozenset[Stale], where: Where, calls: tuple[Where, ...]) -> None:
        frame = self.outer()
        for entry in stale:
            if entry.victim.kind not in {"token", "initial"} and entry.mark is not ENTRY:
                self.a.fault(entry, where, calls, "read")
        pending = frozenset(e for e in stale if e.victim.kind in {"token", "initial"})
        if pending:
            frame.reads.setdefault((pending, where), Read(pending, where, calls))

    def update(
        self,
        st: State,
        val: Val,
        site: Site,
        spared: set[Binding],
        through: str = "",
    ) -> bool:
        """Apply an in-place update of every array that `val` may hold; True if there is one."""
        hit = False
        frame = self.outer()
        for link in val:
            ref = link.ref
            mark = Mark(site, (), link.prov, guessed=self.a.guessing > 0, collapsed=ref.many)
            if "array" not in self.type_of(st, ref):
                continue
            hit = True
            st.mark(ref, mark, lambda b: b in spared)
            self.mark_shared_summary(st, ref, mark, spared)
            if ref.kind in {"root", "init"} or ref.kind == "static":
                frame.updates[(ref, mark, through)] = None
        return hit

    def mark_shared_summary(self, st: State, ref: Ref, mark: Mark, spared: set[Binding]) -> None:
        """A location that stands for many, all holding one handle: the others see the update."""
        if ref.many:
            return
        for owner, key in spared:
            if not isinstance(owner, Ref) or not owner.many or depends_on(ref, owner):
                continue
            if ref.kind == "alloc" and owner.kind in {"root", "init"}:
                continue  # made in this activation, for this one owner
            st.mark(ref, mark, lambda b, o=owner, k=key: b != (o, k))  # type: ignore[misc]

    def note_site(self, st: State, site: Site, owners: Iterable[Ref]) -> None:
        """Remember that `site` updates an array, and whether its owner had escaped."""
        info = self.a.sites.setdefault(site, SiteInfo())
        info.escaped = info.escaped or any(self.escaped(st, ref) for ref in owners)

    def escaped(self, st: State, ref: Ref) -> bool:
        """True unless the object was made in this very function and is held by locals only."""
        if ref.kind != "alloc":
            return not self.is_new_self(st, ref)
        payload = ref.payload
        if not (isinstance(payload, tuple) and payload[0] == self.fn.key):
            return True
        for owner, fields in st.heap.items():
            if owner is ref or (owner.kind == "alloc" and self.is_local_container(owner)):
                continue
            if any(link.ref is ref for val in fields.values() for link in val):
                return True
        return False

    def is_new_self(self, st: State, ref: Ref) -> bool:
        """True for `self` in a constructor, as long as nothing else holds it."""
        if self.fn.name not in {"__init__", "__new__", "__post_init__"} or not self.fn.params:
            return False
        own = st.env.get(self.fn.params[0], EMPTY)
        if not any(link.ref is ref for link in own):
            return False
        return not any(
            link.ref is ref
            for owner, fields in st.heap.items()
            for val in fields.values()
            for link in val
            if owner is not ref and owner is not self.frame_ref
        )

    def is_local_container(self, ref: Ref) -> bool:
        return isinstance(ref.payload, tuple) and ref.payload[0] == self.fn.key

    def describe(self, expr: ir.Expr) -> str:
        return describe(expr)


def depends_on(ref: Ref, owner: Ref) -> bool:
    """True if the handle's path goes through the owner: each concrete owner has its own."""
    current: Ref | None = ref
    while current is not None:
        if current is owner:
            return True
        current = current.base
    mine = {(p.kind, p.index, p.space) for p in positions_in(owner) if p.kind in {"*", "old"}}
    theirs = {(p.kind, p.index, p.space) for p in positions_in(ref)}
    return bool(mine) and mine <= theirs


def positions_in(ref: Ref) -> list[Pos]:
    found = list(ref.positions)
    current: Ref | None = ref
    while current is not None:
        if isinstance(current.key, Pos):
            found.append(current.key)
        found.extend(current.positions)
        current = current.base
    return found


def describe(expr: ir.Expr | None) -> str:
    """Return a short source-like text of an expression, for messages; "" where it has none."""
    match expr:
        case ir.Name(name=name):
            return name.partition("@")[0].rpartition(":")[2]
        case ir.Attr(obj=obj, name=name):
            return f"{describe(obj)}.{name}"
        case ir.Item(obj=ir.Const(value=None)):
            return ""  # a part of what is unpacked: the source has no expression for it
        case ir.Item(obj=obj, index=ir.Const(value=value)):
            return f"{describe(obj)}[{value!r}]"
        case ir.Item(obj=obj, index=ir.Name() as index):
            return f"{describe(obj)}[{describe(index)}]"
        case ir.Item(obj=obj):
            return f"{describe(obj)}[...]"
        case ir.Call(fn=fn):
            return f"{describe(fn)}(...)"
        case ir.Const(value=value):
            return repr(value)
        case ir.Walrus(value=value):
            return describe(value)
        case _:
            return "the value"


def bind(val: Val) -> Val:
    """Mark captures as bound to a name: from here on they keep their place."""
    if not any(link.prov.kind == "capture" and not link.prov.bound for link in val):
        return val
    new: Val = {}
    for link, stale in val.items():
        prov = link.prov
        if prov.kind == "capture" and not prov.bound:
            prov = replace(prov, bound=True)
        new[Link(link.ref, prov)] = stale
    return new


def alias(val: Val, where: Where, text: str) -> Val:
    """A second name for what a plain name holds: remember where it was made."""
    hop = Hop("alias", where, text)
    new: Val = {}
    for link, stale in val.items():
        prov = link.prov
        if prov.kind in {"fresh", "param", "token"} and not is_plain(link.ref.type):
            prov = extend(prov, hop)
        moved = Link(link.ref, prov)
        new[moved] = new.get(moved, FRESH) | stale
    return new


__all__ = [
    "ANY",
    "FRESH_PROV",
    "STATIC_PROV",
    "Emitter",
    "Frame",
    "Inst",
    "LoopFrame",
    "TryFrame",
    "alias",
    "bind",
    "describe",
    "is_object",
]
