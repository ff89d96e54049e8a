"""What a unit can lead to, by the names that its text mentions, and what can lead to it.

Objects have classes, and a class is in reach only where something in reach names it. A method is
in reach if its class and its name are. All of it errs on the side of too much.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from aliaslint.program.modules import Module
from aliaslint.program.units import Class, Program, Unit


class Reach:
    """Reachability between the units of a program; `protocol` methods are in reach by name."""

    def __init__(self, program: Program, protocol: frozenset[str]) -> None:
        self.program = program
        self.protocol = protocol
        self.stems = {module.dotted.rpartition(".")[2] for module in program.modules}
        self._names: dict[str, dict[str, list[Unit | Class]]] = {}
        self._loose: dict[str, bool] = {}
        self._mentions: dict[Unit, list[Unit | Class]] = {}
        self._forward: dict[Unit, frozenset[Unit]] = {}
        self._loosely: dict[tuple[Unit | Class, frozenset[str]], frozenset[Unit]] = {}

    # --- names

    def names(self, module_id: str) -> dict[str, list[Unit | Class]]:
        """Return what the module's own names and imports may stand for, by name alone."""
        if module_id not in self._names:
            self._names[module_id] = self._find_names(module_id)
        return self._names[module_id]

    def _find_names(self, module_id: str) -> dict[str, list[Unit | Class]]:
        body = self.program.body[module_id]
        found: dict[str, list[Unit | Class]] = {}
        loose = bool(body.module.stars)
        for name, (kind, value) in body.module.names.items():
            match kind:
                case "func":
                    found[name] = [
                        u for u in self.program.functions.get(name, ()) if u.module is body.module
                    ]
                case "class":
                    found[name] = [
                        c for c in self.program.classes.get(name, ()) if c.module is body.module
                    ]
                case "import":
                    attr = str(value).rpartition(":")[2]
                    found[name] = self.globally(attr)
                    loose |= attr in self.stems
                case "module":
                    loose |= str(value).partition(".")[0] not in OUTSIDE
                case _:
                    found[name] = [body]
        self._loose[module_id] = loose
        return found

    def globally(self, name: str) -> list[Unit | Class]:
        """Return every function, class and module variable of this name."""
        found: list[Unit | Class] = [*self.program.functions.get(name, ())]
        found.extend(self.program.classes.get(name, ()))
        for module in self.program.modules:
            if name in module.names and module.names[name][0] == "var":
                found.append(self.program.body[module.id])
        return found

    def mentions(self, unit: Unit) -> list[Unit | Class]:
        """Return the functions, classes and module variables that a unit's text names."""
        if unit not in self._mentions:
            names = self.names(unit.module.id)
            found: list[Unit | Class] = []
            for word in unit.words:
                if word in names:
                    found.extend(names[word])
                elif self._loose[unit.module.id]:
                    found.extend(self.program.functions.get(word, ()))
                    found.extend(self.program.classes.get(word, ()))
            self._mentions[unit] = found
        return self._mentions[unit]

    # --- texts

    def lines(self, module: Module, name: str) -> Iterator[tuple[Unit, int]]:
        """Yield where the text of a module has `name` as a word: the unit and the line."""
        text = self.program.texts[module.id]
        line, counted = 1, 0
        place = text.find(name)
        while place >= 0:
            end = place + len(name)
            if not (is_word(text[place - 1 : place]) or is_word(text[end : end + 1])):
                line += text.count("\n", counted, place)
                counted = place
                yield self.program.unit_at(module.id, line), line
            place = text.find(name, end)

    def places(self, module: Module, name: str) -> Iterator[Unit]:
        for unit, _ in self.lines(module, name):
            yield unit

    # --- forwards

    def forward(self, start: Unit) -> frozenset[Unit]:
        """Return the units that running `start` may run, itself included."""
        if start not in self._forward:
            walk = Walk(self)
            walk.add_unit(start)
            own = self.program.class_of.get(start)
            for made in self.program.family(own) if own else ():
                walk.add_class(made)
            walk.run()
            self._forward[start] = frozenset(walk.units)
        return self._forward[start]

    def loosely(self, start: Unit | Class, words: frozenset[str]) -> frozenset[Unit]:
        """Return what may run if every object may be at hand: methods are in reach by name."""
        key = (start, frozenset(w for w in words if w in self.program.methods))
        if key not in self._loosely:
            walk = Walk(self, loose=True)
            if isinstance(start, Class):
                walk.add_class(start)
            else:
                walk.add_unit(start)
            walk.add_words(words)
            walk.run()
            self._loosely[key] = frozenset(walk.units)
        return self._loosely[key]

    def of_class(self, made: Class) -> frozenset[Unit]:
        """Return what making and calling an instance of a class may run."""
        walk = Walk(self)
        walk.add_class(made)
        walk.run()
        return frozenset(walk.units)


OUTSIDE = frozenset(
    "mlx numpy math os sys re time json typing dataclasses functools collections copy itertools "
    "pathlib argparse inspect random logging threading contextlib enum abc struct".split()
)


class Walk:
    """One walk along everything that is in reach."""

    def __init__(self, reach: Reach, loose: bool = False) -> None:
        self.reach = reach
        self.loose = loose
        self.units: set[Unit] = set()
        self.classes: set[Class] = set()
        self.words: set[str] = set()
        self.pending: list[Unit] = []
        self.waiting: dict[str, list[Unit]] = {}

    def add_unit(self, unit: Unit) -> None:
        if unit not in self.units:
            self.units.add(unit)
            self.pending.append(unit)

    def add_class(self, made: Class) -> None:
        """Bring a class into reach: what runs by itself, and the methods named so far."""
        if made in self.classes:
            return
        self.classes.add(made)
        self.add_unit(made.body)
        for base in made.bases:
            for found in self.reach.program.classes.get(base, ()):
                self.add_class(found)
        for name, units in made.methods.items():
            if units[0].special or name in self.words:
                for unit in units:
                    self.add_unit(unit)
            else:
                self.waiting.setdefault(name, []).extend(units)

    def run(self) -> None:
        while self.pending:
            unit = self.pending.pop()
            for found in self.reach.mentions(unit):
                if isinstance(found, Class):
                    self.add_class(found)
                else:
                    self.add_unit(found)
            self.add_words(unit.words)

    def add_words(self, words: frozenset[str]) -> None:
        for word in words - self.words:
            self.words.add(word)
            for method in self.waiting.pop(word, ()):
                self.add_unit(method)
            if self.loose:
                for method in self.reach.program.methods.get(word, ()):
                    self.add_unit(method)
            elif word in self.reach.protocol:
                self.add_protocol(word)

    def add_protocol(self, name: str) -> None:
        for unit in self.reach.program.methods.get(name, ()):
            self.add_class(self.reach.program.class_of[unit])
            for made in self.reach.program.family(self.reach.program.class_of[unit]):
                self.add_class(made)


class Backward:
    """Everything that may lead to some units: who names them or their classes, and so on.

    A method runs only where an object of its class is in reach, so who names the class is enough.
    """

    def __init__(self, reach: Reach) -> None:
        self.reach = reach
        self.program = reach.program
        self.units: set[Unit] = set()
        self.seen: set[tuple[str, str]] = set()
        self.holding: set[Class] = set()
        self.pending: list[Unit] = []

    def run(self, start: Iterable[Unit]) -> set[Unit]:
        self.pending.extend(start)
        done: set[Unit] = set()
        while self.pending:
            unit = self.pending.pop()
            if unit in done:
                continue
            done.add(unit)
            self.units.add(unit)
            if unit.owner:
                self.hold(self.program.class_of[unit])
                if unit.name in self.reach.protocol:
                    for module in self.program.modules:
                        self.pending.extend(self.in_module(module, unit.name))
            elif unit.name:
                self.pending.extend(self.naming(unit.name, unit.module))
        return self.units

    def hold(self, made: Class) -> None:
        """Take in the methods of a class that may hold what is looked for, and who names it."""
        if made in self.holding:
            return
        self.holding.add(made)
        self.units.update(made.units())
        self.pending.extend(self.naming(made.name, made.module))
        for below in self.program.family(made)[1:]:
            self.hold(below)

    def naming(self, name: str, home: Module) -> Iterator[Unit]:
        """Yield the units that may name what a module defines, aliases included."""
        if (home.id, name) in self.seen:
            return
        self.seen.add((home.id, name))
        stem = home.dotted.rpartition(".")[2]
        for module in self.program.modules:
            if name not in self.program.texts[module.id]:
                continue
            if module is home or module.stars:
                yield from self.in_module(module, name)
                continue
            dotted = False
            for local, (kind, value) in module.names.items():
                text = str(value)
                if kind == "import" and text.endswith(f":{name}"):
                    yield from self.in_module(module, local)
                elif kind == "module" or text.endswith(f":{stem}"):
                    dotted = True
            if dotted and f".{name}" in self.program.texts[module.id]:
                yield from self.in_module(module, name)

    def in_module(self, module: Module, name: str) -> Iterator[Unit]:
        """Yield the units of a module whose text has `name` as a word."""
        for unit, line in self.reach.lines(module, name):
            if unit.name or unit.owner:
                yield unit
            else:
                yield from self.in_statement(unit, line)

    def in_statement(self, body: Unit, line: int) -> Iterator[Unit]:
        """Yield who names the variables that a statement of a module binds."""
        for node in body.nodes:
            if node.lineno <= line <= (node.end_lineno or node.lineno):
                if not isinstance(node, (ast.Import, ast.ImportFrom)):
                    self.units.add(body)
                    for inner in ast.walk(node):
                        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                            yield from self.naming(inner.id, body.module)


STORES = re.compile(
    r"\.\w+(?:\[[^\n]*\])?[ \t]*(?::[^=\n]+)?=(?!=)"
    r"|\.(?:append|appendleft|extend|insert|add|update|setdefault)\(|setattr|__dict__"
)


def is_word(character: str) -> bool:
    return character == "_" or character.isalnum()
