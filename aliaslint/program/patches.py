"""Methods that a class is given from outside its body: `Class.name = function`."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from aliaslint.program.modules import Module, Symbol, collect_names, top_level
from aliaslint.program.types import ClassOf, Ext, FuncOf

SymbolOf = Callable[[Module, ast.expr], Symbol | None]
# One look at the text says whether functions of a module may do it: most never do.
INSIDE = re.compile(
    r"^[ \t]+(?:(?!self\b|cls\b)[A-Za-z_][\w.]*\.\w+ *= *[A-Za-z_]|setattr\()", re.MULTILINE
)
ROLES = {"property": "property", "staticmethod": "static", "classmethod": "class"}


@dataclass(frozen=True, slots=True)
class Patch:
    """`function` becomes `name` of the class; `sure` where the module itself does it: what
    a function does may never be done."""

    class_key: str
    name: str
    role: str
    function: str
    sure: bool


def patches(module: Module, symbol_of: SymbolOf) -> Iterator[Patch]:
    """Yield the functions of modules that the statements of this one make methods."""
    for node in top_level(module.tree.body):
        yield from _patch(module, node, symbol_of, sure=True)
    if INSIDE.search("\n".join(module.lines)):
        for function in ast.walk(module.tree):
            if isinstance(function, ast.FunctionDef):
                yield from _inside(module, function, symbol_of)


def _inside(module: Module, function: ast.FunctionDef, symbol_of: SymbolOf) -> Iterator[Patch]:
    nodes = list(ast.walk(function))
    scope = copy.copy(module)
    scope.names = dict(module.names)
    collect_names(scope, [n for n in nodes if isinstance(n, (ast.Import, ast.ImportFrom))])
    own = {n.name for n in nodes if isinstance(n, ast.FunctionDef)}
    for name in own & scope.names.keys():
        del scope.names[name]  # a closure: analysed where it is made
    for node in nodes:
        if isinstance(node, (ast.Assign, ast.Expr)):
            yield from _patch(scope, node, symbol_of, sure=False)


def _patch(module: Module, node: ast.stmt, symbol_of: SymbolOf, sure: bool) -> Iterator[Patch]:
    match node:
        case ast.Assign(targets=[ast.Attribute(value=owner, attr=name)], value=value):
            pass
        case ast.Expr(
            value=ast.Call(
                func=ast.Name(id="setattr"), args=[owner, ast.Constant(value=str(name)), value]
            )
        ):
            pass
        case _:
            return
    made = symbol_of(module, owner)
    if isinstance(made, ClassOf):
        for role, function in _roles(module, value, symbol_of):
            yield Patch(made.key, name, role, function, sure)


def _roles(module: Module, value: ast.expr, symbol_of: SymbolOf) -> Iterator[tuple[str, str]]:
    """Yield role and function: two for a property with a setter."""
    match symbol_of(module, value), value:
        case FuncOf(key=key), _:
            yield "method", key
        case _, ast.Call(func=func, args=[given, *rest]):
            wrapper = symbol_of(module, func)
            role = (
                ROLES.get(wrapper.dotted.rpartition(".")[2]) if isinstance(wrapper, Ext) else None
            )
            function = symbol_of(module, given)
            if role is not None and isinstance(function, FuncOf):
                yield role, function.key
            setter = symbol_of(module, rest[0]) if role == "property" and rest else None
            if isinstance(setter, FuncOf):
                yield "setter", setter.key
        case _:
            pass
