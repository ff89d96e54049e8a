"""Looks on while functions are interpreted, and keeps what it sees on one line.

A line may run in several contexts: for several classes of `self`, from several callers, in
several rounds of a loop. What is seen in them is joined.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from aliaslint.explain.paths import Paths, made_at
from aliaslint.flow.context import Analysis
from aliaslint.flow.frame import Frame, describe
from aliaslint.flow.state import Binding, State
from aliaslint.flow.values import EMPTY, ENTRY, Mark, Ref, Site, Val, Where, join
from aliaslint.lower import ir
from aliaslint.lower.walk import children, own_expressions
from aliaslint.program import library
from aliaslint.program.types import Atom, Inst, is_plain, ordered

COMPOUND = (ir.Block, ir.If, ir.While, ir.For, ir.Try, ir.With, ir.Match, ir.ClassDef)
SHARED = frozenset({"root", "init", "alloc"})  # references that several places may hold


@dataclass(slots=True)
class Seen:
    """All that was seen of one mention, over all contexts."""

    text: str
    at: ir.At
    bound: bool
    name: str = ""  # of an attribute
    atoms: dict[Atom, None] = field(default_factory=dict)
    constants: set[str] = field(default_factory=set)
    owners: dict[Atom, None] = field(default_factory=dict)
    same_as: dict[str, None] = field(default_factory=dict)
    made: dict[Where, None] = field(default_factory=dict)
    captured: dict[Where, None] = field(default_factory=dict)
    stale: dict[Site, Mark] = field(default_factory=dict)
    parameter: bool = False

    @property
    def may_be_shared(self) -> bool:
        """True for what may be an array that was not made in the function, or has two names."""
        handle = "array" in self.atoms or "unknown" in self.atoms
        return handle and (not self.made or bool(self.same_as))


@dataclass(slots=True)
class SeenCall:
    """All that was seen of one call."""

    call: ir.Call
    callees: dict[Atom, None] = field(default_factory=dict)
    receivers: dict[Atom, None] = field(default_factory=dict)
    gives: dict[Atom, None] = field(default_factory=dict)
    gives_back: dict[str, None] = field(default_factory=dict)
    updates: dict[Site, Mark] = field(default_factory=dict)


@dataclass(slots=True)
class Touch:
    """What of a statement stands on the line."""

    values: list[ir.Expr] = field(default_factory=list)
    targets: list[ir.Target] = field(default_factory=list)
    calls: list[ir.Call] = field(default_factory=list)


class Recorder:
    """The observer of one line of one module.

    With `header` the line is the head of the function that starts there: its parameters, where
    they stand on the line, are what is seen.
    """

    def __init__(
        self,
        analysis: Analysis,
        module: str,
        line: int,
        header: int = 0,
        parameters: Mapping[str, ir.At] | None = None,
    ) -> None:
        self.analysis = analysis
        self.module = module
        self.line = line
        self.header = header
        self.parameters = parameters or {}
        self.statements: dict[ir.Stmt, None] = {}
        self.mentions: dict[tuple[str, bool], Seen] = {}
        self.calls: dict[ir.Call, SeenCall] = {}
        self.functions: dict[str, None] = {}
        self.contexts = 0
        self._touches: dict[ir.Stmt, Touch | None] = {}
        self._bodies: dict[ir.Stmt, Touch] = {}
        self._results: dict[ir.Expr, Val] = {}

    @property
    def reached(self) -> bool:
        return bool(self.statements)

    @property
    def may_share(self) -> bool:
        """True if the line mentions what a caller may hold too: its evidence counts then."""
        return any(not seen.bound and seen.may_be_shared for seen in self.mentions.values())

    # --- what the interpreter tells

    def enters(self, frame: Frame, stmt: ir.Stmt, st: State) -> None:
        if frame.fn.module != self.module:
            return
        if self.header and stmt is frame.fn.body and frame.fn.at[0] == self.header:
            self._head(frame, stmt, st)
        entered = self._bodies.get(stmt)
        if entered is not None:
            self._targets(frame, entered, st)
        touch = self._touch(stmt)
        if touch is None:
            return
        self.statements[stmt] = None
        self.functions[frame.fn.key] = None
        self.contexts += 1
        scratch = st.copy()
        for expr in touch.values:
            self._value(frame, scratch, expr)
        if isinstance(stmt, (ir.For, ir.With)):
            self._bodies[stmt.body] = touch

    def leaves(self, frame: Frame, stmt: ir.Stmt, st: State | None) -> None:
        if frame.fn.module != self.module:
            return
        touch = self._touch(stmt)
        if touch is None or st is None:
            return
        scratch = st.copy()
        for expr in touch.values:
            if rests_on_a_call(expr):
                self._value(frame, scratch, expr)
        if not isinstance(stmt, (ir.For, ir.With, ir.Delete)):
            self._targets(frame, touch, st)

    def called(self, frame: Frame, call: ir.Call, val: Val, st: State) -> None:
        if frame.fn.module != self.module or not self.on_line(call.at):
            return
        if isinstance(call.fn, ir.Closure):
            return  # a generator expression, which is lowered to a call
        self._results[call] = val
        seen = self.calls.setdefault(call, SeenCall(call))
        scratch = st.copy()
        if isinstance(call.fn, ir.Attr):
            base = self._look(frame, call.fn.obj, scratch)
            seen.receivers.update(dict.fromkeys(atoms_of(frame, st, base)))
        seen.callees.update(dict.fromkeys(atoms_of(frame, st, self._look(frame, call.fn, scratch))))
        seen.gives.update(dict.fromkeys(atoms_of(frame, st, val)))
        self._given_back(frame, seen, val, scratch)
        self._updated(frame, seen, st)

    # --- what stands on the line

    def on_line(self, at: ir.At) -> bool:
        return at[0] <= self.line <= at[2]

    def _touch(self, stmt: ir.Stmt) -> Touch | None:
        if stmt not in self._touches:
            self._touches[stmt] = self._find(stmt)
        return self._touches[stmt]

    def _find(self, stmt: ir.Stmt) -> Touch | None:
        touch = Touch()
        for target in targets_of(stmt):
            for inner in flat_targets(target):
                if self.on_line(inner.at) and (is_small(inner) or inner.at[0] == self.line):
                    touch.targets.append(inner)
        for expr in mentioned(stmt):
            if not self.on_line(expr.at):
                continue
            if isinstance(expr, ir.Call):
                touch.calls.append(expr)
            else:
                touch.values.append(expr)
        does_nothing = isinstance(stmt, ir.Block) and not stmt.body  # `pass`
        simple = does_nothing or not (isinstance(stmt, COMPOUND) or defines(stmt))
        if simple and self.on_line(stmt.at) and isinstance(stmt, ir.Aug):
            touch.values.append(as_expression(stmt.target))
            touch.targets.clear()
        if touch.values or touch.targets or touch.calls or (simple and self.on_line(stmt.at)):
            return touch
        head = not defines(stmt) and any(self.on_line(e.at) for e in own_expressions(stmt))
        return touch if head else None

    # --- values

    def _head(self, frame: Frame, stmt: ir.Stmt, st: State) -> None:
        self.statements[stmt] = None
        self.functions[frame.fn.key] = None
        self.contexts += 1
        for name, at in self.parameters.items():
            self._value(frame, st.copy(), ir.Name(at, name, "local"))

    def _targets(self, frame: Frame, touch: Touch, st: State) -> None:
        scratch = st.copy()
        for target in touch.targets:
            self._value(frame, scratch, as_expression(target), bound=True)

    def _value(self, frame: Frame, st: State, expr: ir.Expr, bound: bool = False) -> None:
        val = self._look(frame, expr, st)
        owner = EMPTY
        own: set[Binding] = set()
        match expr:
            case ir.Attr(obj=obj, name=name):
                owner = self._look(frame, obj, st)
                own = {(link.ref, name) for link in owner}
            case ir.Name(name=name, scope="local"):
                own = {("var", frame.variable(name))}
            case _:
                pass
        text = describe(expr)
        seen = self.mentions.setdefault((text, bound), Seen(text, expr.at, bound))
        seen.name = expr.name if isinstance(expr, ir.Attr) else ""
        seen.owners.update(dict.fromkeys(atoms_of(frame, st, owner)))
        self._note(frame, st, seen, val)
        paths = Paths(frame, st)
        shared = [k.ref for k in val if k.ref.kind in SHARED and not is_plain(k.ref.type)]
        for other in paths.holders(shared, own):
            if other != text:
                seen.same_as[other] = None

    def _note(self, frame: Frame, st: State, seen: Seen, val: Val) -> None:
        seen.atoms.update(dict.fromkeys(atoms_of(frame, st, val)))
        for link, stale in val.items():
            ref, prov = link
            if ref.kind == "const" and isinstance(ref.payload, tuple):
                seen.constants.add(str(ref.payload[0]) if ref.payload[1] != "?" else "?")
            elif is_plain(ref.type):
                seen.constants.add("?")
            elif ref.kind == "alloc" and (where := made_at(ref)) is not None:
                seen.made[frame.a.where(*where)] = None
            seen.parameter |= ref.kind == "root" and is_parameter(ref)
            if prov.kind == "capture" and prov.where is not None and not is_plain(ref.type):
                seen.captured[prov.where] = None
            for _, mark in stale:
                if mark is not ENTRY:
                    shortest(seen.stale, mark)

    def _look(self, frame: Frame, expr: ir.Expr, st: State) -> Val:
        """Return what an expression holds, without running calls and without reading."""
        from aliaslint.flow.statements import evaluate_again

        match expr:
            case ir.Call():
                return self._results.get(expr, EMPTY)
            case ir.Walrus(value=value):
                return self._look(frame, value, st)
            case ir.Choice(then=then, other=other):
                return join(self._look(frame, then, st), self._look(frame, other, st))
            case ir.BoolOp(values=values):
                result = EMPTY
                for value in values:
                    result = join(result, self._look(frame, value, st))
                return result
            case ir.Attr(obj=obj, name=name) if rests_on_a_call(obj):
                return field_of(frame, st, self._look(frame, obj, st), name)
            case ir.Name() | ir.Attr() | ir.Item() | ir.Const():
                return evaluate_again(frame, expr, st)
            case _:
                return EMPTY

    # --- calls

    def _given_back(self, frame: Frame, seen: SeenCall, val: Val, st: State) -> None:
        """Note the arguments (and the receiver) whose very array or object comes back."""
        held = {k.ref for k in val if k.ref.kind in SHARED and not is_plain(k.ref.type)}
        if not held:
            return
        given = [arg.value for arg in seen.call.args]
        if isinstance(seen.call.fn, ir.Attr):
            given.append(seen.call.fn.obj)
        for expr in given:
            if any(link.ref in held for link in self._look(frame, expr, st)):
                seen.gives_back[describe(expr)] = None

    def _updated(self, frame: Frame, seen: SeenCall, st: State) -> None:
        """Note the in-place updates that were made through this call."""
        where = frame.where(seen.call.at)
        for _, mark, _ in frame.outer().updates:
            if mark.chain[:1] == (where,):
                shortest(seen.updates, mark)
        for _, val in st.bindings():
            for stale in val.values():
                for _, mark in stale:
                    if mark is not ENTRY and mark.chain[:1] == (where,):
                        shortest(seen.updates, mark)


def shortest(marks: dict[Site, Mark], mark: Mark) -> None:
    have = marks.get(mark.site)
    if have is None or len(mark.chain) < len(have.chain):
        marks[mark.site] = mark


def atoms_of(frame: Frame, st: State, val: Val) -> tuple[Atom, ...]:
    return ordered(frame.val_type(st, val))


def field_of(frame: Frame, st: State, base: Val, name: str) -> Val:
    """Return what a field holds that a call's result has; properties are not run."""
    from aliaslint.flow.expressions import location_of_field
    from aliaslint.flow.statements import is_property

    result = EMPTY
    for link in base:
        if not is_plain(link.ref.type) and not is_property(frame, st, link.ref, name):
            result = join(result, location_of_field(frame, st, link.ref, name))
    return result


def is_parameter(ref: Ref) -> bool:
    return isinstance(ref.payload, tuple) and ref.payload[0] == "p"


def rests_on_a_call(expr: ir.Expr) -> bool:
    match expr:
        case ir.Call():
            return True
        case ir.Attr(obj=obj) | ir.Item(obj=obj):
            return rests_on_a_call(obj)
        case _:
            return False


# --- the parts of a statement


def mentioned(stmt: ir.Stmt) -> Iterator[ir.Expr]:
    """Yield names, attributes, elements and calls of a statement, but for what is not a value.

    The attribute that is called is not one (the call tells of it), nor is `x.shape`. The loops
    of comprehensions are statements of their own.
    """
    stack = [(expr, False) for expr in own_expressions(stmt)]
    while stack:
        expr, is_callee = stack.pop()
        match expr:
            case ir.Comprehension():
                continue
            case ir.Call(fn=ir.Closure()):
                pass
            case ir.Call(fn=fn, args=args):
                yield expr
                stack.append((fn, True))
                stack.extend((arg.value, False) for arg in args)
                continue
            case ir.Attr(name=name) if name in library.METADATA:
                pass
            case ir.Item(obj=ir.Attr(name=name)) if name in library.METADATA:
                pass
            case ir.Item(index=None):
                pass
            case ir.Name() | ir.Attr() | ir.Item() if not is_callee:
                yield expr
            case _:
                pass
        stack.extend((child, False) for child in children(expr))


def targets_of(stmt: ir.Stmt) -> tuple[ir.Target, ...]:
    match stmt:
        case ir.Assign(targets=targets):
            return targets
        case ir.Aug(target=target) | ir.For(target=target) | ir.Delete(target=target):
            return (target,)
        case ir.With(target=ir.Target() as target):
            return (target,)
        case ir.ClassDef(name=name):
            return (name,)
        case _:
            return ()


def flat_targets(target: ir.Target) -> Iterator[ir.Target]:
    if isinstance(target, ir.Unpack):
        for inner in target.targets:
            yield from flat_targets(inner)
    else:
        yield target


def as_expression(target: ir.Target) -> ir.Expr:
    """Return the expression that reads what a target binds."""
    match target:
        case ir.ToName(at=at, name=name, scope=scope, depth=depth):
            return ir.Name(at, name, scope, depth)
        case ir.ToAttr(at=at, obj=obj, name=name):
            return ir.Attr(at, obj, name)
        case ir.ToItem(at=at, obj=obj, index=index) if index is not None:
            return ir.Item(at, obj, index)
        case ir.ToItem(obj=obj):
            return obj
        case _:
            return ir.Const(target.at, None)


def is_small(target: ir.Target) -> bool:
    """False for the name of a definition, whose place is all of it."""
    return target.at[0] == target.at[2]


def defines(stmt: ir.Stmt) -> bool:
    return isinstance(stmt, ir.Assign) and isinstance(stmt.value, ir.Closure)


def classes_in(atoms: dict[Atom, None]) -> list[str]:
    return [atom.key for atom in atoms if isinstance(atom, Inst)]
