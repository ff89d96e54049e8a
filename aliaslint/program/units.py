"""A module cut into units: its functions, the methods of its classes, and what is left over.

A unit is what is either interpreted on its own or not at all. Functions and classes nested in a
function belong to its unit.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from aliaslint.program.modules import DefNode, Module

WORD = re.compile(r"[^\W\d]\w*")


@dataclass(slots=True, eq=False)
class Unit:
    """A piece of a module: `name` is empty for a class body and for a module's statements.

    `owner` is the class that it stands in, empty outside of classes. `first` and `last` are the
    lines of a function, decorators included.
    """

    module: Module
    name: str
    owner: str
    nodes: list[ast.stmt]
    first: int = 0
    last: int = 0
    words: frozenset[str] = field(default_factory=frozenset)

    @property
    def text(self) -> str:
        return "\n".join(self.module.lines[self.first - 1 : self.last])


def units(module: Module) -> Iterator[Unit]:
    """Yield the units of a module, each with the words of its text."""
    rest = Unit(module, "", "", [])
    for node in flat(module.tree.body):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield function_unit(module, node, "")
                rest.nodes.extend(header(node))
            case ast.ClassDef():
                yield from class_units(module, node)
                rest.nodes.extend(ast.Expr(d) for d in node.decorator_list)
            case _:
                rest.nodes.append(node)
    rest.words = words_of(rest)
    yield rest


def class_units(module: Module, node: ast.ClassDef) -> Iterator[Unit]:
    rest = Unit(module, "", node.name, [])
    rest.nodes.extend(ast.Expr(e) for e in (*node.bases, *(k.value for k in node.keywords)))
    for inner in flat(node.body):
        if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield function_unit(module, inner, node.name)
            rest.nodes.extend(header(inner))
        else:
            rest.nodes.append(inner)
    rest.words = words_of(rest)
    yield rest


def flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module or class; a compound one also as what it holds.

    Statements that hold definitions are seen whole as well: they run with the module.
    """
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node
            case ast.If() | ast.For() | ast.While() | ast.With():
                yield node
                yield from definitions([*node.body, *getattr(node, "orelse", ())])
            case _ if hasattr(node, "handlers"):
                yield node
                parts = [*node.body, *node.orelse, *node.finalbody]  # type: ignore[attr-defined]
                for handler in node.handlers:
                    parts.extend(handler.body)
                yield from definitions(parts)
            case _:
                yield node


def definitions(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in flat(body):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node


def header(node: DefNode) -> Iterator[ast.stmt]:
    """Yield what a definition evaluates where it stands: decorators and defaults."""
    args = node.args
    for expr in (*node.decorator_list, *args.defaults, *args.kw_defaults):
        if expr is not None and not isinstance(expr, ast.Constant):
            yield ast.Expr(expr)


def function_unit(module: Module, node: DefNode, owner: str) -> Unit:
    first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
    unit = Unit(module, node.name, owner, [node], first, node.end_lineno or node.lineno)
    unit.words = frozenset(WORD.findall(unit.text))
    return unit


def words_of(unit: Unit) -> frozenset[str]:
    """Return the names that the statements of a unit mention, and the words of its strings."""
    found: set[str] = set()
    for node in unit.nodes:
        for inner in ast.walk(node):
            match inner:
                case ast.Name(id=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                    found.add(name)
                case ast.Attribute(attr=name):
                    found.add(name)
                case ast.Constant(value=str(text)):
                    found.update(WORD.findall(text))
                case ast.alias(name=name, asname=asname):
                    found.update(name.split("."))
                    found.add(asname or name)
                case _:
                    pass
    return frozenset(found)
