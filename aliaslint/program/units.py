"""A program cut into units: functions, methods of classes, and what is left of each module.

A unit is interpreted as a whole or not at all. Functions and classes nested in a function belong
to its unit. Whatever is asked about a unit is first asked of its text, which is cheap.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from aliaslint.program.modules import DefNode, Module

WORD = re.compile(r"[^\W\d]\w*")


@dataclass(slots=True, eq=False, repr=False)
class Unit:
    """A piece of a module: `name` is empty for a class body and for a module's statements.

    `owner` is the class that it stands in, empty outside of classes. `first` and `last` are the
    lines of a function, decorators included, and zero for what is no function.
    """

    module: Module
    name: str
    owner: str
    nodes: list[ast.stmt]
    first: int = 0
    last: int = 0
    _words: frozenset[str] | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return f"<{self.module.path.name}:{self.first} {self.owner}.{self.name}>"

    @property
    def text(self) -> str:
        lines = self.module.lines
        if self.first:
            return "\n".join(lines[self.first - 1 : self.last])
        return "\n".join("\n".join(lines[node.lineno - 1 : node.end_lineno]) for node in self.nodes)

    @property
    def words(self) -> frozenset[str]:
        """The words of the text, those of strings and comments included."""
        if self._words is None:
            self._words = frozenset(WORD.findall(self.text))
        return self._words

    @property
    def special(self) -> bool:
        """True for methods that run without being named: `__call__`, `__init__`, …"""
        return self.name.startswith("__") and self.name.endswith("__")


@dataclass(slots=True, eq=False, repr=False)
class Class:
    """A class at the top level of a module: its methods by name, its body, and its bases."""

    module: Module
    name: str
    body: Unit
    bases: tuple[str, ...]
    methods: dict[str, list[Unit]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<class {self.module.path.name} {self.name}>"

    @property
    def key(self) -> str:
        return f"{self.module.id}:{self.name}"

    def units(self) -> Iterator[Unit]:
        yield self.body
        for units in self.methods.values():
            yield from units


class Program:
    """All units of some modules, by name and by place."""

    def __init__(self, modules: Iterable[Module]) -> None:
        self.modules = list(modules)
        self.texts = {module.id: "\n".join(module.lines) for module in self.modules}
        self.units: list[Unit] = []
        self.functions: dict[str, list[Unit]] = {}
        self.methods: dict[str, list[Unit]] = {}
        self.classes: dict[str, list[Class]] = {}
        self.class_of: dict[Unit, Class] = {}
        self.body: dict[str, Unit] = {}
        self.subclasses: dict[str, list[Class]] = {}
        self._starts: dict[str, tuple[list[int], list[tuple[int, int, Unit]]]] = {}
        self._class_places: list[tuple[int, int, Unit]] = []
        for module in self.modules:
            self._split(module)

    def _split(self, module: Module) -> None:
        begin = len(self.units)
        rest = Unit(module, "", "", [])
        for node in flat(module.tree.body):
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    unit = function_unit(module, node, "")
                    self.units.append(unit)
                    self.functions.setdefault(unit.name, []).append(unit)
                    rest.nodes.extend(header(node))
                case ast.ClassDef():
                    self._split_class(module, node)
                    rest.nodes.extend(
                        ast.copy_location(ast.Expr(d), d) for d in node.decorator_list
                    )
                case _:
                    rest.nodes.append(node)
        places = [(u.first, u.last, u) for u in self.units[begin:] if u.first]
        places += self._class_places
        places.sort(key=lambda place: (place[0], -place[1]))
        self._starts[module.id] = ([place[0] for place in places], places)
        self._class_places = []
        self.units.append(rest)
        self.body[module.id] = rest

    def _split_class(self, module: Module, node: ast.ClassDef) -> None:
        rest = Unit(module, "", node.name, [])
        outside = (*node.bases, *(k.value for k in node.keywords))
        rest.nodes.extend(ast.copy_location(ast.Expr(e), e) for e in outside)
        bases = tuple(WORD.findall(ast.unparse(base))[-1] for base in node.bases)
        made = Class(module, node.name, rest, bases)
        for inner in flat(node.body):
            if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)):
                unit = function_unit(module, inner, node.name)
                self.units.append(unit)
                made.methods.setdefault(unit.name, []).append(unit)
                self.methods.setdefault(unit.name, []).append(unit)
                self.class_of[unit] = made
                rest.nodes.extend(header(inner))
            else:
                rest.nodes.append(inner)
        self.units.append(rest)
        self._class_places.append((node.lineno, node.end_lineno or node.lineno, rest))
        self.class_of[rest] = made
        self.classes.setdefault(node.name, []).append(made)
        for base in bases:
            self.subclasses.setdefault(base, []).append(made)

    def unit_at(self, module_id: str, line: int) -> Unit:
        """Return the unit that a line belongs to: of a function, a class, or the module."""
        starts, places = self._starts[module_id]
        for index in range(bisect_right(starts, line) - 1, -1, -1):
            first, last, unit = places[index]
            if line <= last:
                return unit
            if not unit.owner:
                break
        return self.body[module_id]

    def line_of(self, module_id: str, offset: int) -> int:
        return self.texts[module_id].count("\n", 0, offset) + 1

    def family(self, made: Class) -> list[Class]:
        """Return a class and all that inherit from it, by name."""
        found = [made]
        for item in found:
            found.extend(c for c in self.subclasses.get(item.name, ()) if c not in found)
        return found


def flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a body, and the definitions inside compound ones once more."""
    for node in body:
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield from definitions(node)


def definitions(node: ast.stmt) -> Iterator[ast.stmt]:
    """Yield the functions and classes that a compound statement of a module holds."""
    for part in ("body", "orelse", "finalbody", "handlers"):
        for inner in getattr(node, part, ()):
            if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield inner
            else:
                yield from definitions(inner)


def header(node: DefNode) -> Iterator[ast.stmt]:
    """Yield what a definition evaluates where it stands: decorators and defaults."""
    args = node.args
    for expr in (*node.decorator_list, *args.defaults, *args.kw_defaults):
        if expr is not None and not isinstance(expr, ast.Constant):
            yield ast.copy_location(ast.Expr(expr), expr)


def function_unit(module: Module, node: DefNode, owner: str) -> Unit:
    first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
    return Unit(module, node.name, owner, [node], first, node.end_lineno or node.lineno)
