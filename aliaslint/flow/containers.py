"""Containers: elements by position, index spaces, and the focus and fold of loops.

Containers walked together share an index space, so that element `p` of one stays in step with
element `p` of the other. Focusing splits the current position off the summary "*"; folding
puts visited positions back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from aliaslint.flow.cases import moved
from aliaslint.flow.frame import FRESH_PROV, STATIC_PROV, Frame
from aliaslint.flow.state import State, initial, moved_link, rename_val
from aliaslint.flow.values import ANY, EMPTY, Key, Pos, Ref, Refs, Val, join, single
from aliaslint.program.types import NOTHING, SCALAR, Map


def space_of(st: State, ref: Ref) -> Ref:
    """Return the index space of a container: its own, or that of what it was made from."""
    known = st.peek(ref, "#space")
    if known:
        return next(iter(known)).ref
    return ref


def known_length(st: State, ref: Ref) -> int | None:
    """Return the number of elements where every one of them is known."""
    known = st.peek(ref, "#len")
    if known is None or len(known) != 1:
        return None
    payload = next(iter(known)).ref.payload
    value = payload[1] if isinstance(payload, tuple) else None
    return value if isinstance(value, int) else None


def set_length(frame: Frame, st: State, ref: Ref, length: int | None) -> None:
    value: object = length if length is not None else "?"
    st.put(ref, "#len", single(frame.refs.const(value, SCALAR), FRESH_PROV))


def known_keys(st: State, ref: Ref) -> list[Pos] | None:
    """Return the keys of a dict in their order, where each is a constant."""
    if ref.kind != "alloc" or ref.many or not any(isinstance(a, Map) for a in ref.type):
        return None
    keys = [key for key in st.heap.get(ref, {}) if isinstance(key, Pos)]
    return keys if all(key.kind == "i" for key in keys) else None


def value_at(frame: Frame, st: State, ref: Ref, pos: Pos) -> Val:
    """Return the value that a walk over a dict is at: in step with other walks over it, but for
    the values that have constant keys."""
    keys = known_keys(st, ref)
    if keys is not None and pos.kind == "i" and isinstance(pos.index, int):
        return element(frame, st, ref, keys[pos.index]) if pos.index < len(keys) else EMPTY
    if pos.kind != "cur" or keys is not None:
        return element(frame, st, ref, ANY)
    fields = st.heap.get(ref, {})
    return join(
        element(frame, st, ref, pos), join_elements(fields, lambda p: p.kind not in {"cur", "*"})
    )


def element(frame: Frame, st: State, ref: Ref, pos: Pos) -> Val:
    """Return the binding of the element at `pos` of the container `ref`."""
    fields = st.heap.get(ref, {})
    length = known_length(st, ref)
    if pos.kind == "i" and isinstance(pos.index, int) and length is not None and pos.index < 0:
        pos = Pos("i", length + pos.index)
    if pos.kind == "?":
        return any_element(frame, st, ref)
    if pos.kind == "v" and not frame.walking:
        return any_element(frame, st, ref, pos)
    have = fields.get(pos)
    if have is None and pos.kind in {"i", "cur"}:
        have = focused_element(frame, st, ref, pos)
    undisclosed = may_hold_more(ref, fields)
    if have is None and undisclosed:
        have = initial(ref, pos, frame.refs, frame.a.init_type)
        st.put(ref, pos, have)
    loose = st.peek(ref, ANY)
    if have is None and pos.kind in {"cur", "*"}:
        have = join_elements(st.heap.get(ref, {}), lambda p: p.kind == "i")
    if pos.kind == "i" and ref.kind in {"root", "init"} and not frame.walking:
        # A position of unknown index may be this one too.
        loose = join(loose or EMPTY, join_elements(st.heap.get(ref, {}), lambda p: p.kind == "v"))
    if have is None and pos.kind == "i" and length is None and not undisclosed:
        have = join_elements(st.heap.get(ref, {}), lambda p: p.kind in {"*", "old", "cur"})
    return join(have or EMPTY, loose or EMPTY)


def element_keys(frame: Frame, st: State, ref: Ref, pos: Pos) -> list[Pos]:
    """Return the locations of `ref` that the element at `pos` may stand in."""
    element(frame, st, ref, pos)
    fields = st.heap.get(ref, {})
    length = known_length(st, ref)
    if pos.kind == "i" and isinstance(pos.index, int) and length is not None and pos.index < 0:
        pos = Pos("i", length + pos.index)
    loose = [ANY] if ANY in fields else []
    if pos.kind == "?":
        return [k for k in fields if isinstance(k, Pos)]
    if pos in fields:
        return [pos, *loose]
    if pos.kind in {"cur", "*"}:
        return [k for k in fields if isinstance(k, Pos) and k.kind == "i"] + loose
    return [k for k in fields if isinstance(k, Pos) and k.kind in {"*", "old", "cur"}] + loose


def focused_element(frame: Frame, st: State, ref: Ref, pos: Pos) -> Val | None:
    """Split the element at `pos` off the summary of its space, if there is a summary."""
    space = space_of(st, ref)
    star = Pos("*", None, space)
    if st.peek(ref, star) is None:
        return None
    focus(frame, st, [space], pos)
    return st.peek(ref, pos)


def split_like(frame: Frame, st: State, other: State) -> State:
    """Return `st` with those elements of constant index split off that `other` has split off.

    A union would else take what `other` knows of such an element for all there is to know.
    """
    if st is other:
        return st
    new: State | None = None
    for ref, fields in other.heap.items():
        mine = st.heap.get(ref)
        if ref.kind != "alloc" or mine is None or mine is fields:
            continue
        for key in fields:
            if isinstance(key, Pos) and key.kind == "i" and key not in mine:
                new = new or st.copy()
                if new.peek(ref, key) is None:
                    focused_element(frame, new, ref, key)
    return new or st


def any_element(frame: Frame, st: State, ref: Ref, known: Pos | None = None) -> Val:
    fields = st.heap.get(ref, {})
    result = join_elements(fields, lambda p: p.kind != "v")
    if may_hold_more(ref, fields):
        loop = frame.positions[-1] if frame.positions else None
        one = known or Pos("v", (frame.fn.key, frame.looking_up, loop))
        have = st.peek(ref, one)
        if have is None:
            have = initial(ref, one, frame.refs, frame.a.init_type)
            st.put(ref, one, have)
        result = join(have, result)
    return result


def may_hold_more(ref: Ref, fields: dict[Key, Val]) -> bool:
    """True for a container of a caller that may have elements which nobody has looked at yet.

    A display has none, where each element stands at a constant position. A length alone does not
    tell: one is noted for what a parameter holds as well.
    """
    if ref.kind not in {"root", "init"}:
        return False
    kinds = [key.kind for key in fields if isinstance(key, Pos)] if "#len" in fields else []
    return not kinds or any(kind != "i" for kind in kinds)


def join_elements(fields: dict[Key, Val], wanted: Callable[[Pos], bool]) -> Val:
    result = EMPTY
    for key, val in fields.items():
        if isinstance(key, Pos) and wanted(key):
            result = join(result, val)
    return result


def store_element(frame: Frame, st: State, ref: Ref, pos: Pos, val: Val, weak: bool) -> None:
    """Bind the element at `pos`; a position that may be any is only added to."""
    length = known_length(st, ref)
    if pos.kind == "i" and isinstance(pos.index, int) and pos.index < 0 and length is not None:
        pos = Pos("i", length + pos.index)
    if pos.kind in {"?", "*", "old"} or ref.many or weak:
        key = ANY if pos.kind == "?" else pos
        st.put(ref, key, join(st.peek(ref, key) or EMPTY, val))
        return
    if pos.kind in {"i", "cur"} and st.peek(ref, pos) is None:
        focused_element(frame, st, ref, pos)
    st.put(ref, pos, val)


def append(frame: Frame, st: State, ref: Ref, val: Val) -> None:
    """`list.append`: exact while the length is known, in step inside an aligned loop."""
    loop = frame.loops[-1] if frame.loops else None
    if loop is not None and loop.generic and ref in loop.aligned:
        st.put(ref, Pos("cur", loop.key), val)
        return
    length = known_length(st, ref)
    if length is not None and not ref.many and not (loop is not None and loop.generic):
        st.put(ref, Pos("i", length), val)
        set_length(frame, st, ref, length + 1)
        return
    if length is not None:
        set_length(frame, st, ref, None)
    st.put(ref, ANY, join(st.peek(ref, ANY) or EMPTY, val))


# --- substitution of positions


class Moves:
    """A renaming of positions over references and keys, memoised for one state."""

    def __init__(self, refs: Refs, pos: Callable[[Ref | None, Pos], Pos]) -> None:
        self.refs = refs
        self.pos = pos
        self.memo: dict[Ref, Ref] = {}

    def ref(self, ref: Ref) -> Ref:
        found = self.memo.get(ref)
        if found is None:
            found = self.memo[ref] = self._move(ref)
        return found

    def _move(self, ref: Ref) -> Ref:
        if ref.base is not None:
            base = self.ref(ref.base)
            key = ref.key
            assert key is not None
            new_key = self.key(ref.base, key)
            if base is ref.base and new_key == key:
                return ref
            return self.refs.init(base, new_key, ref.type)
        if ref.kind == "pos":
            assert isinstance(ref.key, Pos)
            moved = self.pos(None, ref.key)
            return ref if moved == ref.key else self.refs.pos(moved, ref.type)
        if not ref.positions:
            return ref
        positions = tuple(self.pos(None, p) for p in ref.positions)
        if positions == ref.positions:
            return ref
        return self.refs.at(ref, positions)

    def key(self, owner: Ref, key: Key) -> Key:
        return self.pos(owner, key) if isinstance(key, Pos) else key


def focus(frame: Frame, st: State, spaces: Iterable[Ref], pos: Pos) -> None:
    """Split position `pos` off the summaries "*" of `spaces`, in every container in step."""
    wanted = set(spaces)
    frame.a.spend(len(st.heap) // 8)

    def move(owner: Ref | None, p: Pos) -> Pos:
        return pos if p.kind == "*" and p.space in wanted else p

    moves = Moves(frame.refs, move)
    for ref, fields in list(st.heap.items()):
        new_ref = moves.ref(ref)
        for key, val in list(fields.items()):
            new_key = moves.key(ref, key)
            new_val = rename_val(val, moves.ref)
            if new_ref is ref and new_key == key:
                if new_val is not val:
                    st.put(ref, key, join(val, new_val))
            elif st.peek(new_ref, new_key) is None:
                st.put(new_ref, new_key, new_val)
    for name, val in list(st.env.items()):
        new_val = rename_val(val, moves.ref)
        if new_val is not val:
            st.env[name] = join(val, new_val)
    if st.cases:
        st.cases = moved(
            st.cases, lambda links: (new for k in links for new in (k, moved_link(k, moves.ref)))
        )
    for ref, type_ in list(st.narrowed.items()):
        st.narrowed.setdefault(moves.ref(ref), type_)
    for ref, traits in list(st.excluded.items()):
        st.excluded.setdefault(moves.ref(ref), traits)


def fold(frame: Frame, st: State, loop: object) -> None:
    """At the back edge: what was current has been visited."""
    forget_unreachable(st, loop)
    old = Pos("old", loop)

    def move(owner: Ref | None, p: Pos) -> Pos:
        return old if (p.kind == "cur" and p.index == loop) or looked_up_in(p, loop) else p

    moves = Moves(frame.refs, move)
    st.rename(moves.ref, moves.key)


def forget_unreachable(st: State, loop: object) -> None:
    """Drop objects made in the loop that nothing holds any more."""
    inner = {
        ref
        for ref in st.heap
        if ref.kind == "alloc" and any(p.index == loop for p in ref.positions)
    }
    if not inner:
        return
    stack = [link.ref for val in st.env.values() for link in val]
    for ref, fields in st.heap.items():
        if ref not in inner:
            stack.extend(link.ref for val in fields.values() for link in val)
    seen: set[Ref] = set()
    while stack:
        current: Ref | None = stack.pop()
        while current is not None and current not in seen:
            seen.add(current)
            if current in inner:
                for val in st.heap[current].values():
                    stack.extend(link.ref for link in val)
            current = current.base
    for ref in inner - seen:
        del st.heap[ref]


def looked_up_in(pos: Pos, loop: object) -> bool:
    """True for a position of unknown index that belongs to an iteration of the loop."""
    if pos.kind != "v" or not isinstance(pos.index, tuple):
        return False
    current = pos.index[2]
    return isinstance(current, Pos) and current.kind == "cur" and current.index == loop


def spaces_of(st: State) -> dict[Ref, Ref]:
    return {ref: space_of(st, ref) for ref in st.heap}


def summary_of(owner: Ref | None, spaces: dict[Ref, Ref], home: Ref) -> Pos:
    """Return the summary that a position of a loop over `home` goes back into: that of the
    container's own space, if it is a container's."""
    return Pos("*", None, spaces.get(owner, owner) if owner is not None else home)


def unfocus(frame: Frame, st: State, loop: object, space: Ref) -> None:
    """After the loop: visited positions are positions like any other of their space."""
    spaces = spaces_of(st)

    def move(owner: Ref | None, p: Pos) -> Pos:
        if (p.kind in {"cur", "old"} and p.index == loop) or looked_up_in(p, loop):
            return summary_of(owner, spaces, space)
        return p

    moves = Moves(frame.refs, move)
    st.rename(moves.ref, moves.key)


def spaces_in(st: State, refs: Iterable[Ref]) -> list[Ref]:
    return list(dict.fromkeys(space_of(st, ref) for ref in refs))


def looked_up_positions(st: State, spaces: list[Ref]) -> list[Pos]:
    """Return the positions of unknown index that some container of these spaces has."""
    wanted = set(spaces)
    found: dict[Pos, None] = {}
    for ref, fields in st.heap.items():
        if space_of(st, ref) in wanted and not any(isinstance(a, Map) for a in ref.type):
            for key in fields:
                if isinstance(key, Pos) and key.kind == "v":
                    found[key] = None
    return list(found)


def constant_positions(st: State, spaces: list[Ref]) -> set[int]:
    """Return the constant positions that some container of these spaces has split off."""
    wanted = set(spaces)
    found: set[int] = set()
    for ref, fields in st.heap.items():
        if space_of(st, ref) in wanted and not any(isinstance(a, Map) for a in ref.type):
            for key in fields:
                if isinstance(key, Pos) and key.kind == "i" and isinstance(key.index, int):
                    found.add(key.index)
    return found


__all__ = ["NOTHING", "STATIC_PROV", "append", "element", "focus", "fold", "unfocus"]
