"""What a condition has ruled out about an object of unknown class, and what that leaves.

After `if isinstance(cache, Batched): return` the cache is of another class: where none of those
that are left has an array under a name, what is taken from there is no live array.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aliaslint.flow.protocol import candidates
from aliaslint.flow.state import State, Trait
from aliaslint.flow.values import Ref
from aliaslint.program.classes import ClassInfo
from aliaslint.program.types import Inst, is_plain

if TYPE_CHECKING:
    from aliaslint.flow.context import Analysis
    from aliaslint.flow.frame import Frame


def exclude(st: State, ref: Ref, traits: frozenset[Trait]) -> None:
    st.excluded[ref] = st.excluded.get(ref, frozenset()) | traits


def is_excluded(analysis: Analysis, st: State, ref: Ref, class_key: str) -> bool:
    """True if the object is known not to be of the class."""
    traits = st.excluded.get(ref)
    info = analysis.classes.get(class_key) if traits else None
    return info is not None and any(shows(analysis, info, trait) for trait in traits or ())


def shows(analysis: Analysis, info: ClassInfo, trait: Trait) -> bool:
    kind, name = trait
    if kind == "class":
        return any(ancestor.key == name for ancestor in info.mro)
    return has(analysis, info, name) == (kind == "has")


def has(analysis: Analysis, info: ClassInfo, name: str) -> bool:
    return info.find(name) is not None or bool(analysis.kinds.attribute(info.key, name))


def is_ruled_out(frame: Frame, st: State, ref: Ref, name: str) -> bool:
    """True if an object turned out to be of a class with a number under the name; or if some
    class of the cache protocol has an array there, and none that is left has."""
    analysis = frame.a
    known = st.narrowed.get(ref)
    if known is not None and "unknown" in ref.type:
        kinds = [analysis.kinds.attribute(a.key, name) for a in known if isinstance(a, Inst)]
        return len(kinds) == len(known) and all(kind and is_plain(kind) for kind in kinds)
    if ref not in st.excluded or "unknown" not in ref.type:
        return False
    keys = {
        key: is_excluded(analysis, st, ref, key)
        for method in analysis.protocol
        for key, _ in candidates(analysis, frame.module, method)
    }
    arrays = {out for key, out in keys.items() if may_be_array(analysis, key, name)}
    return arrays == {True}


def may_be_array(analysis: Analysis, class_key: str, name: str) -> bool:
    kind = analysis.kinds.attribute(class_key, name)
    return "array" in kind or "unknown" in kind


__all__ = ["exclude", "is_excluded", "is_ruled_out"]
