"""Abstract values: references to objects and handles, and the bindings that hold them.

A reference names one object or handle (or many, where its path goes through a summary
position). A binding maps each reference that it may hold, together with where the live handle
was bound, to what is stale about it. All classes here are interned or immutable.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import NamedTuple, Union

from aliaslint.lower.ir import NOWHERE, At
from aliaslint.program.types import Inst, Type

# --- positions in containers and loops


class Pos(NamedTuple):
    """An element position. `kind` is one of

    "i"    a constant index (`index` is the number, or the key of a dict)
    "*"    any position of the index space `space`, in step with containers of that space
    "cur"  the position of the current iteration of loop `index`
    "old"  the positions that loop `index` has visited
    "?"    any position, in step with nothing
    "v"    one position of unknown index, named by where it was looked up (`index`)
    """

    kind: str
    index: object = None  # type: ignore[assignment]
    space: Ref | None = None


ANY = Pos("?")
SUMMARY = frozenset({"*", "old", "?"})
Key = Union[str, Pos]  # noqa: UP007 - a forward reference inside


class Ref:
    """An interned reference; compare with `is`. Made only by `Refs`."""

    __slots__ = ("base", "depth", "id", "key", "kind", "many", "payload", "positions", "type")

    def __init__(
        self,
        kind: str,
        base: Ref | None,
        key: Key | None,
        payload: object,
        positions: tuple[Pos, ...],
        type_: Type,
        id_: int,
    ) -> None:
        self.kind = kind
        self.base = base
        self.key = key
        self.payload = payload
        self.positions = positions
        self.type = type_
        self.id = id_
        elements = isinstance(key, Pos)
        self.depth: int = 0 if base is None else base.depth + (4 if elements else 1)
        self.many: bool = (
            (base is not None and base.many)
            or (isinstance(key, Pos) and key.kind in SUMMARY)
            or any(p.kind in SUMMARY for p in positions)
            or (kind in {"alloc", "root"} and isinstance(payload, tuple) and payload[-1] == "many")
        )

    @property
    def parts(self) -> tuple[object, ...]:
        """What `Refs.get` makes the same reference of."""
        return self.kind, self.base, self.key, self.payload, self.positions, self.type

    def __repr__(self) -> str:
        if self.kind == "init":
            return f"{self.base!r}.{show_key(self.key)}"
        at = "".join(f"@{show_key(p)}" for p in self.positions)
        return f"<{self.kind} {self.payload}{at}>"


def show_key(key: Key | None) -> str:
    if isinstance(key, Pos):
        return f"[{key.kind}{'' if key.index is None else key.index}]"
    return str(key)


class Refs:
    """The table of interned references of one analysis."""

    def __init__(self) -> None:
        self._table: dict[object, Ref] = {}

    def get(
        self,
        kind: str,
        base: Ref | None,
        key: Key | None,
        payload: object,
        positions: tuple[Pos, ...],
        type_: Type,
    ) -> Ref:
        """The reference that has these parts, which may come from another table."""
        token = (kind, base, key, payload, positions, type_)
        ref = self._table.get(token)
        if ref is None:
            ref = Ref(kind, base, key, payload, positions, type_, len(self._table))
            self._table[token] = ref
        return ref

    def init(self, base: Ref, key: Key, type_: Type) -> Ref:
        """What the location (base, key) held when the analysed function was entered.

        Paths are bounded: deep inside a recursive structure one reference stands for all.
        """
        if base.depth >= MAX_PATH and not (isinstance(key, str) and key[:3] in {"()#", "as:"}):
            return self.root(("deep", "many"), type_)
        return self.get("init", base, key, None, (), type_)

    def alloc(self, site: object, positions: tuple[Pos, ...], type_: Type) -> Ref:
        """An object or array made at `site`, in the iteration that `positions` name."""
        return self.get("alloc", None, None, site, positions, type_)

    def root(self, name: object, type_: Type, positions: tuple[Pos, ...] = ()) -> Ref:
        """A parameter, or what stands for an object of the caller in a callee: with positions,
        for the elements of a container that it is given."""
        return self.get("root", None, None, name, positions, type_)

    def at(self, ref: Ref, positions: tuple[Pos, ...]) -> Ref:
        """The same of another element or iteration."""
        return self.get(ref.kind, None, None, ref.payload, positions, ref.type)

    def const(self, value: object, type_: Type) -> Ref:
        return self.get("const", None, None, (type(value).__name__, value), (), type_)

    def static(self, kind: str, payload: object, type_: Type) -> Ref:
        """A class, function, module or outside name: one object in every context."""
        return self.get(kind, None, None, payload, (), type_)

    def pos(self, pos: Pos, type_: Type) -> Ref:
        """An integer that is the position of a loop."""
        return self.get("pos", None, pos, None, (), type_)


MAX_PATH = 9  # attribute steps count one, element steps four
STATIC_KINDS = frozenset({"class", "func", "module", "ext", "const", "method"})


# --- where things happened


class Where(NamedTuple):
    """A place in a source file: module id and raw `ast` position."""

    module: str
    at: At


class Hop(NamedTuple):
    """A step between capture and read: passing on, storing, handing over, or calling."""

    kind: str  # "alias", "arg", "store", "hand-over", "call"
    where: Where
    text: str


@dataclass(frozen=True, slots=True)
class Prov:
    """Where a live handle was first bound, and through what it went since.

    `kind` is "token" (an entry binding of the analysed function, `token` its number),
    "capture" (loaded from an owner's attribute), "param", "fresh", "initial" (an attribute as
    it was on entry) or "static" (a class attribute or default).
    """

    kind: str
    where: Where | None = None
    text: str = ""
    token: object = None
    owner: bool = False
    bound: bool = False
    hops: tuple[Hop, ...] = ()
    in_location: bool = False
    array: bool = False  # the attribute is an array in every class that is known to have it
    hash_: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Of the telling fields only, and once: this is hashed more than anything else.
        object.__setattr__(self, "hash_", hash((self.kind, self.where, self.token, self.hops)))

    def __hash__(self) -> int:
        return self.hash_

    def __reduce__(self) -> tuple[object, ...]:
        # The hash of a string is another one in another process.
        return Prov, tuple(getattr(self, entry.name) for entry in fields(self) if entry.init)


@dataclass(frozen=True, slots=True)
class Site:
    """One in-place update in the source.

    `via` is "attr" (`X.a op= v`), "attr-item" (`X.a[i] = v`), "name", "name-item", "element"
    (through a container) or "unresolved" (a call of the protocol that may update).
    """

    where: Where
    via: str
    text: str
    attr: str = ""
    function: str = ""
    op: str = ""
    collapsed: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """An update that hit a handle, with the calls that led to it, outermost first."""

    site: Site
    chain: tuple[Where, ...] = ()
    source: Prov | None = None  # how the updated binding came by the handle
    meant: bool = False  # through a parameter that the function is there to write
    guessed: bool = False  # through a receiver of unknown class, one candidate of several
    collapsed: bool = False  # of a summary that stands for many: may be another one's array

    def __hash__(self) -> int:
        return hash(self.site)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mark):
            return False
        return self.site == other.site and self.collapsed == other.collapsed


class Stale(NamedTuple):
    """The binding `victim` still held the handle when `mark` changed it.

    With the mark `ENTRY`: as stale as the entry binding `victim` was for the caller.
    """

    victim: Prov
    mark: Mark


ENTRY = Mark(Site(Where("", NOWHERE), "entry", ""))


def proven(stale: Stales) -> bool:
    """True if an update is known that made the binding stale."""
    return any(entry.mark is not ENTRY for entry in stale)


class Link(NamedTuple):
    """A reference as held by one binding, with where that binding got it."""

    ref: Ref
    prov: Prov


Stales = frozenset[Stale]
FRESH: Stales = frozenset()
Val = dict[Link, Stales]
EMPTY: Val = {}


def join(a: Val, b: Val) -> Val:
    """Return the union of two bindings; the first operand itself where nothing is added."""
    if a is b or not b:
        return a
    if not a:
        return b
    result = None
    for link, stale in b.items():
        have = a.get(link)
        if have is None:
            result = result if result is not None else dict(a)
            result[link] = stale
        elif not stale <= have:
            result = result if result is not None else dict(a)
            result[link] = have | stale
    if result is None:
        return a
    return result if len(result) <= MAX_LINKS else widen(result)


def widen(val: Val) -> Val:
    """Bound a binding that may hold very many things: stale handles are kept first, then what
    may be an array, then objects of known classes."""

    def rank(item: tuple[Link, Stales]) -> tuple[bool, bool, bool]:
        type_ = item[0].ref.type
        return not item[1], "array" not in type_, not any(isinstance(a, Inst) for a in type_)

    return dict(sorted(val.items(), key=rank)[:MAX_LINKS])


MAX_LINKS = 10


def single(ref: Ref, prov: Prov) -> Val:
    return {Link(ref, prov): FRESH}
