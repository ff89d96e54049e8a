"""Methods that a class is given from outside its body: `Class.name = function`."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from aliaslint.program.modules import DefNode, Module, Symbol, collect_names, top_level
from aliaslint.program.types import ClassOf, Ext, FuncOf

# The key of a function of a module, or a lambda or nested function as a definition.
Given = str | DefNode
Nested = Mapping[str, DefNode]
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
    function: Given
    sure: bool


def patches(module: Module, symbol_of: SymbolOf) -> Iterator[Patch]:
    """Yield the functions of modules that the statements of this one make methods."""
    for node in top_level(module.tree.body):
        yield from _patch(module, node, symbol_of, sure=True)
    if INSIDE.search("\n".join(module.lines)):
        seen: set[ast.AST] = set()
        for function in ast.walk(module.tree):  # outer ones before those in them
            if isinstance(function, ast.FunctionDef) and function not in seen:
                nodes = list(ast.walk(function))
                seen.update(nodes)
                yield from _inside(module, function, nodes, symbol_of)


def _inside(
    module: Module, function: ast.FunctionDef, nodes: list[ast.AST], symbol_of: SymbolOf
) -> Iterator[Patch]:
    scope = copy.copy(module)
    scope.names = dict(module.names)
    collect_names(scope, [n for n in nodes if isinstance(n, (ast.Import, ast.ImportFrom))])
    own = {n.name: n for n in nodes if isinstance(n, ast.FunctionDef) and n is not function}
    for name in own.keys() & scope.names.keys():
        del scope.names[name]
    for node in nodes:
        if isinstance(node, (ast.Assign, ast.Expr, ast.For)):
            yield from _patch(scope, node, symbol_of, sure=False, own=own)


def _patch(
    module: Module, node: ast.stmt, symbol_of: SymbolOf, sure: bool, own: Nested | None = None
) -> Iterator[Patch]:
    match node:
        case ast.Assign(targets=[ast.Attribute(value=owner, attr=name)], value=value):
            pass
        case ast.Expr(
            value=ast.Call(
                func=ast.Name(id="setattr"), args=[owner, ast.Constant(value=str(name)), value]
            )
        ):
            pass
        case ast.For(
            target=ast.Name(id=each), iter=ast.Tuple(elts=classes) | ast.List(elts=classes)
        ):
            for cls in classes:
                one = symbol_of(module, cls)
                if isinstance(one, ClassOf):
                    for inner in node.body:
                        yield from _patch(module, inner, _naming(symbol_of, each, one), sure, own)
            return
        case _:
            return
    made = symbol_of(module, owner)
    if isinstance(made, ClassOf):
        here = made.key.partition(":")[0] == module.id
        for role, function in roles(module, value, symbol_of, own or {}):
            if isinstance(function, str) or here:  # what is nested is read like the class's own
                yield Patch(made.key, name, role, function, sure)


def _naming(symbol_of: SymbolOf, name: str, meant: ClassOf) -> SymbolOf:
    """Resolve as `symbol_of` does, but for one name."""

    def resolve(module: Module, node: ast.expr) -> Symbol | None:
        if isinstance(node, ast.Name) and node.id == name:
            return meant
        return symbol_of(module, node)

    return resolve


def roles(
    module: Module, value: ast.expr, symbol_of: SymbolOf, own: Nested
) -> Iterator[tuple[str, Given]]:
    """Yield role and function: two for a property with a setter."""
    known = _function(module, value, symbol_of, own)
    match value:
        case _ if known is not None:
            yield "method", known
        case ast.Call(func=func, args=[given, *rest]):
            wrapper = symbol_of(module, func)
            role = (
                ROLES.get(wrapper.dotted.rpartition(".")[2]) if isinstance(wrapper, Ext) else None
            )
            function = _function(module, given, symbol_of, own)
            if role is not None and function is not None:
                yield role, function
            given_too = role == "property" and rest
            setter = _function(module, rest[0], symbol_of, own) if given_too else None
            if setter is not None:
                yield "setter", setter
        case _:
            pass


def _function(module: Module, value: ast.expr, symbol_of: SymbolOf, own: Nested) -> Given | None:
    match value:
        case ast.Name(id=name) if name in own:
            return own[name]
        case ast.Lambda(args=args, body=body):
            made = ast.FunctionDef("<lambda>", args, [ast.Return(body)], [], None, None)
            ast.copy_location(made, value)
            ast.copy_location(made.body[0], value)
            return made
        case _:
            symbol = symbol_of(module, value)
            return symbol.key if isinstance(symbol, FuncOf) else None
