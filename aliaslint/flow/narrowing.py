"""What a condition tells about the values that it tests."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from aliaslint.flow.cases import Case, assume
from aliaslint.flow.exclusion import exclude
from aliaslint.flow.state import State, Trait
from aliaslint.flow.values import EMPTY, Link, Ref, Val
from aliaslint.lower import ir
from aliaslint.program import library
from aliaslint.program.types import ARRAY, NOTHING, ClassOf, Ext, Inst, Type, is_plain

if TYPE_CHECKING:
    from aliaslint.flow.frame import Frame

Comparison = Callable[[Any, Any], object]
COMPARISONS: dict[str, Comparison] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
}
PLAIN_CLASSES = frozenset(
    f"builtins.{n}" for n in ("int", "float", "bool", "str", "list", "tuple", "dict", "set")
)


def narrow(frame: Frame, st: State, test: ir.Expr, truth: bool) -> bool:
    """Refine `st` by the outcome of `test`; False if the outcome is impossible."""
    match test:
        case ir.Const(value=value):
            return bool(value) == truth
        case ir.Not(value=value):
            return narrow(frame, st, value, not truth)
        case ir.BoolOp(op=op, values=values):
            if (op == "and") == truth:
                return all(narrow(frame, st, v, truth) for v in values)
            return True
        case ir.Fresh(operands=(left, ir.Const(value=None)), how="is" | "is not" as how):
            return narrow_none(frame, st, left, (how == "is") == truth)
        case ir.Call(fn=ir.Name(name="isinstance", scope="global"), args=(subject, kind)):
            return narrow_class(frame, st, subject.value, kind.value, truth)
        case ir.Call(fn=ir.Name(name="hasattr", scope="global"), args=(subject, what)):
            return narrow_hasattr(frame, st, subject.value, what.value, truth)
        case ir.Name(name="TYPE_CHECKING") | ir.Attr(obj=ir.Name(), name="TYPE_CHECKING"):
            return not truth
        case ir.Name() | ir.Attr():
            possible = narrow_none(frame, st, test, False) if truth else True
            possible = possible and heeds_earlier(frame, st, "true", test, truth)
            return possible and narrow_constants(frame, st, test, lambda v: bool(v) == truth)
        case ir.Walrus(target=ir.ToName(name=name, scope=scope, depth=depth), at=at):
            return narrow(frame, st, ir.Name(at, name, scope, depth), truth)
        case ir.Fresh(
            operands=(ir.Call(fn=ir.Name(name="type", scope="global"), args=(subject,)), kind),
            how="is" | "is not" | "compare" as how,
            ops=() | ("Eq",) | ("NotEq",) as ops,
        ):
            same = (how == "is not" or ops == ("NotEq",)) != truth
            return narrow_class(frame, st, subject.value, kind, True, exact=True) if same else True
        case ir.Fresh(operands=(left, right), how="compare", ops=(op,)) if op in COMPARISONS:
            return narrow_comparison(frame, st, left, COMPARISONS[op], right, truth)
        case _:
            return True


def own_variable(frame: Frame, expr: ir.Expr) -> str | None:
    """Return the variable that a name is, if no nested function shares it."""
    match expr:
        case ir.Name(name=name, scope="local") if name not in frame.fn.cells:
            return frame.variable(name)
        case _:
            return None


def keep(frame: Frame, st: State, expr: ir.Expr, wanted: object) -> bool:
    """Keep the links of a name or field that `wanted(ref)` allows; False if none is left."""
    assert callable(wanted)
    match expr:
        case ir.Name():
            key = own_variable(frame, expr)
            val = st.env.get(key) if key is not None else None
            if key is not None and val:
                kept = {link: s for link, s in val.items() if wanted(link.ref)}
                if len(kept) != len(val):
                    st.env[key] = kept
                return bool(kept)
        case ir.Attr(obj=ir.Name() as obj, name=name):
            owners = frame.load_name(st, obj)
            if len(owners) == 1:
                ref = next(iter(owners)).ref
                located = st.peek(ref, name)
                if located and not ref.many:
                    kept = {link: s for link, s in located.items() if wanted(link.ref)}
                    if len(kept) != len(located):
                        st.put(ref, name, kept)
                    return bool(kept)
        case _:
            pass
    return True


def is_truth_value(frame: Frame, name: str, outer: tuple[str, ...]) -> bool:
    """True for a variable that holds nothing whose truth could change while it holds it: only
    parameters that are declared as plain values, comparisons, constants and what is made of
    these by `and`, `or` and `not`."""
    key = (frame.fn.key, name)
    found = frame.a.truth_values.get(key)
    if found is None:
        values = [value for value, path in frame.a.kinds.variables(frame.fn).get(name, ())]
        declared = name not in frame.fn.params or is_declared_plain(frame, name)
        found = declared and all(is_truth(frame, value, (*outer, name)) for value in values)
        if not outer:  # else it rests on what is being found out
            frame.a.truth_values[key] = found
    return found


def is_declared_plain(frame: Frame, name: str) -> bool:
    fn = frame.fn
    note = fn.annotations.get(name)
    if note is not None:
        return is_plain(frame.a.kinds.annotation(note, frame.module))
    default = dict(fn.defaults).get(name)
    return isinstance(default, ir.Const) and isinstance(default.value, (bool, int, float, str))


def is_truth(frame: Frame, expr: ir.Expr | None, outer: tuple[str, ...]) -> bool:
    match expr:
        case ir.Const(value=bool() | int() | float() | str() | None):
            return True
        case ir.Not() | ir.Fresh(how="is" | "is not" | "compare" | "bool"):
            return True
        case ir.BoolOp(values=values):
            return all(is_truth(frame, value, outer) for value in values)
        case ir.Name(name=name, scope="local"):
            return name in outer or is_truth_value(frame, name, outer)
        case ir.Call(fn=ir.Name(name="bool" | "isinstance" | "hasattr" | "len", scope="global")):
            return True
        case _:
            return False


def narrow_constants(
    frame: Frame, st: State, expr: ir.Expr, wanted: Callable[[object], bool]
) -> bool:
    """Drop the constants that a local variable cannot be; what else it holds may be anything.

    Attributes are left alone: a call that did not resolve may have set them.
    """
    if not isinstance(expr, ir.Name):
        return True
    return keep(frame, st, expr, lambda ref: all(wanted(value) for value in constant(ref)))


def narrow_comparison(
    frame: Frame, st: State, left: ir.Expr, holds: Comparison, right: ir.Expr, truth: bool
) -> bool:
    """`left op right`, where one of both is known."""

    def agrees(a: object, b: object) -> bool:
        try:
            return bool(holds(a, b)) == truth
        except TypeError:
            return True

    lefts, rights = known_constants(frame, st, left), known_constants(frame, st, right)
    possible = True
    if len(rights) == 1:
        possible = narrow_constants(frame, st, left, lambda v: agrees(v, rights[0]))
    if len(lefts) == 1 and possible:
        possible = narrow_constants(frame, st, right, lambda v: agrees(lefts[0], v))
    return possible


def known_constants(frame: Frame, st: State, expr: ir.Expr) -> list[object]:
    """Return the values that an expression may have, if each of them is known."""
    match expr:
        case ir.Const(value=value):
            return [value]
        case ir.Name(scope="local"):
            values = [constant(link.ref) for link in current(frame, st, expr)]
            return [value for one in values for value in one] if all(values) else []
        case _:
            return []


def constant(ref: Ref) -> tuple[object, ...]:
    """Return the value of a constant; nothing for what is none, or is not known."""
    if ref.kind != "const" or not isinstance(ref.payload, tuple) or len(ref.payload) != 2:
        return ()
    value = ref.payload[1]
    return () if value == "?" or not isinstance(value, (bool, int, float, str)) else (value,)


def narrow_none(frame: Frame, st: State, expr: ir.Expr, is_none: bool) -> bool:
    def wanted(ref: Ref) -> bool:
        type_ = frame.type_of(st, ref)
        if is_none:
            return "none" in type_ or "unknown" in type_ or not type_
        return type_ != frozenset({"none"})

    possible = keep(frame, st, expr, wanted) and heeds_earlier(frame, st, "none", expr, is_none)
    if is_none and possible:
        clear(frame, st, expr)
    return possible


def heeds_earlier(frame: Frame, st: State, kind: str, expr: ir.Expr, truth: bool) -> bool:
    """Restrict `st` to what earlier tests of the same left; False if they had the other outcome."""
    name = own_variable(frame, expr)
    if name is None or not isinstance(expr, ir.Name):
        return True
    if kind == "true" and (
        not is_truth_value(frame, expr.name, ())
        or "array" in frame.val_type(st, st.env.get(name, EMPTY))
    ):
        return True
    known = assume(st.env, st.cases, Case(kind, name), truth)
    if known is not None:
        st.cases = known
    return known is not None


def clear(frame: Frame, st: State, expr: ir.Expr) -> None:
    """The value is None here: it holds no handle."""
    name = own_variable(frame, expr)
    if name is not None:
        st.replace(name, frame.plain(frozenset({"none"})))


def classes_of(frame: Frame, st: State, expr: ir.Expr) -> list[object]:
    match expr:
        case ir.Build(items=items):
            return [c for item in items for c in classes_of(frame, st, item)]
        case ir.Fresh(operands=operands, how="arith"):
            return [c for o in operands for c in classes_of(frame, st, o)]
        case ir.Name() | ir.Attr():
            symbol = frame.a.kinds.dotted(expr, frame.module)
            return [symbol]
        case _:
            return [None]


def narrow_class(
    frame: Frame, st: State, subject: ir.Expr, kind: ir.Expr, truth: bool, exact: bool = False
) -> bool:
    """`isinstance(subject, kind)`: arrays, numbers and classes of the program; with `exact`
    subclasses do not count."""
    wanted_classes = classes_of(frame, st, kind)
    if any(c is None for c in wanted_classes):
        return True
    arrays = Ext("mlx.core.array") in wanted_classes

    def matches(ref: Ref) -> bool | None:
        type_ = frame.type_of(st, ref)
        verdicts = {match_atom(frame, atom, wanted_classes, arrays, exact) for atom in type_}
        return verdicts.pop() if len(verdicts) == 1 else None

    def wanted(ref: Ref) -> bool:
        verdict = matches(ref)
        if verdict is None and arrays and not truth:
            return not could_be_only_array(frame.type_of(st, ref))
        if verdict is None and truth and not arrays and only_plain(wanted_classes):
            return False
        return verdict is None or verdict == truth

    val = current(frame, st, subject)
    if not truth:
        rule_out(
            frame,
            st,
            val,
            frozenset(("class", c.key) for c in wanted_classes if isinstance(c, ClassOf)),
        )
    if val and all(matches(link.ref) is (not truth) for link in val):
        return False
    possible = keep(frame, st, subject, wanted)
    if not possible:
        forget(frame, st, subject)
    elif truth:
        refine(frame, st, subject, wanted_classes, arrays)
    return True


def rule_out(frame: Frame, st: State, val: Val, traits: frozenset[Trait]) -> None:
    """Note what an object of unknown class is not, or has not."""
    if traits and len(val) == 1:
        (link,) = val
        if "unknown" in frame.type_of(st, link.ref) and not link.ref.many:
            exclude(st, link.ref, traits)


def narrow_numbers(frame: Frame, st: State, call: ir.Call) -> None:
    """`mx.arange` takes numbers alone: given an array of any shape it raises (MLX 0.32.4), so
    that a variable which it is given holds none, there and in what follows."""
    if frame.a.kinds.dotted(call.fn, frame.module) != Ext("mlx.core.arange"):
        return
    stack = [arg.value for arg in call.args if arg.name != "dtype"]
    while stack:
        match stack.pop():
            case ir.Fresh(how="arith", operands=operands):
                stack.extend(operands)
            case ir.Name() as name:
                if not keep(frame, st, name, lambda ref: is_plain(frame.type_of(st, ref))):
                    forget(frame, st, name)
            case _:
                pass


def match_atom(
    frame: Frame, atom: object, wanted: list[object], arrays: bool, exact: bool
) -> bool | None:
    match atom:
        case "array":
            return arrays
        case "unknown":
            return None
        case Inst(key=key) if exact:
            return ClassOf(key) in wanted
        case Inst(key=key):
            info = frame.a.classes.get(key)
            mine = {ClassOf(i.key) for i in info.mro} if info else set()
            return bool(mine & set(wanted))
        case "scalar" | "str" | "none" | "other":
            return None if not only_array(wanted) else False
        case _:
            return None


def only_array(wanted: list[object]) -> bool:
    return wanted == [Ext("mlx.core.array")]


def only_plain(wanted: list[object]) -> bool:
    return all(isinstance(c, Ext) and c.dotted in PLAIN_CLASSES for c in wanted)


def could_be_only_array(type_: Type) -> bool:
    """A handle of unknown kind that is no array cannot be stale: it need not be followed."""
    return "array" in type_ or "unknown" in type_ or type_ == NOTHING


def current(frame: Frame, st: State, subject: ir.Expr) -> Val:
    """Return what a name or a field of a name holds now, without loading anything."""
    match subject:
        case ir.Name():
            return frame.load_name(st, subject)
        case ir.Attr(obj=ir.Name() as obj, name=name):
            val = EMPTY
            for owner in frame.load_name(st, obj):
                val = {**val, **(st.peek(owner.ref, name) or EMPTY)}
            return val
        case _:
            return EMPTY


def forget(frame: Frame, st: State, subject: ir.Expr) -> None:
    """Nothing that is followed is left: the name holds a plain value here."""
    if isinstance(subject, ir.Name) and subject.scope == "local":
        st.replace(frame.variable(subject.name), frame.plain())


def refine(frame: Frame, st: State, subject: ir.Expr, wanted: list[object], arrays: bool) -> None:
    val = current(frame, st, subject)
    insts = frozenset(Inst(c.key) for c in wanted if isinstance(c, ClassOf))
    if arrays and len(wanted) == 1:
        type_: Type = ARRAY
    elif insts and len(insts) == len(wanted):
        type_ = insts
    else:
        return
    for link in val:
        old = frame.type_of(st, link.ref)
        if "unknown" in old or (type_ == ARRAY and "array" in old):
            st.narrowed[link.ref] = type_


def surely_has(frame: Frame, st: State, ref: Ref, name: str) -> bool:
    """True for an object of classes of the program that have a method or property of the name."""
    type_ = frame.type_of(st, ref)
    infos = [frame.a.classes.get(atom.key) for atom in type_ if isinstance(atom, Inst)]
    return bool(infos) and len(infos) == len(type_) and all(i and i.find(name) for i in infos)


def narrow_hasattr(frame: Frame, st: State, subject: ir.Expr, what: ir.Expr, truth: bool) -> bool:
    attribute = what.value if isinstance(what, ir.Const) else None
    if isinstance(attribute, str):
        val = current(frame, st, subject)
        if not truth and val and all(surely_has(frame, st, link.ref, attribute) for link in val):
            return False
        rule_out(frame, st, val, frozenset({("lacks" if truth else "has", attribute)}))
    array_like = attribute in library.METADATA or attribute in library.ARRAY_METHODS
    if not array_like or truth:
        return True
    keep(frame, st, subject, lambda ref: not could_be_only_array(frame.type_of(st, ref)))
    return True


__all__ = ["Link", "is_plain", "narrow"]
