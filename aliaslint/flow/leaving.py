"""What a current element is called once its loop is left from the inside: by `return`, by an
exception, or by whoever takes one value of a generator.

A position "cur" means something in its loop only. Outside, the element is one of unknown index,
but one and the same; what is known of it by a summary goes back into the summary.
"""

from __future__ import annotations

from dataclasses import dataclass

from aliaslint.flow.containers import Moves, spaces_of, summary_of
from aliaslint.flow.frame import Frame
from aliaslint.flow.state import ENTRY_KINDS, State
from aliaslint.flow.values import EMPTY, Mark, Pos, Ref, Val

HELD = "<left>"  # the variable that keeps a value while the state around it is renamed


@dataclass(frozen=True, slots=True)
class Names:
    """How the positions of one loop are called outside it."""

    key: object
    home: Ref
    one: Pos  # the element that the loop was left at
    stars: frozenset[Ref]  # entry containers with a summary of their elements
    spaces: dict[Ref, Ref]

    def move(self, owner: Ref | None, p: Pos) -> Pos:
        if p.kind not in {"cur", "old"} or p.index != self.key:
            return p
        if p.kind == "cur" and (
            owner is None or (owner.kind in ENTRY_KINDS and owner not in self.stars)
        ):
            return self.one
        return summary_of(owner, self.spaces, self.home)


def leave(frame: Frame, st: State, start: int, val: Val = EMPTY, within: Pos | None = None) -> Val:
    """Rename in `st` and `val` what the loops from the `start`th active one on call current;
    `within` is the position in the loop that is not left, if there is one."""
    for loop in reversed(frame.active[start:]):
        st.env[HELD] = val
        one = Pos("v", ("left", loop.key, within))
        names = Names(loop.key, loop.home, one, with_summary(st), spaces_of(st))
        moves = Moves(frame.refs, names.move)
        st.rename(moves.ref, moves.key)
        val = st.env.pop(HELD)
    return val


def escape(frame: Frame, st: State, val: Val = EMPTY) -> Val:
    """Leave every loop that the function is in."""
    return leave(frame, st, frame.base, val)


def throw(frame: Frame, st: State) -> None:
    """An exception is raised in state `st`: go to the innermost `try`, or out of the function."""
    if frame.tries:
        top = frame.tries[-1]
        leave(frame, st, top.active)
        top.state = frame.union(top.state, st)
    else:
        outer = frame.outer()
        leave(frame, st, outer.base)
        outer.raised = frame.union(outer.raised, st)


def with_summary(st: State) -> frozenset[Ref]:
    return frozenset(
        ref
        for ref, fields in st.heap.items()
        if ref.kind in ENTRY_KINDS and any(isinstance(k, Pos) and k.kind == "*" for k in fields)
    )


Updates = dict[tuple[Ref, Mark, str], None]


def settle_updates(frame: Frame, key: object, home: Ref, st: State) -> None:
    """An update of the current element is one of every element, to those outside the loop."""
    spaces = spaces_of(st)

    def move(owner: Ref | None, p: Pos) -> Pos:
        if p.kind in {"cur", "old"} and p.index == key:
            return summary_of(owner, spaces, home)
        return p

    moves = Moves(frame.refs, move)
    updates = frame.outer().updates
    for ref, mark, through in list(updates):
        moved = moves.ref(ref)
        if moved is not ref:
            updates.setdefault((moved, mark, through))


__all__ = ["escape", "leave", "settle_updates", "throw"]
