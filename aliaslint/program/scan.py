"""What one function does to handles as far as its own text tells, and whom it mentions.

All of it errs on the side of too much: whatever cannot be told from the text counts.
Functions nested in a function are part of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from aliaslint.lower import ir
from aliaslint.lower.walk import (
    Path,
    bindings,
    children,
    expressions,
    own_expressions,
    statements,
)
from aliaslint.program import library

# The methods, and the functions of `operator` that are called like them.
INDIRECT_UPDATES = library.IN_PLACE_METHODS | {name.strip("_") for name in library.IN_PLACE_METHODS}
INDIRECT_CAPTURES = frozenset(
    "vars __dict__ copy __copy__ replace _replace attrgetter itemgetter methodcaller parameters "
    "trainable_parameters children astuple globals "
    "locals eval exec __setattr__ __getattribute__ __getattr__".split()
)
KEEPERS = frozenset("append add extend insert update setdefault appendleft put send".split())
NEW_BUILTINS = library.BUILTIN_SCALARS | library.BUILTIN_TEXT | {"range", "print"}

KEEPING = frozenset(
    name.rpartition(".")[2] for name in library.MX_ISOLATING | library.MX_TRANSPARENT
)
WORD = re.compile(r"[^\W\d]\w*")


@dataclass(slots=True, eq=False)
class Update:
    """An in-place update of what a name or attribute holds.

    `base` is the expression that the container chain starts from; `item` for `x[i] = v`,
    `axes` if the index is a slice or has several axes, as only arrays take it; `inside` if it is
    an element of what `base` holds that is updated.
    """

    base: ir.Expr
    function: ir.Function
    item: bool = False
    inside: bool = False
    axes: bool = False


@dataclass(slots=True, eq=False)
class CallSite:
    call: ir.Call
    function: ir.Function


@dataclass(slots=True, eq=False)
class Scan:
    """The facts of one function and of those nested in it."""

    function: ir.Function
    updates: list[Update] = field(default_factory=list)
    captures: set[str] = field(default_factory=set)  # attributes, and globals as ":name"
    own_captures: set[str] = field(default_factory=set)  # attributes of the first parameter
    filled: set[str] = field(default_factory=set)  # attributes that are given what others hold
    members: set[str] = field(default_factory=set)  # names behind a dot, of any receiver
    on_self: set[str] = field(default_factory=set)  # names behind a dot of the first parameter
    sets: set[str] = field(default_factory=set)  # attributes of the first parameter
    given: set[str] = field(default_factory=set)  # attributes set on what is not the first one
    gives_self: bool = False  # the first parameter itself is handed on
    uses_super: bool = False
    globals: set[str] = field(default_factory=set)
    taken: set[str] = field(default_factory=set)  # names that are used other than by a call
    loaded: set[str] = field(default_factory=set)  # names behind a dot, used other than by a call
    dotted: list[ir.Attr] = field(default_factory=list)
    classes: set[str] = field(default_factory=set)  # local classes, by key
    calls: list[CallSite] = field(default_factory=list)
    held: set[str] = field(default_factory=set)  # names whose handle something else may keep
    passed: dict[str, list[CallSite]] = field(default_factory=dict)  # calls that are given it
    stored: list[tuple[ir.Expr, ir.Function]] = field(default_factory=list)  # in an object
    returned: list[tuple[ir.Expr, ir.Function]] = field(default_factory=list)
    last_use: dict[str, tuple[int, int]] = field(default_factory=dict)
    loops: list[ir.At] = field(default_factory=list)
    bound: dict[str, list[tuple[ir.Expr | None, Path]]] = field(default_factory=dict)
    parameters: set[str] = field(default_factory=set)
    defaults: set[str] = field(default_factory=set)  # parameters with one that is an object

    def is_receiver(self, name: str) -> bool:
        """True for the first parameter, where nothing binds its name anew."""
        return self.function.params[:1] == (name,) and name not in self.bound

    def in_loop(self, at: ir.At) -> bool:
        return any(inside(at, loop) for loop in self.loops)


def inside(at: ir.At, outer: ir.At) -> bool:
    return outer[:2] <= at[:2] and at[2:] <= outer[2:]


def scan(function: ir.Function, mlx_names: frozenset[str]) -> Scan:
    """Return the facts of a function; its class and its module are not looked at.

    `mlx_names` are the names that stand for `mlx.core` in its module.
    """
    found = Scan(function)
    pending = [function]
    while pending:
        current = pending.pop()
        Walk(found, current, mlx_names).run()
        pending.extend(closures(current))
    return found


def closures(function: ir.Function) -> tuple[ir.Function, ...]:
    """Return the functions that stand directly in a function."""
    if function.inner is None:
        function.inner = tuple(find_closures(function))
    return function.inner


def find_closures(function: ir.Function) -> Iterator[ir.Function]:
    for expr in expressions(function.body):
        if isinstance(expr, ir.Closure):
            yield expr.function
    for _, default in function.defaults:
        if isinstance(default, ir.Closure):
            yield default.function


def nested(function: ir.Function) -> Iterator[ir.Function]:
    """Yield the functions defined in a function, outer ones first."""
    for inner in closures(function):
        yield inner
        yield from nested(inner)


class Walk:
    """Looks at the statements and expressions of one function body."""

    def __init__(self, found: Scan, function: ir.Function, mlx_names: frozenset[str]) -> None:
        self.found = found
        self.function = function
        self.mlx_names = mlx_names
        outermost = found.function
        method = outermost.class_key is not None and outermost.params
        self.me = outermost.params[0] if method else ""  # functions nested in a method see it too
        if function is not outermost and self.me in function.params:
            self.me = ""

    def run(self) -> None:
        function, found = self.function, self.found
        found.parameters.update(function.params)
        for decorator in function.decorators:
            found.globals.update(WORD.findall(decorator))
        for name, default in function.defaults:
            self.value(default, kept=True)
            if not isinstance(default, ir.Const):
                found.bound.setdefault(name, []).append((default, ()))
                found.held.add(name)  # the function itself holds its default
                found.defaults.add(name)
        for note in (*function.annotations.values(), function.returns_annotation):
            if note is not None:
                self.value(note, kept=False)
        for target, value, path in bindings(function.body):
            if isinstance(target, ir.ToName):
                found.bound.setdefault(target.name, []).append((value, path))
        for stmt in statements(function.body):
            self.statement(stmt)

    def statement(self, stmt: ir.Stmt) -> None:
        found = self.found
        match stmt:
            case ir.Assign(targets=targets, value=value, annotation=annotation):
                self.value(value, kept=True)
                if annotation is not None:
                    self.value(annotation, kept=False)
                for target in targets:
                    self.target(target, value, len(targets) > 1)
                if len(targets) > 1:
                    found.held.update(t.name for t in targets if isinstance(t, ir.ToName))
            case ir.Aug(target=target, value=value):
                self.value(value, kept=False)
                self.augmented(target)
            case ir.For(iterable=iterable, target=target, at=at):
                found.loops.append(at)
                self.value(iterable, kept=True)
                self.target(target, None, False)
            case ir.While(test=test, at=at):
                found.loops.append(at)
                self.value(test, kept=False)
            case ir.If(test=test):
                self.value(test, kept=False)
            case ir.Do(value=value):
                self.value(value, kept=False)
            case ir.With(context=context, target=target):
                self.value(context, kept=True)
                if target is not None:
                    self.target(target, None, False)
            case ir.ClassDef(key=key):
                found.classes.add(key)
            case ir.Return(value=ir.Expr() as value):
                found.returned.append((value, self.function))
                self.value(value, kept=not isinstance(value, ir.Name))  # the name ends here
            case ir.Match(subject=subject, cases=cases):
                self.value(subject, kept=True)
                for case in cases:
                    for target, path in case.binds:
                        self.target(target, None, False)
                        found.captures.update(str(p) for step in path for p in flat(step))
                    if case.guard is not None:
                        self.value(case.guard, kept=False)
            case ir.Delete():
                pass
            case _:
                for expr in own_expressions(stmt):
                    self.value(expr, kept=True)

    # --- targets

    def target(self, target: ir.Target, value: ir.Expr | None, chained: bool) -> None:
        found = self.found
        match target:
            case ir.ToName(name=name, scope=scope):
                if scope in {"global", "cell"}:
                    found.captures.add(f":{name}")
                    self.stored(value)
            case ir.ToAttr(obj=obj, name=name):
                self.value(obj, kept=False)
                found.members.add(name)  # a setter
                if self.is_me(obj):
                    found.on_self.add(name)
                    found.sets.add(name)
                else:
                    found.given.add(name)
                if chained or value is None or not self.makes_new(value):
                    self.captured(obj, name)
                    found.filled.add(name)
                    self.stored(value)
            case ir.ToItem(obj=obj, index=index):
                self.item(target, kept=False)
                self.stored(value)
                if not is_text(index):
                    self.update(obj, item=True, axes=index is None)
            case ir.Unpack(targets=targets):
                for inner in targets:
                    self.target(inner, value, True)

    def augmented(self, target: ir.Target) -> None:
        match target:
            case ir.ToName(name=name, scope=scope, depth=depth, at=at):
                self.update(ir.Name(at, name, scope, depth))
            case ir.ToAttr(obj=obj, name=name, at=at):
                self.value(obj, kept=False)
                self.found.members.add(name)
                self.update(ir.Attr(at, obj, name))
            case ir.ToItem(obj=obj):
                self.item(target, kept=False)
                self.update(obj, inside=True)
            case _:
                pass

    def update(
        self, base: ir.Expr, *, item: bool = False, inside: bool = False, axes: bool = False
    ) -> None:
        while isinstance(base, ir.Item):
            base, inside = base.obj, True
        self.found.updates.append(Update(base, self.function, item, inside, axes))

    # --- values

    def value(self, expr: ir.Expr, kept: bool) -> None:
        """Look at an expression; `kept` if what it gives may be held by something after."""
        found = self.found
        match expr:
            case ir.Name(name=name):
                found.taken.add(name)
                self.name(expr, kept)
            case ir.Attr(obj=obj, name=name):
                found.loaded.add(name)
                self.attribute(expr, obj, name, kept)
            case ir.Call():
                self.call(expr)
            case ir.Fresh(operands=operands, how=how):
                late = any(runs_code(o) for o in operands[1:])
                for operand in operands:
                    self.value(operand, kept=late or how == "repeat")
            case ir.Item():
                self.item(expr, kept)
            case ir.Choice(test=test, then=then, other=other):
                self.value(test, kept=False)
                self.value(then, kept)
                self.value(other, kept)
            case ir.Not(value=value):
                self.value(value, kept=False)
            case ir.Walrus(value=value, target=target):
                self.value(value, kept=True)
                self.target(target, value, True)
            case ir.Closure(defaults=defaults, decorators=decorators):
                for _, default in defaults:
                    self.value(default, kept=True)
                for decorator in decorators:
                    self.value(decorator, kept=True)
            case ir.Suspend(value=ir.Expr() as value):
                found.returned.append((value, self.function))
                self.value(value, kept=True)
            case ir.Comprehension(body=body):
                for stmt in statements(body):
                    self.statement(stmt)
                for target, source, path in bindings(body):
                    if isinstance(target, ir.ToName):
                        found.bound.setdefault(target.name, []).append((source, path))
            case _:
                for child in children(expr):
                    self.value(child, kept=True)

    def is_me(self, expr: ir.Expr) -> bool:
        return isinstance(expr, ir.Name) and expr.name == self.me

    def captured(self, obj: ir.Expr, name: str) -> None:
        mine = self.is_me(obj) and self.found.is_receiver(self.me)
        (self.found.own_captures if mine else self.found.captures).add(name)

    def item(self, node: ir.Item | ir.ToItem, kept: bool) -> None:
        self.value(node.obj, kept)
        match node.index:
            case ir.Const(value=str() as name) if kept:  # of a module of mlx.nn: its attribute
                self.captured(node.obj, name)
            case _:
                pass
        for part in (node.index, *node.operands):
            if part is not None:
                self.value(part, kept=False)

    def name(self, expr: ir.Name, kept: bool) -> None:
        found, name = self.found, expr.name
        if expr.scope == "global":
            found.globals.add(name)
            if kept:
                found.captures.add(f":{name}")
            return
        if expr.scope == "class":
            found.classes.add(name)
            return
        if name == self.me and kept:
            found.gives_self = True
        if kept or expr.scope == "cell" or found.function is not self.function:
            found.held.add(name)
        if expr.scope == "cell":
            found.captures.add(f":{name}")
        found.last_use[name] = max(found.last_use.get(name, (0, 0)), expr.at[:2])

    def attribute(self, expr: ir.Attr, obj: ir.Expr, name: str, kept: bool) -> None:
        found = self.found
        if name not in library.METADATA:
            found.members.add(name)
            if kept:
                self.captured(obj, name)
        if name == "__dict__":
            found.captures.add("*")
        match obj:
            case ir.Name(name=owner, scope="global"):
                found.globals.add(owner)
                found.dotted.append(expr)
            case ir.Name(name=owner) if owner == self.me:
                found.on_self.add(name)
                found.last_use[owner] = max(found.last_use.get(owner, (0, 0)), obj.at[:2])
            case ir.Attr():
                found.dotted.append(expr)
                self.attribute(obj, obj.obj, obj.name, kept=False)
            case _:
                self.value(obj, kept=False)

    def call(self, expr: ir.Call) -> None:
        found = self.found
        found.calls.append(CallSite(expr, self.function))
        name = called_name(expr)
        match expr.fn:
            case ir.Name(scope="global") | ir.Attr(obj=ir.Name(scope="global")):
                pass
            case ir.Attr(obj=ir.Call(fn=ir.Name(name="super"))):
                pass
            case _:
                found.members.add("__call__")
        if name == "super":
            found.uses_super = True
            found.gives_self = found.gives_self or bool(expr.args)
        if name in INDIRECT_CAPTURES and not is_method_of_a_value(expr):
            found.captures.add("*")
        if name in INDIRECT_UPDATES:
            for base in (expr.fn.obj if isinstance(expr.fn, ir.Attr) else None, *operands_of(expr)):
                if base is not None:
                    self.update(base, inside=True)
        if name in {"attrgetter", "methodcaller"}:
            texts = [a.value.value for a in expr.args if isinstance(a.value, ir.Const)]
            found.members.update(part for text in texts for part in str(text).split("."))
        if name in {"SimpleNamespace", "Namespace"}:
            found.given.update(arg.name for arg in expr.args)
        if name in {"getattr", "setattr", "hasattr"} and len(expr.args) > 1:
            named = expr.args[1].value
            text = named.value if isinstance(named, ir.Const) else "*"
            found.captures.add(str(text))
            found.members.add(str(text))
            if isinstance(expr.args[0].value, ir.Name) and expr.args[0].value.name == self.me:
                found.on_self.add(str(text))
                found.sets.add(str(text))
        match expr.fn:
            case ir.Attr(obj=ir.Attr() as obj, name=member) if member not in library.ARRAY_METHODS:
                self.attribute(expr.fn, obj, member, kept=False)
                self.attribute(obj, obj.obj, obj.name, kept=True)  # may give back a part of it
            case ir.Attr(obj=obj, name=member):
                self.attribute(expr.fn, obj, member, kept=False)
            case ir.Name() as called:
                self.name(called, kept=False)
            case _:
                self.value(expr.fn, kept=False)
        if name in KEEPERS:
            for arg in expr.args:
                self.stored(arg.value)
        self.arguments(expr, keeps=not self.takes_and_forgets(expr), name=name)

    def stored(self, value: ir.Expr | None) -> None:
        if value is not None and not self.makes_new(value):
            self.found.stored.append((value, self.function))

    def arguments(self, expr: ir.Call, keeps: bool, name: str) -> None:
        late = False
        for arg in reversed(expr.args):
            value = arg.value
            if isinstance(value, ir.Name) and keeps and not late and name not in KEEPERS:
                site = CallSite(expr, self.function)
                self.found.passed.setdefault(value.name, []).append(site)
                if value.name == self.me:
                    self.found.gives_self = True
                self.value(value, kept=False)
                if value.scope == "global":
                    self.found.captures.add(f":{value.name}")
            else:
                self.value(value, kept=keeps or late)
            late = late or runs_code(value)

    def takes_and_forgets(self, call: ir.Call) -> bool:
        """True for functions of MLX and builtins that read their arguments and keep none."""
        match call.fn:
            case ir.Attr(obj=ir.Name(name=owner, scope="global"), name=name):
                return owner in self.mlx_names and name not in KEEPING
            case ir.Attr(obj=ir.Attr(obj=ir.Name(name=owner, scope="global")), name=name):
                return owner in self.mlx_names  # mx.fast.rope
            case ir.Name(name=name, scope="global"):
                return name in NEW_BUILTINS
            case _:
                return False

    def makes_new(self, expr: ir.Expr) -> bool:
        """True for expressions whose value nothing else can hold."""
        match expr:
            case ir.Const() | ir.Not():
                return True
            case ir.Fresh(how=how):
                return how != "repeat"
            case ir.Choice(then=then, other=other):
                return self.makes_new(then) and self.makes_new(other)
            case ir.Call():
                return self.takes_and_forgets(expr)
            case _:
                return False


def flat(step: object) -> Iterator[object]:
    if isinstance(step, tuple):
        for part in step:
            yield from flat(part)
    else:
        yield step


def operands_of(call: ir.Call) -> Iterator[ir.Expr]:
    for arg in call.args:
        yield arg.value


def called_name(call: ir.Call) -> str:
    match call.fn:
        case ir.Name(name=name) | ir.Attr(name=name):
            return name
        case _:
            return ""


def is_method_of_a_value(call: ir.Call) -> bool:
    """True for `text.replace(…)` and `items.copy()`, which are not those of `copy` and
    `dataclasses`; what a container holds is captured with its attribute."""
    match call.fn:
        case ir.Attr(obj=ir.Name(scope="global")):
            return False
        case ir.Attr(name="replace" | "copy"):
            return True
        case _:
            return False


def runs_code(expr: ir.Expr) -> bool:
    """True if evaluating `expr` may run code of the program."""
    if isinstance(expr, (ir.Call, ir.Suspend, ir.Walrus, ir.Comprehension)):
        return True
    return any(runs_code(child) for child in children(expr))


def is_text(index: ir.Expr | None) -> bool:
    match index:
        case ir.Const(value=str()):
            return True
        case ir.Fresh(how="str"):
            return True
        case _:
            return False


def has_receiver(function: ir.Function) -> bool:
    """True for methods whose first parameter stands before the dot of a call."""
    return function.class_key is not None and "staticmethod" not in function.decorators


def arguments(function: ir.Function, call: ir.Call, bound: bool) -> Iterator[tuple[str, ir.Expr]]:
    """Pair the parameters of a function with the arguments of a call, as far as they can be
    told apart; what is unpacked may be any parameter. `bound` if the first is not among them."""
    kinds = dict(zip(function.params, function.kinds, strict=True))
    params = list(function.params)
    given = sum(not arg.name for arg in call.args)
    among = given == len(params)  # `Class.method(o, …)`
    if bound and params and kinds[params[0]] == "pos" and not among:
        params = params[1:]
    place = 0
    for arg in call.args:
        if arg.name in {"*", "**"}:
            yield from ((param, arg.value) for param in params)
        elif arg.name:
            rest = (param for param in params if kinds[param] == "**")
            yield arg.name if arg.name in kinds else next(rest, arg.name), arg.value
        elif place < len(params):
            yield params[place], arg.value
            place += kinds[params[place]] == "pos"
