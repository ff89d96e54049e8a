"""What a function that is interpreted on its own is given: objects known by their kinds alone."""

from __future__ import annotations

from aliaslint.flow.context import Analysis
from aliaslint.flow.frame import Frame
from aliaslint.flow.state import State
from aliaslint.flow.summaries import param_annotation, prepare_frame
from aliaslint.flow.values import FRESH, Link, Prov, Val
from aliaslint.lower import ir
from aliaslint.program.types import UNKNOWN, ClassOf, Map, Seq, Type, is_plain


def begin(
    analysis: Analysis, function: ir.Function, cls: str | None, depth: int = 0
) -> tuple[Frame, State]:
    """Return the frame and the state in which a function starts of whose callers nothing is
    known; `depth` is how many calls it counts as nested in."""
    frame = Frame(analysis, function, cls, depth)
    st = State()
    for name, kind in zip(function.params, function.kinds, strict=True):
        st.env[name] = parameter(analysis, function, cls, name, kind)
    prepare_frame(frame, st)
    return frame, st


def parameter(
    analysis: Analysis, function: ir.Function, cls: str | None, name: str, kind: str
) -> Val:
    type_ = parameter_type(analysis, function, cls, name, kind)
    if any(isinstance(a, ClassOf) for a in type_):
        key = next(a.key for a in type_ if isinstance(a, ClassOf))
        ref = analysis.refs.static("class", key, type_)
        return {Link(ref, Prov("static")): FRESH}
    ref = analysis.refs.root(("p", function.key, name), type_)
    prov = Prov("param", analysis.where(function.module, function.at), name, token=name)
    return {Link(ref, prov): FRESH}


def parameter_type(
    analysis: Analysis, function: ir.Function, cls: str | None, name: str, kind: str
) -> Type:
    if kind == "*":
        return frozenset({Seq("tuple", UNKNOWN)})
    if kind == "**":
        return frozenset({Map(UNKNOWN)})
    if cls is not None and function.class_key and name == function.params[0]:
        return analysis.kinds.parameter(function, name, cls)
    if name in analysis.kinds.array_evidence(function):
        return frozenset({"array"})
    if name in function.annotations:
        type_ = param_annotation(analysis, function, name) or UNKNOWN
        return UNKNOWN if is_plain(type_) else type_  # `offset: int` says little about a cache
    return UNKNOWN
