"""What a unit may do to handles, found by looking at its syntax alone.

All of it errs on the side of too much: whatever cannot be told from the syntax counts.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from aliaslint.program.units import Unit

METADATA = frozenset("shape dtype ndim size nbytes itemsize".split())
PLAIN_CALLS = frozenset("len int float bool str repr range isinstance hasattr type id".split())
INDIRECT_UPDATES = frozenset(
    f"{mark}{name}{mark}"
    for mark in ("", "__")
    for name in "iadd isub imul itruediv ifloordiv imod ipow iand ior ixor imatmul ilshift "
    "irshift setitem".split()
)
INDIRECT_CAPTURES = frozenset(
    "getattr vars __dict__ copy __copy__ replace _replace attrgetter itemgetter methodcaller "
    "parameters trainable_parameters tree_map tree_flatten children asdict astuple globals "
    "locals eval exec setattr __setattr__ __getattribute__ __getattr__".split()
)


@dataclass(slots=True)
class Events:
    """What happens in one unit.

    `updates`: attributes that are updated in place (`X.a op= v`, `X.a[i] = v`).
    `augmented`: those of them updated by `X.a op= v`, which is reported on its own.
    `local`: something that a name holds may be updated, and more than the name may hold it.
    `captures`: attributes that are loaded and not used up on the spot; "*" stands for any.
    """

    updates: set[str] = field(default_factory=set)
    augmented: set[str] = field(default_factory=set)
    local: bool = False
    captures: set[str] = field(default_factory=set)


class Scan:
    """Looks at one unit. Names of nested functions and of their parents count as one."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.events = Events()
        self.parents: dict[ast.AST, ast.AST] = {}
        self.nodes: list[ast.AST] = []
        for top in unit.nodes:
            self.nodes.append(top)
            for node in ast.walk(top):
                for child in ast.iter_child_nodes(node):
                    self.parents[child] = node
                    self.nodes.append(child)

    def run(self) -> Events:
        names: set[str] = set()
        for node in self.nodes:
            match node:
                case ast.AugAssign(target=target):
                    self.updated(target, names, node)
                case ast.Subscript(ctx=ast.Store()):
                    self.updated(node, names, None)
                case ast.Attribute(ctx=ast.Load(), attr=attr) if not self.used_up(node):
                    self.events.captures.add(attr)
                case ast.Attribute(ctx=ast.Store(), attr=attr) if self.shares(node):
                    self.events.captures.add(attr)
                case ast.MatchClass(kwd_attrs=attrs):
                    self.events.captures.update(attrs, "*" if node.patterns else ())
                case _:
                    pass
        if self.unit.owner and not self.unit.name:
            self.events.captures.update(self.class_attributes())
        words = self.unit.words
        if words & INDIRECT_UPDATES:
            self.events.local = True
        if words & INDIRECT_CAPTURES:
            self.events.captures.add("*")
        if any(self.may_be_shared(name) for name in names):
            self.events.local = True
        return self.events

    def shares(self, node: ast.Attribute) -> bool:
        """True if what is stored in an attribute may be held by something else as well."""
        match self.parents.get(node):
            case ast.Assign(targets=targets, value=value):
                return len(targets) > 1 or not makes_new(value)
            case ast.AnnAssign(value=value) if value is not None:
                return not makes_new(value)
            case ast.AugAssign():
                return False
            case _:
                return True

    def class_attributes(self) -> Iterator[str]:
        """Yield the attributes of a class body: all instances share them, or fields take them."""
        for node in self.nodes:
            match node:
                case ast.Assign(value=ast.Constant()):
                    pass
                case ast.Assign(targets=targets):
                    for target in targets:
                        yield from (n.id for n in ast.walk(target) if isinstance(n, ast.Name))
                case ast.AnnAssign(target=ast.Name(id=name)):
                    yield name
                case _:
                    pass

    def updated(self, target: ast.expr, names: set[str], aug: ast.AugAssign | None) -> None:
        base = target
        if isinstance(target, ast.Subscript) and aug is None and is_text(target.slice):
            return  # the key of a dict: arrays have none
        while isinstance(base, ast.Subscript):
            base = base.value
        match base:
            case ast.Attribute(attr="__dict__"):
                self.events.local = True
            case ast.Attribute(attr=attr):
                self.events.updates.add(attr)
                if aug is not None and base is target:
                    self.events.augmented.add(attr)
            case ast.Name(id=name):
                names.add(name)
            case _:
                self.events.local = True

    # --- names

    def may_be_shared(self, name: str) -> bool:
        """False if the name is bound to plain values or new objects only, and has no twin."""
        values = list(self.bound_to(name))
        if not values or any(v is None for v in values):
            return True
        if all(is_plain(v) for v in values if v is not None):
            return False
        if not all(makes_new(v) for v in values if v is not None):
            return True
        return any(
            isinstance(node, ast.Name)
            and node.id == name
            and isinstance(node.ctx, ast.Load)
            and not self.used_up(node)
            for node in self.nodes
        )

    def bound_to(self, name: str) -> Iterator[ast.expr | None]:
        """Yield the values that the name is bound to; None for what is not an expression."""
        for node in self.nodes:
            match node:
                case ast.Name(id=found, ctx=ast.Store()) if found == name:
                    yield self.value_for(node)
                case ast.arg(arg=found) if found == name:
                    yield None
                case ast.Global(names=names) | ast.Nonlocal(names=names) if name in names:
                    yield None
                case ast.ExceptHandler(name=found) | ast.MatchAs(name=found) if found == name:
                    yield None
                case ast.MatchStar(name=found) | ast.MatchMapping(rest=found) if found == name:
                    yield None
                case _:
                    pass

    def value_for(self, node: ast.Name) -> ast.expr | None:
        match self.parents.get(node):
            case ast.Assign(value=value) | ast.NamedExpr(value=value):
                return value
            case ast.AnnAssign(value=value) if value is not None:
                return value
            case ast.AugAssign():
                return ast.Constant(0)
            case ast.For(iter=ast.Call(func=ast.Name(id="range"))):
                return ast.Constant(0)
            case ast.comprehension(iter=ast.Call(func=ast.Name(id="range"))):
                return ast.Constant(0)
            case _:
                return None

    # --- uses

    def used_up(self, node: ast.expr) -> bool:
        """True where the value of `node` is used at once and its handle kept by nothing."""
        parent = self.parents.get(node)
        match parent:
            case ast.Attribute(attr=attr):
                return attr in METADATA
            case ast.Subscript(value=value) if value is node:
                return False
            case ast.Expr() | ast.JoinedStr() | ast.FormattedValue():
                return True
            case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.Subscript() | ast.Slice():
                return not self.calls_after(node, parent)
            case ast.Assert(test=test) | ast.If(test=test) | ast.While(test=test):
                return test is node
            case ast.AugAssign(target=target):
                return target is node or not isinstance(node, (ast.List, ast.Tuple))
            case _:
                return False

    def calls_after(self, node: ast.expr, parent: ast.AST) -> bool:
        """True if something that may run code is evaluated between the load and its use."""
        seen = False
        for child in ast.iter_child_nodes(parent):
            if child is node:
                seen = True
            elif seen:
                for inner in ast.walk(child):
                    if isinstance(inner, (ast.Call, ast.Await, ast.Yield, ast.NamedExpr)):
                        return True
        return False


def is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def is_plain(node: ast.expr) -> bool:
    """True for numbers, text and None: nothing that can be changed."""
    match node:
        case ast.Constant():
            return True
        case ast.JoinedStr() | ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return isinstance(node, ast.JoinedStr)
        case ast.Call(func=ast.Name(id=name)):
            return name in PLAIN_CALLS
        case ast.UnaryOp(operand=operand):
            return is_plain(operand)
        case ast.BinOp(left=left, right=right):
            return is_plain(left) and is_plain(right)
        case _:
            return False


def makes_new(node: ast.expr) -> bool:
    """True for expressions whose value nothing else can hold."""
    return isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Constant, ast.JoinedStr))


def events(unit: Unit) -> Events:
    return Scan(unit).run()
