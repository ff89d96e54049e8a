"""What becomes of a live handle inside one unit: used up on the spot, kept, or given back.

The question is asked of an expression that yields the handle, and followed through its parents
and through the names that it is bound to.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from enum import IntEnum

from aliaslint.program.library import METADATA
from aliaslint.program.units import Unit

# A handle may change while it is held: does this call lead to such an update, or keep the handle?
Question = Callable[[ast.Call], bool]

ARRAY_MEMBERS = METADATA | frozenset(
    "T at real imag abs all any argmax argmin argpartition argsort astype conj cos cummax cummin "
    "cumprod cumsum diag diagonal exp flatten item log log10 log1p log2 logaddexp logcumsumexp "
    "logsumexp max mean min moveaxis prod reciprocal reshape round rsqrt sin sort split sqrt "
    "square squeeze std sum swapaxes tolist transpose var view".split()
)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.GeneratorExp)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


OPERATIONS = (
    ast.Yield,
    ast.YieldFrom,
    ast.With,
    ast.AsyncWith,
    ast.For,
    ast.AsyncFor,
    ast.Subscript,
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.AugAssign,
    ast.comprehension,
    ast.Starred,
)


class Fate(IntEnum):
    """From least to most: used at once, returned to the caller, or held by something."""

    USED = 0
    RETURNED = 1
    HELD = 2


class View:
    """The nodes of one unit with their parents, and where its names are used."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.nodes: list[ast.AST] = []
        self.parents: dict[ast.AST, ast.AST] = {}
        self.names: dict[str, list[ast.Name]] = {}
        self.calls: list[ast.Call] = []
        self.returns: list[ast.expr] = []
        self.binders: dict[str, list[ast.AST]] = {}
        self.attributes: dict[str, list[ast.Attribute]] = {}
        stack: list[ast.AST] = list(reversed(unit.nodes))
        while stack:
            node = stack.pop()
            self.nodes.append(node)
            if isinstance(node, ast.Name):
                self.names.setdefault(node.id, []).append(node)
            elif isinstance(node, ast.Call):
                self.calls.append(node)
            elif isinstance(node, ast.Attribute):
                self.attributes.setdefault(node.attr, []).append(node)
            elif isinstance(node, ast.Return) and node.value is not None:
                self.returns.append(node.value)
            else:
                self.note_binder(node)
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
                stack.append(child)

    def note_binder(self, node: ast.AST) -> None:
        """Remember what binds a name without an `ast.Name` for it."""
        match node:
            case ast.arg(arg=name) | ast.MatchMapping(rest=str(name)):
                self.binders.setdefault(name, []).append(node)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                for name in names:
                    self.binders.setdefault(name, []).append(node)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                self.binders.setdefault(name, []).append(node)
            case ast.MatchStar(name=str(name)):
                self.binders.setdefault(name, []).append(node)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if node not in self.unit.nodes:
                    self.binders.setdefault(name, []).append(node)
            case _:
                pass

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        current = self.parents.get(node)
        while current is not None:
            yield current
            current = self.parents.get(current)

    def scope(self, node: ast.AST) -> ast.AST | None:
        return next((a for a in self.ancestors(node) if isinstance(a, SCOPES)), None)

    def loop(self, node: ast.AST) -> ast.AST | None:
        """Return the outermost loop around a node within its function."""
        found = None
        for ancestor in self.ancestors(node):
            if isinstance(ancestor, (*LOOPS, *COMPREHENSIONS)):
                found = ancestor
            if isinstance(ancestor, SCOPES):
                break
        return found

    def loads(self, name: str) -> list[ast.Name]:
        """Return where a name is read, augmented assignments to it included."""
        return [
            n
            for n in self.names.get(name, ())
            if isinstance(n.ctx, ast.Load) or isinstance(self.parents.get(n), ast.AugAssign)
        ]

    def is_outside(self, call: ast.Call) -> bool:
        """True for functions of MLX, builtins that read, and methods that only arrays have."""
        match call.func:
            case ast.Name(id=name):
                return name in READING and name not in self.unit.module.names
            case ast.Attribute():
                root = call.func
                while isinstance(root.value, ast.Attribute):
                    root = root.value
                if isinstance(root.value, ast.Name):
                    kind, value = self.unit.module.names.get(root.value.id, ("", ""))
                    module = str(value).replace(":", ".")
                    if kind in {"module", "import"} and module.split(".")[0] in {"mlx", "math"}:
                        return not module.startswith("mlx.utils") and call.func.attr not in KEEPING
                return False
            case _:
                return False


READING = frozenset(
    "len int float bool str repr print range isinstance hasattr type id abs round hash sum any all "
    "callable format".split()
)
KEEPING = frozenset(
    "custom_function Identity Dropout Dropout2d Dropout3d Sequential vjp jvp".split()
)


class Fates:
    """Follows handles through one unit.

    `may_hurt` says which calls may lead to an update that matters, `may_keep` which may keep what
    they are given. With `strict` a second name holds the handle, whatever happens to it.
    """

    def __init__(
        self,
        view: View,
        may_hurt: Question,
        may_keep: Question,
        may_return: Question = lambda call: True,
        strict: bool = False,
        elements: bool = True,
        implicit: tuple[bool, frozenset[str]] = (False, frozenset()),
    ) -> None:
        self.view = view
        self.may_hurt = may_hurt
        self.may_keep = may_keep
        self.may_return = may_return
        self.elements = elements
        self.operators, self.attributes = implicit
        self.strict = strict
        self.active: set[str] = set()

    def of(self, node: ast.expr) -> Fate:
        """Return what becomes of the handle that an expression yields."""
        parent = self.view.parents.get(node)
        match parent:
            case ast.Attribute(attr=attr):
                return self.of_member(parent, attr)
            case ast.Subscript(value=value) if value is node:
                stored = not isinstance(parent.ctx, ast.Load)
                if stored or not self.elements or isinstance(parent.slice, ast.Tuple):
                    return self.used(node, parent)
                return self.of(parent)
            case ast.Subscript() | ast.Slice() | ast.JoinedStr() | ast.FormattedValue():
                return self.used(node, parent)
            case ast.BinOp() | ast.Compare() | ast.UnaryOp():
                return self.used(node, parent)
            case ast.BoolOp() | ast.Starred() | ast.List() | ast.Tuple() | ast.Set() | ast.Dict():
                return max(self.used(node, parent), self.of(parent))
            case ast.IfExp(test=test):
                return Fate.USED if test is node else self.of(parent)
            case ast.NamedExpr(target=target):
                return max(self.of(parent), self.bound(target, parent))
            case ast.keyword():
                return self.of_argument(node, parent)
            case ast.Call(func=func):
                return Fate.HELD if func is node else self.of_argument(node, parent)
            case ast.ListComp() | ast.SetComp() | ast.DictComp():
                return self.of(parent)
            case ast.comprehension(iter=iterable, target=target):
                return self.bound(target, parent) if iterable is node else Fate.USED
            case _:
                return self.in_statement(node, parent)

    def in_statement(self, node: ast.expr, parent: ast.AST | None) -> Fate:
        match parent:
            case ast.Expr() | ast.If() | ast.While() | ast.Assert() | ast.Raise() | ast.Delete():
                return Fate.USED
            case ast.Return():
                own = self.view.scope(node) in self.view.unit.nodes
                return Fate.RETURNED if own else Fate.HELD
            case ast.Assign(targets=targets):
                return max(self.bound(target, parent) for target in targets)
            case ast.AnnAssign(target=target):
                return Fate.USED if parent.annotation is node else self.bound(target, parent)
            case ast.AugAssign(target=target):
                plain = not isinstance(node, (ast.List, ast.Tuple, ast.ListComp, ast.Dict))
                return Fate.USED if target is node or plain else Fate.HELD
            case ast.For(iter=iterable, target=target) if iterable is node:
                return self.bound(target, parent)
            case _:
                return Fate.HELD

    def of_member(self, parent: ast.Attribute, attr: str) -> Fate:
        """An attribute of the handle: arrays have few, and all of them are read on the spot."""
        if attr not in ARRAY_MEMBERS:
            return Fate.HELD
        outer = self.view.parents.get(parent)
        if attr not in METADATA and isinstance(outer, ast.Call):
            return self.used(parent, outer)
        return Fate.USED

    def used(self, node: ast.expr, parent: ast.AST) -> Fate:
        """An operand: held only while the operands behind it are evaluated."""
        seen = False
        for child in ast.iter_child_nodes(parent):
            if child is node:
                seen = True
            elif seen and any(self.hurts(c) for c in ast.walk(child)):
                return Fate.HELD
        return Fate.USED

    def hurts(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            return not self.view.is_outside(node) and self.may_hurt(node)
        if isinstance(node, ast.Attribute) and node.attr in self.attributes:
            return True
        return isinstance(node, OPERATIONS if self.operators else (ast.Yield, ast.YieldFrom))

    def of_argument(self, node: ast.expr, parent: ast.AST) -> Fate:
        call = parent
        inner: ast.AST = node
        if isinstance(call, ast.keyword):
            inner, call = call, self.view.parents[call]
        assert isinstance(call, (ast.Call, ast.ClassDef))
        if isinstance(call, ast.ClassDef):
            return Fate.HELD
        later = self.used_before_call(inner, call)
        if self.view.is_outside(call):
            return later
        if later or self.may_hurt(call) or self.may_keep(call):
            return Fate.HELD
        return self.of(call) if self.may_return(call) else Fate.USED

    def used_before_call(self, inner: ast.AST, call: ast.Call) -> Fate:
        seen = False
        for child in (*call.args, *call.keywords):
            if child is inner:
                seen = True
            elif seen and any(self.hurts(c) for c in ast.walk(child)):
                return Fate.HELD
        return Fate.USED

    # --- names

    def bound(self, target: ast.expr, statement: ast.AST) -> Fate:
        """Return what becomes of a handle that is bound to a target."""
        match target:
            case ast.Name(id=name):
                return self.of_name(name, target)
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                return max((self.bound(e, statement) for e in elts), default=Fate.USED)
            case ast.Starred(value=value):
                return self.bound(value, statement)
            case _:
                return Fate.HELD

    def of_name(self, name: str, binding: ast.Name) -> Fate:
        """A name holds on to its handle: what happens to it after this binding?"""
        view = self.view
        if name in self.active:
            return Fate.USED
        if not view.unit.first or self.strict:
            return Fate.HELD
        everywhere = view.names[name]
        scope = view.scope(binding)
        if any(view.scope(n) is not scope for n in everywhere):
            return Fate.HELD
        self.active.add(name)
        loads = view.loads(name)
        result = max((self.of(load) for load in loads), default=Fate.USED)
        if result < Fate.HELD and self.changes_between(binding, loads):
            result = Fate.HELD
        self.active.discard(name)
        return result

    def changes_between(self, binding: ast.Name, loads: list[ast.Name]) -> bool:
        """True if a call that hurts may run after the binding and before some load."""
        start = self.bound_from(binding)
        loop = self.view.loop(binding)
        around = {id(n) for n in ast.walk(loop)} if loop is not None else set()
        last = max((position(load) for load in loads), default=(0, 0))
        looped = any(id(load) in around for load in loads)
        whole = self.operators or self.attributes
        for call in self.view.nodes if whole else self.view.calls:
            if whole and not self.hurts(call):
                continue
            after = start < position(call) and position(call) < last
            in_loop = looped and id(call) in around
            later_loop = self.view.loop(call)
            if later_loop is not None and later_loop is not loop and not after:
                inside = {id(n) for n in ast.walk(later_loop)}
                after = start < end_position(call) and any(id(load) in inside for load in loads)
            if (after or in_loop) and self.hurts(call):
                return True
        return False

    def bound_from(self, binding: ast.Name) -> tuple[int, int]:
        """Return where the statement that binds a name has evaluated what it binds."""
        for ancestor in self.view.ancestors(binding):
            match ancestor:
                case ast.For(iter=iterable) | ast.AsyncFor(iter=iterable):
                    return end_position(iterable)
                case ast.NamedExpr() | ast.stmt():
                    return end_position(ancestor)
                case ast.comprehension():
                    return position(binding)
                case _:
                    pass
        return position(binding)


def bound_values(name: str, view: View) -> Iterator[ast.expr | None]:
    """Yield the values that a name is bound to in a unit; None for what is no expression."""
    for node in view.names.get(name, ()):
        if isinstance(node.ctx, ast.Store):
            yield from value_of(node, view)
    for _ in view.binders.get(name, ()):
        yield None


NUMBER = ast.Constant(0)


def value_of(node: ast.Name, view: View) -> Iterator[ast.expr | None]:
    """Yield the value that one binding gives a name."""
    parent = view.parents.get(node)
    match parent:
        case ast.Assign(value=value, targets=targets) if node in targets:
            yield value if len(targets) == 1 or isinstance(value, ast.Constant) else None
        case ast.NamedExpr(value=value):
            yield value
        case ast.AnnAssign(value=value):
            if value is not None:
                yield value
        case ast.AugAssign():
            pass
        case ast.For(iter=iterable) | ast.comprehension(iter=iterable):
            yield NUMBER if is_call_of(iterable, "range") else None
        case ast.Tuple(elts=elts):
            yield unpacked(elts.index(node), len(elts), view.parents.get(parent))
        case _:
            yield None


def unpacked(index: int, count: int, statement: ast.AST | None) -> ast.expr | None:
    """Return what a tuple of targets takes at one place, where it can be seen."""
    match statement:
        case ast.Assign(value=ast.Attribute(attr="shape")):
            return NUMBER
        case ast.Assign(value=ast.Tuple(elts=elts)) if len(elts) == count:
            return None if any(isinstance(e, ast.Starred) for e in elts) else elts[index]
        case ast.Assign(value=ast.Call() as value):
            return value  # new where every part of the result is
        case ast.For(iter=iterable) | ast.comprehension(iter=iterable):
            return NUMBER if index == 0 and is_call_of(iterable, "enumerate") else None
        case _:
            return None


def is_call_of(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def position(node: ast.AST) -> tuple[int, int]:
    return (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))


def end_position(node: ast.AST) -> tuple[int, int]:
    return (getattr(node, "end_lineno", 0) or 0, getattr(node, "end_col_offset", 0) or 0)
