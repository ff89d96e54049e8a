"""What a call may run, by names: enough to rule out that it updates or keeps something."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator

from aliaslint.program.fates import KEEPING, View, bound_values
from aliaslint.program.modules import BUILTINS
from aliaslint.program.reach import STORES, Reach
from aliaslint.program.units import WORD, Class, Program, Unit

CONTAINER_MEMBERS = frozenset(
    "append add appendleft extend update insert get setdefault pop popleft popitem items values "
    "keys copy reverse sort clear index count remove join split strip format startswith endswith "
    "replace encode decode lower upper".split()
)
ADDING = frozenset("append add appendleft extend update insert setdefault put".split())


class Callees:
    """Resolves calls by the names in them. None stands for "may be anything"."""

    def __init__(self, program: Program, reach: Reach, view: Callable[[Unit], View]) -> None:
        self.program = program
        self.reach = reach
        self.view = view
        self._gives: dict[Unit | Class, frozenset[str] | None] = {}
        self._members: dict[str, list[Unit | Class] | None] = {}
        self._own: dict[tuple[Class, str], list[Unit | Class] | None] = {}
        self._outside: dict[str, list[Unit | Class] | None] = {}
        self._runs: dict[int, frozenset[Unit]] = {}
        self._keeps: dict[Unit, bool] = {}

    def of(self, call: ast.Call, view: View) -> list[Unit | Class] | None:
        match call.func:
            case ast.Name(id=name):
                return self.named(name, view)
            case ast.Attribute():
                return self.attribute(call.func, view)
            case _:
                return None

    def attribute(self, node: ast.Attribute, view: View) -> list[Unit | Class] | None:
        """Return what a call of an attribute may run; on `self` its class narrows it down."""
        made = self.program.class_of.get(view.unit)
        if made is None or not isinstance(node.value, ast.Name) or not view.unit.name:
            return self.member(node.attr)
        function = view.unit.nodes[0]
        assert isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        args = [*function.args.posonlyargs, *function.args.args]
        if not args or args[0].arg != node.value.id:
            return self.member(node.attr)
        key = (made, node.attr)
        if key not in self._own:
            self._own[key] = []
            self._own[key] = self._find_own(made, node.attr)
        return self._own[key]

    def _find_own(self, made: Class, attr: str) -> list[Unit | Class] | None:
        family = self.bases(made) + self.program.family(made)
        found: list[Unit | Class] = [u for c in family for u in c.methods.get(attr, ())]
        for item in dict.fromkeys(family):
            names = self.reach.names(item.module.id)
            for unit in item.units():
                if attr in unit.words:
                    stored = self.stores(attr, unit.text, names, "")
                    if stored is None:
                        return None
                    found.extend(stored)
        outside = self.outside(attr)
        return None if outside is None else found + outside

    def bases(self, made: Class) -> list[Class]:
        found = [made]
        for item in found:
            for base in item.bases:
                found.extend(c for c in self.program.classes.get(base, ()) if c not in found)
        return found

    def outside(self, attr: str) -> list[Unit | Class] | None:
        """Return what objects are given as an attribute from outside of their methods."""
        if attr not in self._outside:
            self._outside[attr] = []
            result: list[Unit | Class] | None = []
            for module in self.program.modules:
                text = self.program.texts[module.id]
                if attr in text and result is not None:
                    if re.search(rf"setattr\([^\n]*[\"']{attr}[\"']", text):
                        result = None
                        break
                    names = self.reach.names(module.id)
                    stored = self.stores(attr, text, names, r"(?<!\bself)")
                    result = None if stored is None else result + stored
            self._outside[attr] = result
        return self._outside[attr]

    def stores(
        self, attr: str, text: str, names: dict[str, list[Unit | Class]], before: str
    ) -> list[Unit | Class] | None:
        """Return what the assignments to an attribute in a text may store, for being called."""
        start = rf"{before}\." if before else r"(?:\.|^[ \t]*(?=[^\n]*[^,\n]$))"
        pattern = re.compile(rf"{start}{attr}[ \t]*(?::[^=\n]+)?=(?!=)[ \t]*", re.MULTILINE)
        found: list[Unit | Class] = []
        for match in pattern.finditer(text):
            stored = self.stored(value_after(text, match.end()), names)
            if stored is None:
                return None
            found.extend(stored)
        return found

    def named(self, name: str, view: View) -> list[Unit | Class] | None:
        stores = [n for n in view.names.get(name, ()) if isinstance(n.ctx, ast.Store)]
        if stores:
            return self.looped(stores, view)
        names = self.reach.names(view.unit.module.id)
        if name in view.binders:
            return None
        if name in names:
            found = names[name]
            plain = all(isinstance(f, Class) or f.name for f in found)
            return found if plain else None
        if view.unit.module.stars:
            return self.reach.globally(name) or None
        if name in view.binders:
            return None  # of a nested function too: when it runs cannot be told
        return [] if name in BUILTINS and name not in CALLING else None

    def looped(self, stores: list[ast.Name], view: View) -> list[Unit | Class] | None:
        """Return what a loop variable may run: what is in the attributes that are walked."""
        found: list[Unit | Class] = []
        for store in stores:
            loop = next((a for a in view.ancestors(store) if not isinstance(a, ast.Tuple)), None)
            if not isinstance(loop, (ast.For, ast.comprehension)):
                return None
            for node in ast.walk(loop.iter):
                if not isinstance(node, ast.Attribute):
                    continue
                items = self.attribute(node, view)
                if items is None:
                    return None
                found.extend(item for item in items if isinstance(item, Class))
        return found or None

    def member(self, attr: str) -> list[Unit | Class] | None:
        """Return what `X.attr(...)` may run, whatever `X` is."""
        if attr not in self._members:
            self._members[attr] = []  # an attribute stored in itself adds nothing
            self._members[attr] = self._find_member(attr)
        return self._members[attr]

    def _find_member(self, attr: str) -> list[Unit | Class] | None:
        found: list[Unit | Class] = [*self.program.methods.get(attr, ())]
        found.extend(self.program.functions.get(attr, ()))
        found.extend(self.program.classes.get(attr, ()))
        for module in self.program.modules:
            text = self.program.texts[module.id]
            if attr not in text:
                continue
            if re.search(rf"setattr\([^\n]*[\"']{attr}[\"']", text):
                return None
            stored = self.stores(attr, text, self.reach.names(module.id), "")
            if stored is None:
                return None
            found.extend(stored)
        return found

    def stored(self, value: str, names: dict[str, list[Unit | Class]]) -> list[Unit | Class] | None:
        """Return what a stored value may run when it is called, from its text."""
        words = WORD.findall(value)
        if "lambda" in words or "partial" in words or KEEPING & set(words):
            return None
        if "(" not in value:
            if not words or value.startswith(("[", "{", '"', "'")) or value[0].isdigit():
                return []
            found: list[Unit | Class] = []
            for match in WHOLE_NAME.finditer(value):
                name, attrs = match[1], match[2]
                if attrs:
                    items = self.member(WORD.findall(attrs)[-1])
                elif name in KEYWORDS:
                    items = []
                else:
                    items = names.get(name)
                if items is None:
                    return None
                found.extend(items)
            return found
        return [item for word in words for item in names.get(word, ())]

    # --- questions

    def lead_to(self, call: ast.Call, view: View, aims: Iterable[Unit]) -> bool:
        """True if the call may run one of the units."""
        found = self.of(call, view)
        if found is None:
            return True
        wanted = set(aims)
        given = frozenset(
            n.attr if isinstance(n, ast.Attribute) else n.id
            for value in (*call.args, *(k.value for k in call.keywords))
            for n in ast.walk(value)
            if isinstance(n, (ast.Attribute, ast.Name))
        )
        return any(not self.reach.loosely(item, given).isdisjoint(wanted) for item in found)

    def implicit(self, aims: set[Unit]) -> tuple[bool, frozenset[str]]:
        """Return whether operators and the like may run one of the units, and which attributes.

        Properties and setters run where an attribute is read or stored.
        """
        operators = False
        names: set[str] = set()
        for units in self.program.methods.values():
            for unit in units:
                node = unit.nodes[0]
                decorated = bool(getattr(node, "decorator_list", ()))
                special = unit.special and unit.name not in {"__call__", "__init__", "__new__"}
                if (special or decorated) and not self.reach.loosely(unit, frozenset()).isdisjoint(
                    aims
                ):
                    operators |= special
                    names.add(unit.name)
        return operators, frozenset(names)

    def runs(self, item: Unit | Class) -> frozenset[Unit]:
        if isinstance(item, Class):
            key = id(item)
            if key not in self._runs:
                self._runs[key] = self.reach.of_class(item)
            return self._runs[key]
        return self.reach.forward(item)

    def may_keep(self, call: ast.Call, view: View) -> bool:
        """True if what the call is given may live on in some object."""
        if isinstance(call.func, ast.Attribute) and call.func.attr in ADDING:
            return True
        found = self.of(call, view)
        if found is None:
            return True
        name = getattr(call.func, "id", getattr(call.func, "attr", ""))
        if any(isinstance(item, Class) and item.name == name for item in found):
            return True  # a constructor
        return any(self.keeps(unit) for item in found for unit in self.runs(item))

    def keeps(self, unit: Unit) -> bool:
        if unit not in self._keeps:
            self._keeps[unit] = bool(STORES.search(unit.text) or "yield" in unit.words)
        return self._keeps[unit]

    def makes_new(self, call: ast.Call, view: View, is_new: NewTest) -> bool:
        """True for calls whose result is new: of layers of MLX, of methods of arrays, and of
        functions of the program that give back new values, or arguments that are new here."""
        if isinstance(call.func, ast.Attribute) and call.func.attr in CONTAINER_MEMBERS:
            return False
        found = self.of(call, view)
        if found is None:
            return False
        given: set[str] = set()
        for item in found:
            more = self.gives(item, is_new)
            if more is None:
                return False
            given |= more
        return not given or all(is_new(value, view) for value in self.arguments(call, given))

    def may_return(self, call: ast.Call, view: View, is_new: NewTest) -> bool:
        """True if a call may give back something that it was given."""
        found = self.of(call, view)
        return found is None or any(self.gives(item, is_new) != frozenset() for item in found)

    def arguments(self, call: ast.Call, given: set[str]) -> Iterator[ast.expr]:
        """Yield the arguments that may come back. Positions are not told apart: functions that
        give back a parameter take it first."""
        for i, value in enumerate(call.args):
            if i == 0 or isinstance(value, ast.Starred) or "*" in given:
                yield value
        for keyword in call.keywords:
            if keyword.arg is None or keyword.arg in given:
                yield keyword.value

    def gives(self, item: Unit | Class, is_new: NewTest) -> frozenset[str] | None:
        """Return which parameters a call may give back beside new values, None for other things.

        Of a class it is a call of its instances. "*" stands for parameters behind the first.
        """
        if item not in self._gives:
            self._gives[item] = frozenset()  # a recursive call gives what the others give
            units: list[Unit]
            if isinstance(item, Class):
                units = [u for c in self.program.family(item) for u in self.calls_of(c, 0)]
                made: list[Class] = []
            else:
                units = [item]
                made = [c for c in self.reach.mentions(item) if isinstance(c, Class)]
            parts = [self.returned(unit, is_new) for unit in units]
            parts += [self.gives(c, is_new) for c in made]
            known = [part for part in parts if part is not None]
            whole = frozenset().union(*known)
            self._gives[item] = whole if len(known) == len(parts) else None
        return self._gives[item]

    def calls_of(self, made: Class, depth: int) -> list[Unit]:
        """Return the `__call__` of a class or of its bases."""
        if "__call__" in made.methods:
            return made.methods["__call__"]
        bases = [c for base in made.bases for c in self.program.classes.get(base, ())]
        return [u for c in bases if depth < 6 for u in self.calls_of(c, depth + 1)]

    def returned(self, unit: Unit, is_new: NewTest) -> frozenset[str] | None:
        """Return the parameters that a unit may give back, None if it may be something else."""
        if unit.words & {"yield", "lambda"}:
            return None
        view = self.view(unit)
        function = unit.nodes[0]
        assert isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        args = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
        first = args[1 if unit.owner else 0 :][:1]
        params = {*args, *(a.arg for a in function.args.kwonlyargs)}
        found: set[str] = set()
        for value in view.returns:
            for part in value.elts if isinstance(value, ast.Tuple) else [value]:
                if isinstance(part, ast.Name) and part.id in params:
                    if any(not is_new(v, view) for v in values_of(part, view)):
                        return None
                    found.add(part.id)
                    if part.id not in first:
                        found.add("*")
                elif not self.new_or_made(part, view, is_new):
                    return None
        return frozenset(found)

    def new_or_made(self, value: ast.expr, view: View, is_new: NewTest) -> bool:
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            names = self.reach.names(view.unit.module.id).get(value.func.id, [])
            if names and all(isinstance(n, Class) for n in names):
                return True
        return is_new(value, view)


def values_of(name: ast.Name, view: View) -> list[ast.expr]:
    return [v for v in bound_values(name.id, view) if v is not None]


NewTest = Callable[[ast.expr, View], bool]

WHOLE_NAME = re.compile(r"(?<![\w.])([^\W\d]\w*)((?:\.\w+)*)")
KEYWORDS = frozenset("None True False if else not and or is in int float str bool self".split())
CALLING = frozenset(
    "map filter sorted max min next iter list tuple set dict sum any all zip enumerate reversed "
    "getattr setattr super vars eval exec".split()
)


def value_after(text: str, start: int) -> str:
    """Return the text of an assigned value: to the end of its line, brackets balanced."""
    depth, place = 0, start
    limit = min(len(text), start + 2000)
    while place < limit:
        character = text[place]
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
            if depth < 0:
                break
        elif character == "\n" and depth <= 0:
            break
        place += 1
    return text[start:place].partition("  #")[0].strip()
