"""Which functions can yield a finding at all, so that only they are interpreted.

The answer errs on the side of too much. A finding needs an in-place update of an array and
something else that holds the array meanwhile. Both are looked for in the syntax: an update of an
attribute whose class may keep an array there, or of a name that is not the only one; and a load
of such an attribute that is not used up on the spot. A function matters if it can lead to both.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from aliaslint.program.callees import Callees
from aliaslint.program.events import Update, updates
from aliaslint.program.fates import Fate, Fates, View, bound_values, position
from aliaslint.program.kinds import Kinds
from aliaslint.program.modules import Module, ModuleTable
from aliaslint.program.own_names import OwnNames
from aliaslint.program.possible import Possible
from aliaslint.program.reach import Backward, Reach
from aliaslint.program.units import Program, Unit

CACHE_MODULES = ("mlx_lm.models.cache",)
WILD = re.compile(
    r"\bvars\(|__dict__|\bcopy\.copy\b|(?<![\w.])copy\(|\battrgetter\b|\bmethodcaller\b|__copy__"
    r"|\btree_(?:map|flatten)\w*\((?![^\n]*parameters\(\))[^\n]*|(?<![\w.])replace\("
    r"|dataclasses\.replace|\b_replace\(|\bsetattr\(|\bgetattr\(|\basdict\b|\bastuple\b"
    r"|__getattr|\b_asdict\("
)
LITERAL = re.compile(r"[^,()]*,\s*[\"'](\w+)[\"']")


@dataclass(slots=True)
class Relevance:
    """The units that matter. `functions`: for the lines of each function whether it does."""

    functions: dict[str, dict[tuple[int, int], bool]] = field(default_factory=dict)
    bodies: set[str] = field(default_factory=set)
    everything: bool = False

    def function(self, module_id: str, line: int) -> bool:
        """True if the function that holds this line has to be interpreted on its own."""
        if self.everything:
            return True
        for (first, last), matters in self.functions.get(module_id, {}).items():
            if first <= line <= last:
                return matters
        return self.body(module_id)

    def body(self, module_id: str) -> bool:
        """True if the module's own statements have to be interpreted."""
        return self.everything or module_id in self.bodies


class Search:
    """Finds the units of a program that matter."""

    def __init__(self, program: Program, kinds: Kinds, protocol: frozenset[str]) -> None:
        self.program = program
        self.protocol = protocol
        self.views: dict[Unit, View] = {}
        self.naming: set[tuple[Unit, str]] = set()
        self.reach = Reach(program, protocol)
        self.callees = Callees(program, self.reach, self.view)
        self.possible = Possible(program, kinds)
        self.updaters: dict[str, set[Unit]] = {}
        self.holders: dict[str, set[Unit]] = {}
        self._wild: list[tuple[str, Unit]] | None = None
        self.alone: set[Unit] = set()
        self.copying: set[Unit] = set()
        self.peeking: set[Unit] = set()
        self.leading: set[Unit] = set()

    def view(self, unit: Unit) -> View:
        if unit not in self.views:
            self.views[unit] = View(unit)
        return self.views[unit]

    def run(self) -> set[Unit]:
        """Return the units that have to be interpreted on their own."""
        found = updates(self.program)
        for update in found.attributes:
            self.take_update(update)
        self.leading |= found.unclear
        names = OwnNames(self, found.names)
        names.run()
        self.leading |= names.seeds
        self.alone |= names.alone
        for attr, unit in names.attributes:
            self.updaters.setdefault(attr, set()).add(unit)
        for attr in list(self.updaters):
            self.find_holders(attr)
        result = set(self.alone) | self.protocol_unknown()
        if self.leading:
            result |= Backward(self.reach).run(self.leading)
        for attr, holders in self.holders.items():
            result |= self.both(attr, holders)
        return result

    def take_update(self, update: Update) -> None:
        if update.attr == "__dict__" or not self.possible.update(update):
            return
        if not self.possible.evident(update.attr, update.nested):
            return
        if update.augmented:
            known = self.possible.known(update)
            (self.alone if known else self.leading).add(update.unit)
        if not self.made_here(update):
            self.updaters.setdefault(update.attr, set()).add(update.unit)

    def made_here(self, update: Update) -> bool:
        """True for an attribute of an object that the unit has made and handed to nobody yet."""
        if not isinstance(update.receiver, ast.Name) or not update.augmented:
            return False
        view = self.view(update.unit)
        name = update.receiver.id
        values = list(bound_values(name, view))
        if len(values) != 1 or not isinstance(values[0], ast.Call) or view.loop(update.receiver):
            return False
        for load in view.loads(name):
            if load is update.receiver or position(load) > position(update.receiver):
                continue
            parent = view.parents.get(load)
            if not (isinstance(parent, ast.Attribute) and isinstance(parent.ctx, ast.Store)):
                return False
            if parent.attr == update.attr:
                return False
        return self.possible.made_new(update.attr)

    def both(self, attr: str, holders: set[Unit]) -> Iterator[Unit] | set[Unit]:
        """Return what can lead to a holder of the attribute and to an update of it."""
        updaters = self.updaters[attr]
        found: set[Unit] = set()
        outer = Backward(self.reach).run(holders - self.peeking) | holders
        for unit in outer:
            forward = self.reach.forward(unit)
            if not forward.isdisjoint(updaters) and not forward.isdisjoint(holders):
                found.add(unit)
        return found

    # --- who holds an attribute

    def find_holders(self, attr: str) -> None:
        """Find the units where a load of the attribute is kept, getters of it included."""
        holders = self.holders.setdefault(attr, set())
        updaters = self.updaters[attr]
        pending, seen = [attr], {attr}
        elements = self.possible.container(attr)
        implicit = self.callees.implicit(updaters)
        while pending:
            name = pending.pop()
            for unit in self.mentioning(name):
                fate = self.fate_of(name, unit, updaters, elements, implicit)
                if fate is Fate.HELD or (fate is Fate.RETURNED and unit.special):
                    holders.add(unit)
                elif fate is Fate.RETURNED and unit.name not in seen:
                    seen.add(unit.name)
                    pending.append(unit.name)
        holders.update(u for u in self.mentioning(attr) if self.shares(attr, u))
        wild = {u for literal, u in self.wild() if literal in {"", attr}}
        self.peeking |= wild - holders - self.copying
        holders |= wild

    def mentioning(self, name: str) -> list[Unit]:
        return list(dict.fromkeys(u for m in self.program.modules for u in self.in_module(m, name)))

    def in_module(self, module: Module, name: str) -> Iterator[Unit]:
        text = self.program.texts[module.id]
        if name in text:
            yield from self.reach.places(module, name)

    def fate_of(
        self,
        name: str,
        unit: Unit,
        updaters: set[Unit],
        elements: bool,
        implicit: tuple[bool, frozenset[str]],
    ) -> Fate:
        view = self.view(unit)
        fates = Fates(
            view,
            lambda call: self.callees.lead_to(call, view, updaters),
            lambda call: self.callees.may_keep(call, view),
            lambda call: self.callees.may_return(call, view, self.is_new),
            elements=elements,
            implicit=implicit,
        )
        result = Fate.USED
        nodes: list[ast.expr] = [
            n for n in view.attributes.get(name, ()) if isinstance(n.ctx, ast.Load)
        ]
        nodes += [n for n in view.loads(name) if name in self.program.functions]
        for node in nodes:
            outer = view.parents.get(node)
            if isinstance(outer, ast.Call) and outer.func is node:
                result = max(result, fates.of(outer))
            else:
                result = max(result, fates.of(node))
            if result is Fate.HELD:
                return result
        for node in view.nodes:
            if isinstance(node, ast.MatchClass) and (name in node.kwd_attrs or node.patterns):
                return Fate.HELD
        return result

    def shares(self, attr: str, unit: Unit) -> bool:
        """True if what the unit stores in the attribute may be held by something else too."""
        view = self.view(unit)
        if not unit.first and unit.owner and self.class_attribute(attr, unit):
            return True
        for node in view.attributes.get(attr, ()):
            if isinstance(node.ctx, ast.Store) and not (
                self.stores_new(node, view) and self.one_owner(node, view)
            ):
                return True
        return False

    def class_attribute(self, attr: str, unit: Unit) -> bool:
        """True if a class body gives the attribute to all instances, or makes it a field."""
        for node in unit.nodes:
            match node:
                case ast.Assign(targets=targets, value=value):
                    names = {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
                    if attr in names and not isinstance(value, ast.Constant):
                        return True
                case ast.AnnAssign(target=ast.Name(id=name)) if name == attr:
                    return True
                case _:
                    pass
        return False

    def one_owner(self, node: ast.Attribute, view: View) -> bool:
        """True if the object whose attribute is stored is a single one: not one of several."""
        if not isinstance(node.value, ast.Name):
            return False
        values = list(bound_values(node.value.id, view))
        return len(values) == 1 and not isinstance(values[0], (ast.IfExp, ast.BoolOp))

    def stores_new(self, node: ast.Attribute, view: View) -> bool:
        parent = view.parents.get(node)
        match parent:
            case ast.Assign(targets=[target], value=value) if target is node:
                return self.is_new(value, view)
            case ast.AnnAssign(value=value):
                return value is None or self.is_new(value, view)
            case ast.AugAssign():
                return True
            case _:
                return False

    def is_new(self, value: ast.expr, view: View) -> bool:
        """True for an expression whose value nothing else holds."""
        match value:
            case ast.Constant() | ast.JoinedStr() | ast.BinOp() | ast.UnaryOp() | ast.Compare():
                return True
            case ast.Subscript(slice=ast.Tuple()):
                return True
            case ast.IfExp(body=body, orelse=orelse):
                return self.is_new(body, view) and self.is_new(orelse, view)
            case ast.Call():
                return view.is_outside(value) or self.callees.makes_new(value, view, self.is_new)
            case ast.Name(id=name):
                return self.is_new_name(name, view)
            case _:
                return False

    def is_new_for(self, name: str, value: ast.expr, view: View) -> bool:
        """True if the value of a name is new, or comes of the name itself."""
        key = (view.unit, name)
        inside = key in self.naming
        self.naming.add(key)
        new = self.is_new(value, view)
        if not inside:
            self.naming.discard(key)
        return new

    def is_new_name(self, name: str, view: View) -> bool:
        """True for a local that is bound to new values alone and kept in one place only."""
        key = (view.unit, name)
        if key in self.naming:
            return True  # a name that is made from itself is as new as the rest of it
        values = list(bound_values(name, view))
        if not values or any(v is None or isinstance(v, ast.Name) for v in values):
            return False
        self.naming.add(key)
        new = all(self.is_new(v, view) for v in values if v is not None)
        self.naming.discard(key)
        if not new:
            return False
        fates = Fates(view, lambda call: True, lambda call: True, strict=True)
        return sum(fates.of(load) is Fate.HELD for load in view.loads(name)) <= 1

    def wild(self) -> list[tuple[str, Unit]]:
        """Return units that may get at any attribute, or at one that a string names."""
        if self._wild is None:
            self._wild = []
            for module in self.program.modules:
                text = self.program.texts[module.id]
                for match in WILD.finditer(text):
                    literal = ""
                    if match.group() in {"getattr(", "setattr("}:
                        named = LITERAL.match(text, match.end())
                        literal = named[1] if named else ""
                    line = self.program.line_of(module.id, match.start())
                    unit = self.program.unit_at(module.id, line)
                    self._wild.append((literal, unit))
                    if not match.group().startswith(("getattr", "setattr", "tree_")):
                        self.copying.add(unit)
        return self._wild

    # --- calls of the protocol that nothing defines

    def protocol_unknown(self) -> set[Unit]:
        """Return what calls the cache protocol where no class stands behind it, and its callers.

        Such a call may update whatever is held across it.
        """
        start: list[Unit] = []
        for name in self.protocol:
            for module in self.program.modules:
                if name in self.program.texts[module.id] and not self.defined(name, module):
                    start.extend(self.in_module(module, name))
        return Backward(self.reach).run(start) if start else set()

    def defined(self, name: str, module: Module) -> bool:
        for unit in self.program.methods.get(name, ()):
            other = unit.module
            same = other.path.parent == module.path.parent or same_package(other, module)
            if other.is_test and not module.is_test:
                continue
            if (same or other.dotted.startswith(CACHE_MODULES)) and runs(unit):
                return True
        return False


def runs(unit: Unit) -> bool:
    node = unit.nodes[0]
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    return any(
        not isinstance(s, (ast.Pass, ast.Raise))
        and not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
        for s in node.body
    )


def same_package(a: Module, b: Module) -> bool:
    return "." in a.dotted and a.dotted.partition(".")[0] == b.dotted.partition(".")[0]


def relevance_of(table: ModuleTable, kinds: Kinds, protocol: frozenset[str]) -> Relevance:
    """Return what matters in a program: its targets and the dependencies that they import."""
    program = Program(load(table))
    matters = Search(program, kinds, protocol).run()
    result = Relevance()
    for unit in program.units:
        if unit.first:
            lines = (unit.first, unit.last)
            result.functions.setdefault(unit.module.id, {})[lines] = unit in matters
        elif unit in matters:
            result.bodies.add(unit.module.id)
    return result


def load(table: ModuleTable) -> list[Module]:
    """Return the target modules and all that their imports lead to, which loads them."""
    found = list(table.targets())
    seen = {module.id for module in found}
    for module in found:
        for dotted in imported(module):
            other = table.find(module, dotted)
            if other is not None and other.id not in seen:
                seen.add(other.id)
                found.append(other)
    return found


def imported(module: Module) -> Iterator[str]:
    """Yield the names of modules that a module may import, and the caches of mlx-lm."""
    yield from module.stars
    for kind, value in module.names.values():
        if kind == "module":
            yield str(value)
        elif kind == "import":
            source, _, name = str(value).partition(":")
            yield source
            yield f"{source}{'' if source.endswith('.') else '.'}{name}"
    yield from CACHE_MODULES


__all__ = ["Iterable", "Relevance", "relevance_of"]
