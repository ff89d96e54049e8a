"""The abstract state: variables, locations, and the operations on both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from aliaslint.flow.cases import Cases, joined, loosened, moved, without_variable
from aliaslint.flow.values import (
    EMPTY,
    ENTRY,
    FRESH,
    Key,
    Link,
    Mark,
    Pos,
    Prov,
    Ref,
    Refs,
    Stale,
    Val,
    join,
)
from aliaslint.program.types import Inst, Type, is_plain

# A binding is a variable ("var", name) or a location (reference, key).
Binding = tuple[object, object]
# What an object is known not to be or to have: ("class", key), ("has", name), ("lacks", name).
Trait = tuple[str, str]
InitType = Callable[[Ref, Key], Type]


class State:
    """Variables and locations at one program point. Inner dicts are never changed in place."""

    __slots__ = ("cases", "env", "excluded", "heap", "narrowed", "owned")

    def __init__(self) -> None:
        self.env: dict[str, Val] = {}
        self.heap: dict[Ref, dict[Key, Val]] = {}
        self.narrowed: dict[Ref, Type] = {}
        self.owned: frozenset[Ref] = frozenset()
        self.excluded: dict[Ref, frozenset[Trait]] = {}
        self.cases: Cases = {}  # never changed in place

    def copy(self) -> State:
        new = State.__new__(State)
        new.env = dict(self.env)
        new.heap = dict(self.heap)
        new.narrowed = dict(self.narrowed)
        new.owned = self.owned
        new.excluded = dict(self.excluded)
        new.cases = self.cases
        return new

    def same(self, other: State) -> bool:
        return self.env == other.env and self.heap == other.heap and self.cases == other.cases

    # --- variables

    def bind(self, name: str, val: Val) -> None:
        """Bind a variable anew: what tests have told of it holds no longer."""
        self.env[name] = val
        if self.cases:
            self.cases = without_variable(self.cases, name)

    def replace(self, name: str, val: Val) -> None:
        """Note what a variable that is not bound anew has turned out to hold."""
        self.env[name] = val
        if self.cases:
            self.cases = loosened(self.cases, name)

    # --- locations

    def peek(self, ref: Ref, key: Key) -> Val | None:
        fields = self.heap.get(ref)
        return None if fields is None else fields.get(key)

    def put(self, ref: Ref, key: Key, val: Val) -> None:
        self.heap[ref] = {**self.heap.get(ref, {}), key: val}

    def bindings(self) -> Iterator[tuple[Binding, Val]]:
        for name, val in self.env.items():
            yield ("var", name), val
        for ref, fields in self.heap.items():
            for key, val in fields.items():
                yield (ref, key), val

    def set(self, binding: Binding, val: Val) -> None:
        if binding[0] == "var":
            self.env[str(binding[1])] = val
        else:
            self.put(binding[0], binding[1], val)  # type: ignore[arg-type]

    def mark(self, ref: Ref, mark: Mark, spared: Callable[[Binding], bool]) -> None:
        """Add `mark` to every binding that may hold `ref`, but for the spared ones."""
        for name, val in list(self.env.items()):
            if holds(val, ref) and not spared(("var", name)):
                self.env[name] = marked(val, ref, mark)
        for owner, fields in list(self.heap.items()):
            for key, val in fields.items():
                if holds(val, ref) and not spared((owner, key)):
                    self.put(owner, key, marked(val, ref, mark))

    def mark_all(self, places: Iterable[tuple[Binding, Ref]], mark: Mark) -> list[Ref]:
        """Add `mark` to every other binding that may hold what a place holds, for all of the
        places in one walk. Return what they hold."""
        held: dict[Ref, Binding | None] = {}  # None for what several of the places hold
        for place, ref in places:
            held[ref] = place if held.get(ref, place) == place else None
        for binding, val in list(self.bindings()):
            hit = [k for k in val if k.ref in held and held[k.ref] != binding]
            if hit:
                added = {link: val[link] | {Stale(link.prov, mark)} for link in hit}
                self.set(binding, {**val, **added})
        return list(held)

    def become(self, other: State) -> None:
        """Hold what `other` holds, for those who have this state at hand."""
        self.env, self.heap = other.env, other.heap
        self.owned, self.narrowed = other.owned, other.narrowed
        self.excluded, self.cases = other.excluded, other.cases

    # --- joining

    def join(self, other: State | None, refs: Refs, init_type: InitType) -> State:
        """Return the union of two states; an entry location that one side has not touched
        still holds there what it held on entry."""
        if other is None or other is self:
            return self
        new = State.__new__(State)
        new.env = dict(self.env)
        for name, val in other.env.items():
            have = new.env.get(name)
            new.env[name] = val if have is None else join(have, val)
        new.cases = {}
        if self.cases and other.cases:
            new.cases = joined(self.env, self.cases, other.env, other.cases, new.env)
        new.heap = dict(self.heap)
        for ref, fields in other.heap.items():
            mine = new.heap.get(ref)
            if mine is fields:
                continue
            new.heap[ref] = join_fields(ref, mine or {}, fields, refs, init_type)
        for ref, fields in self.heap.items():
            if ref not in other.heap and ref.kind in ENTRY_KINDS:
                new.heap[ref] = join_fields(ref, fields, {}, refs, init_type)
        new.narrowed = {r: t for r, t in self.narrowed.items() if other.narrowed.get(r) == t}
        new.owned = self.owned | other.owned
        new.excluded = {r: t & other.excluded.get(r, frozenset()) for r, t in self.excluded.items()}
        return new

    # --- renaming positions

    def rename(self, rename: Callable[[Ref], Ref], rekey: Callable[[Ref, Key], Key]) -> None:
        """Replace every reference and key; locations that fall together are joined."""
        self.env = {name: rename_val(val, rename) for name, val in self.env.items()}
        heap: dict[Ref, dict[Key, Val]] = {}
        for ref, fields in self.heap.items():
            new_ref = rename(ref)
            have = heap.setdefault(new_ref, {})
            for key, val in fields.items():
                new_key = rekey(ref, key)
                new_val = rename_val(val, rename)
                have[new_key] = join(have[new_key], new_val) if new_key in have else new_val
        self.heap = heap
        self.narrowed = {rename(r): t for r, t in self.narrowed.items()}
        self.excluded = {rename(r): t for r, t in self.excluded.items()}
        self.owned = frozenset(rename(r) for r in self.owned)
        if self.cases:
            self.cases = moved(self.cases, lambda links: (moved_link(k, rename) for k in links))


ENTRY_KINDS = frozenset({"root", "init"})


def join_fields(
    ref: Ref, mine: dict[Key, Val], theirs: dict[Key, Val], refs: Refs, init_type: InitType
) -> dict[Key, Val]:
    fields = dict(mine)
    for key, val in theirs.items():
        if key in mine:
            fields[key] = join(mine[key], val)
        elif ref.kind in ENTRY_KINDS and not is_summary_key(key):
            fields[key] = join(initial(ref, key, refs, init_type), val)
        else:
            fields[key] = val
    if ref.kind in ENTRY_KINDS:
        for key, val in mine.items():
            if key not in theirs and not is_summary_key(key):
                fields[key] = join(val, initial(ref, key, refs, init_type))
    return fields


def is_summary_key(key: Key) -> bool:
    return (isinstance(key, Pos) and key.kind in {"*", "old", "?", "cur"}) or key == "#space"


def initial(ref: Ref, key: Key, refs: Refs, init_type: InitType) -> Val:
    """Return what the entry location (ref, key) held when the function was entered."""
    inner = refs.init(ref, key, init_type(ref, key))
    owner = is_object(ref) and isinstance(key, str)
    return as_on_entry(inner, initial_prov(ref, key, owner))


def as_on_entry(inner: Ref, prov: Prov) -> Val:
    """A binding that is as stale as it was when the function was entered."""
    if is_plain(inner.type):
        return {Link(inner, prov): FRESH}
    return {Link(inner, prov): frozenset({Stale(prov, ENTRY)})}


def initial_prov(ref: Ref, key: Key, owner: bool) -> Prov:
    return Prov("initial", text=str(key), token=(ref, key), owner=owner, in_location=True)


def is_object(ref: Ref) -> bool:
    """True for references that are instances or of unknown kind, not containers or frames."""
    if ref.kind in {"module", "ext"} or (ref.kind == "alloc" and not ref.type):
        return False
    return any(isinstance(atom, Inst) or atom == "unknown" for atom in ref.type)


def holds(val: Val, ref: Ref) -> bool:
    # A list: it is made faster than a generator, and this is asked of every binding.
    return ref in [link[0] for link in val]


def marked(val: Val, ref: Ref, mark: Mark) -> Val:
    """Return `val` with `mark` on every link that holds `ref`."""
    new = dict(val)
    for link, stale in val.items():
        if link.ref is ref:
            new[link] = stale | {Stale(link.prov, mark)}
    return new


def rename_val(val: Val, rename: Callable[[Ref], Ref]) -> Val:
    for link in val:
        if rename(link[0]) is not link[0]:
            break
    else:
        return val
    new: Val = {}
    for link, stale in val.items():
        renamed = moved_link(link, rename)
        new[renamed] = new.get(renamed, FRESH) | stale
    return new


def moved_link(link: Link, rename: Callable[[Ref], Ref]) -> Link:
    return Link(rename(link.ref), link.prov)


def refs_of(val: Val) -> list[Ref]:
    return [link.ref for link in val] if val else []


def without(val: Val, drop: Callable[[Ref], bool]) -> Val:
    kept = {link: stale for link, stale in val.items() if not drop(link.ref)}
    return kept if len(kept) != len(val) else val


__all__ = ["EMPTY", "Binding", "State", "initial", "is_object", "marked", "refs_of", "without"]
