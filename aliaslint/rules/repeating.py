"""Whether what an update writes to may be named twice: `a.b.x op= e` as `a.b.x = a.b.x op e`.

The second time comes after `e`. It gives the same object where nothing in the owner runs code
of the program, and nothing in `e` does that could rebind a part of the owner. What cannot be
shown to be so is evaluated once, in a variable of its own: that is right everywhere.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from aliaslint.flow.context import Analysis
from aliaslint.flow.values import Where
from aliaslint.lower.lowering import at as position
from aliaslint.program.library import ARRAY_METHODS, ARRAY_SCALARS
from aliaslint.program.modules import Module
from aliaslint.program.types import Ext
from aliaslint.rules.positions import nodes_at

_PLAIN = (ast.Name, ast.Constant, ast.Slice, ast.expr_context, ast.operator, ast.unaryop)
_OPERATIONS = (ast.BinOp, ast.UnaryOp, ast.Subscript)
_QUIET = (ast.Tuple, ast.List, ast.IfExp, ast.BoolOp, ast.Compare, ast.boolop, ast.cmpop)
_BUILTINS = frozenset(
    f"builtins.{name}" for name in "len int float bool abs min max round range isinstance".split()
)
_CALLING = frozenset({"mlx.core.vjp", "mlx.core.jvp", "mlx.core.export_function"})
_ARRAY_METHODS = ARRAY_METHODS | ARRAY_SCALARS
_LOOKUPS = frozenset({"__getattr__", "__getattribute__"})


@dataclass(frozen=True, slots=True)
class Program:
    """What the classes of the modules at hand define, by name.

    `computed` attributes are properties and whatever else a decorator or a call makes of them;
    `special` are the methods behind operators, of the modules that are looked at.
    """

    computed: frozenset[str]
    methods: frozenset[str]
    special: frozenset[str]


def program(analysis: Analysis) -> Program:
    """Collect the names that the classes of all loaded modules define."""
    computed, methods, special = set[str](), set[str](), set[str]()
    for module in analysis.modules.by_id.values():
        for node in ast.walk(module.tree):
            computed.update(_patched(node))
            if not isinstance(node, ast.ClassDef):
                continue
            computed.update(_computed(node.body))
            names = {f.name for f in _functions(node)}
            methods |= names
            if module.in_target:
                special |= {name for name in names if name.startswith("__")}
    return Program(frozenset(computed), frozenset(methods), frozenset(special))


def is_repeatable(analysis: Analysis, known: Program, where: Where) -> bool:
    """Whether evaluating what the update at `where` writes to a second time changes nothing."""
    module = analysis.modules.by_id[where.module]
    path = nodes_at(module.tree, where.at, ast.stmt)
    if not path or not isinstance(path[-1], ast.AugAssign):
        return False
    update = path[-1]
    look = _Look(analysis, known, module, _bound(path))
    owners = [n for n in ast.walk(update.target) if n is not update.target]
    return all(map(look.is_steady, owners)) and all(map(look.is_quiet, ast.walk(update.value)))


@dataclass(frozen=True, slots=True)
class _Look:
    """Looks at single nodes of one module; `shadowed` are names bound around the place."""

    analysis: Analysis
    known: Program
    module: Module
    shadowed: frozenset[str]

    def is_steady(self, node: ast.AST) -> bool:
        """Whether a node of an owner runs no code of the program."""
        if isinstance(node, ast.Attribute):
            lookups = self.known.special & _LOOKUPS
            return not (lookups or node.attr in self.known.computed or self._runs(node))
        if isinstance(node, _OPERATIONS):
            return not (self._is_defined(node) or self._runs(node))
        return isinstance(node, (*_PLAIN, ast.Tuple))

    def is_quiet(self, node: ast.AST) -> bool:
        """Whether a node of the right-hand side runs no code of the program."""
        if isinstance(node, ast.Call):
            return self._is_harmless(node)
        return isinstance(node, (*_QUIET, ast.keyword)) or self.is_steady(node)

    def _is_harmless(self, call: ast.Call) -> bool:
        """Whether it calls MLX, a plain builtin or a method that arrays have and no class here."""
        if self._runs(call):
            return False
        symbol = None
        if not {n.id for n in ast.walk(call.func) if isinstance(n, ast.Name)} & self.shadowed:
            symbol = self.analysis.classes.symbol_of(self.module, call.func)
        match symbol, call.func:
            case Ext(dotted=dotted), _:
                if dotted in _BUILTINS:
                    return not call.keywords  # `max(rows, key=f)` calls what it is given.
                return dotted.startswith(("mlx.core.", "math.")) and dotted not in _CALLING
            case None, ast.Attribute(attr=name):
                return name in _ARRAY_METHODS and name not in self.known.methods
        return False

    def _runs(self, node: ast.expr) -> bool:
        """Whether the analysis has seen a function of the program run here."""
        return bool(self.analysis.resolved.get(Where(self.module.id, position(node))))

    def _is_defined(self, node: ast.expr) -> bool:
        """Whether a class here gives an operator a meaning of its own."""
        if isinstance(node, ast.Subscript):
            return "__getitem__" in self.known.special
        return bool(self.known.special & _ARITHMETIC)


_ARITHMETIC = frozenset(
    f"__{prefix}{name}__"
    for name in "add sub mul matmul truediv floordiv mod pow and or xor lshift rshift".split()
    for prefix in ("", "r")
) | {"__neg__", "__pos__", "__invert__"}


def _functions(node: ast.ClassDef) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for child in ast.walk(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child


def _computed(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the attributes of a class that may be properties: decorated, called for, renamed."""
    for child in body:
        match child:
            case ast.FunctionDef(name=name, decorator_list=[_, *_]):
                yield name
            case ast.Assign(targets=targets, value=ast.Call() | ast.Name() | ast.Attribute()):
                yield from (t.id for t in targets if isinstance(t, ast.Name))
            case ast.If(body=then, orelse=other):
                yield from _computed(then)
                yield from _computed(other)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Call(func=maker)):
                if not ast.unparse(maker).endswith("field"):
                    yield name
            case _:
                pass


def _patched(node: ast.AST) -> Iterator[str]:
    """Yield the attribute that `Cache.current = property(...)` makes a property."""
    match node:
        case ast.Assign(targets=[ast.Attribute(attr=name)], value=ast.Call(func=maker)):
            if ast.unparse(maker).endswith("property"):
                yield name


def _bound(path: list[ast.AST]) -> frozenset[str]:
    """Return the names that the functions around a place bind: they hide the module's."""
    functions = [n for n in path if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    names = set[str]()
    for node in (node for function in functions for node in ast.walk(function)):
        if isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
    return frozenset(names)
