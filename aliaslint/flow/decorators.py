"""What the name of a decorated function means, if a decorator of the program replaces it.

The decorators are called anew at each call of the function: what a wrapper keeps from one call to
the next is not seen.
"""

from __future__ import annotations

from aliaslint.flow.context import Analysis
from aliaslint.flow.expressions import evaluate
from aliaslint.flow.frame import STATIC_PROV, Frame
from aliaslint.flow.state import State
from aliaslint.flow.summaries import apply_call
from aliaslint.flow.values import Ref, Val, single
from aliaslint.lower import ir
from aliaslint.program.types import ClassOf, FuncOf, Inst, PartialOf
from aliaslint.program.wrappers import UNDECORATED, Decoration


def undecorated(frame: Frame, function: ir.Function, cls: str | None) -> Ref:
    """The function itself, as its innermost decorator is given it."""
    payload = (UNDECORATED, function.key, cls)
    return frame.refs.static("func", payload, frozenset({FuncOf(function.key)}))


def is_undecorated(ref: Ref) -> bool:
    return ref.kind == "func" and isinstance(ref.payload, tuple)


def undecorated_class(ref: Ref) -> str | None:
    assert isinstance(ref.payload, tuple)
    found: str | None = ref.payload[2]
    return found


def decorated_val(
    frame: Frame,
    st: State,
    function: ir.Function,
    cls: str | None,
    decoration: Decoration,
    expr: ir.Expr,
) -> Val:
    """Return what is called instead of the function; nothing if that could not be followed."""
    given = single(undecorated(frame, function, cls), STATIC_PROV)
    bound = {UNDECORATED: given}
    made = apply_call(frame, st, decoration.apply, None, bound, dict.fromkeys(bound), None, expr)
    again = FuncOf(function.key)  # its own name, given back by what decorates it
    callable_ = that_run(frame, st, made)
    return {k: s for k, s in callable_.items() if again not in k.ref.type or is_undecorated(k.ref)}


def replaced(frame: Frame, st: State, function: ir.Function, decorator: ir.Expr, val: Val) -> Val:
    """Apply one decorator to a nested function."""
    from aliaslint.flow.calls import Args, call_val

    decorations = frame.a.kinds.decorations
    if function.parent is None or not any(decorations.replacing(decorator, frame.fn, frame.cls)):
        return val  # functions of a module are replaced where they are called
    called = evaluate(frame, decorator, st)
    made = call_val(frame, st, called, Args([val], nodes=[None]), decorator)
    return that_run(frame, st, made) or val


def that_run(frame: Frame, st: State, val: Val) -> Val:
    """Return those of the values that are known functions, or may be called like one."""
    return {
        link: stale
        for link, stale in val.items()
        if any(
            isinstance(atom, (FuncOf, Inst, PartialOf, ClassOf))
            for atom in frame.type_of(st, link.ref)
        )
    }


def call_by_name(analysis: Analysis, function: ir.Function, cls: str | None) -> ir.Stmt | None:
    """Return what stands for the body of a decorated function where it is called by its name with
    its own parameters; None if its decorators keep it. Nothing else may call it that way."""
    if analysis.kinds.decorations.of(function) is None:
        return None
    at = function.at
    how = {"pos": "", "kw": None, "*": "*", "**": "**"}
    args = [
        ir.Arg(name if how[kind] is None else str(how[kind]), ir.Name(at, name, "local"))
        for name, kind in zip(function.params, function.kinds, strict=True)
    ]
    if function.class_key is None:
        return ir.Return(at, ir.Call(at, ir.Name(at, function.name, "global"), tuple(args)))
    info = analysis.classes.get(cls) if cls is not None else None
    method = info.find(function.name) if info is not None else None
    if cls is None or method is None or method.key != function.key:
        return None
    if method.role == "static":
        named = ir.Attr(at, ir.Name(at, cls, "class"), function.name)
        return ir.Return(at, ir.Call(at, named, tuple(args)))
    if not args:
        return None
    named = ir.Attr(at, args[0].value, function.name)
    if method.role == "property":
        return ir.Return(at, named)
    return ir.Return(at, ir.Call(at, named, tuple(args[1:])))
