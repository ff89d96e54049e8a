"""Which functions can yield a finding at all, so that only they are interpreted on their own.

Interpreting a function finds what happens in it and in all that it calls. It is worth that only

- if it updates an attribute in place, or what a name of its own holds while more may hold it;
- if it hands something that is used afterwards to a parameter that is updated, or gives such a
  parameter its kind;
- or if something is captured in it, or by a call that leaves the capture behind, and it leads to
  an update of the same attribute. A capture that ends with the call that made it is found there,
  unless only a caller can tell which class is updated.

The answer errs on the side of too much; `program/scan.py` says how each function is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from aliaslint.lower import ir
from aliaslint.lower.walk import children
from aliaslint.program.masks import Masks
from aliaslint.program.reach import Place, Reach, Unit, holds_array, placed_arguments
from aliaslint.program.scan import CallSite, Scan, Update, arguments, has_receiver, nested
from aliaslint.program.types import ClassOf, FuncOf, Inst


@dataclass(slots=True)
class Written:
    """Parameters that a function updates; `weak` are those whose kind only its callers know,
    `open` those of which they may know more, the weak ones among them."""

    function: ir.Function
    params: set[str] = field(default_factory=set)
    weak: set[str] = field(default_factory=set)
    open: set[str] = field(default_factory=set)
    keeps: bool = False  # what it updates outlives the call: a default value
    # Parameters that it may hand to a callee that only a caller knows, with a bit for each
    # function that updates them if it is that callee.
    handed: dict[str, int] = field(default_factory=dict)


ByPlace = dict[Place | None, list[tuple[Scan, CallSite, ir.Expr]]]


class Relevance:
    """Answers for the functions of one program, once `solve` has run."""

    def __init__(self, reach: Reach) -> None:
        self.reach = reach
        self.local: set[str] = set()  # keys of functions with an update that others may see
        self.urgent: set[str] = set()  # those of them where it is known to be one of an array
        self.written: dict[str, Written] = {}
        self.pending: list[Written] = []
        self.known_sources: dict[ir.Expr, set[str]] = {}
        self.handed_bits: dict[str, int] = {}  # of functions that are used as values
        self.leads_to: dict[str, int] = {}  # which of them a function may lead to

    def solve(self, thorough: bool) -> None:
        self.reach.build()
        self.masks = Masks(self.reach, thorough)
        self._number_handed()
        for unit in self.reach.units.values():
            if unit.scan is not None:
                self._own_updates(unit.scan, unit.class_key)
        self._callers(self.reach.scans())

    def _number_handed(self) -> None:
        handed = self.reach.handed
        outer: dict[str, None] = {}
        for found in self.reach.scans():
            inside = (found.function, *nested(found.function))
            if any(handed.takes(self.reach, function) for function in inside):
                outer[found.function.key] = None
        self.handed_bits = {key: 1 << number for number, key in enumerate(outer)}
        self.leads_to = self.masks.leading_to(list(outer))

    def matters(self, function: ir.Function, class_key: str | None) -> bool:
        """True if the function, with this class as its receiver's, is to be interpreted."""
        function, class_key = outermost(function, class_key)
        if function.key in self.local:
            return True
        unit = self._unit(function, class_key)
        if unit is None or unit.scan is None:
            return True
        return self.masks.meets(unit)

    def rank(self, function: ir.Function, class_key: str | None) -> int:
        """Return how soon a function is worth another look: 0 for what is known to update an
        array itself, 1 for what captures what is updated, 2 for what leads to both."""
        function, class_key = outermost(function, class_key)
        unit = self._unit(function, class_key)
        if function.key in self.urgent:
            return 0
        return 1 if unit is not None and self.masks.captures(unit) else 2

    def captures_of_caches(self, function: ir.Function, class_key: str | None) -> bool:
        """True if the function itself captures what a method of the cache protocol updates."""
        unit = self._unit(*outermost(function, class_key))
        return unit is not None and self.masks.captures_of_caches(unit)

    def _unit(self, function: ir.Function, class_key: str | None) -> Unit | None:
        return self.reach.units.get(("f", function.key, class_key or ""))

    # --- updates of what a name holds

    def _own_updates(self, found: Scan, class_key: str | None) -> None:
        for update in found.updates:
            base = update.base
            if not isinstance(base, ir.Name):
                alone = self.reach.is_of_own_object(update, found, class_key)
                if (alone or not update.item) and self.reach.may_be_array(update, class_key):
                    self.local.add(found.function.key)
                continue
            sources = set(self.reach.sources(base, update.function, found, class_key, set()))
            known, possible = self._kind_of(update, class_key, sources)
            given = base.name in update.function.params and base.name not in found.defaults
            held = bool(sources - {"="}) or self._is_held(found, base.name, None)
            if update.inside and not held:
                held = bool(found.stored) or self._holds_held(found, base)
            if (known or (possible and not given)) and held:
                self.local.add(found.function.key)
                if known:
                    self.urgent.add(found.function.key)
            if known or possible:
                params = {s[1:] for s in sources if s.startswith("%")}
                params &= set(update.function.params)
                if not known and held:
                    params |= self._deciding(found, update.function, base)
                self._add(
                    update.function,
                    params,
                    set() if known else params,
                    params if possible else set(),
                )
                self._open(update.function, self._given_back(sources))
                if base.name in found.defaults and params:
                    self.written[update.function.key].keeps = True

    def _kind_of(
        self, update: Update, class_key: str | None, sources: set[str]
    ) -> tuple[bool, bool]:
        """Return whether the updated thing is known to be an array, and whether it may turn out
        to be one once a caller tells more."""
        kinds = self.reach.kinds
        type_ = kinds.expression(update.base, update.function, class_key)
        if update.inside:
            return holds_array(type_), self.reach.may_be_array(update, class_key)
        name = update.base.name if isinstance(update.base, ir.Name) else ""
        if name in kinds.array_evidence(update.function):
            return True, False
        if "array" in type_:
            return True, "unknown" in type_
        attributes = [source for source in sources if source[0] not in "=%?:*^"]
        if len(attributes) == len(sources - {"="}) > 0:
            type_ = frozenset().union(*map(self.reach.attribute_anywhere, attributes))
        return False, "unknown" in type_ or "array" in type_ or not type_

    def _is_held(self, found: Scan, name: str, but: ir.Call | None) -> bool:
        """True if something else may hold what the name holds: another name, an object, or
        what a call that was given it gives back or keeps."""
        if name in found.held:
            return True
        return any(
            site.call is not but and self._may_keep(found, site, name)
            for site in found.passed.get(name, ())
        )

    def _may_keep(self, found: Scan, site: CallSite, name: str) -> bool:
        own = found.function.class_key
        if "*" in self.reach.sources(site.call, site.function, found, own, set()):
            return True
        alive = chain(
            self.reach.keeps(site.call, site.function, own),
            self.reach.gives_back(site.call, site.function, own),
        )
        return any(isinstance(arg, ir.Name) and arg.name == name for arg in alive)

    # --- calls that hand something to a parameter that is updated

    def _callers(self, scans: list[Scan]) -> None:
        """Follow updated parameters up through calls, until nothing is added."""
        sites: dict[str, list[tuple[Scan, CallSite, bool]]] = {}
        for found in scans:
            for site in found.calls:
                for key, bound in self._callees(found, site):
                    sites.setdefault(key, []).append((found, site, bound))
        values = self._calls_of_values(scans)
        places: dict[Place, int] = {}
        new: dict[Place, int] = {}
        self.pending = list(self.written.values())
        while self.pending or new:
            while self.pending:
                written = self.pending.pop()
                for found, site, bound in sites.get(written.function.key, ()):
                    self._call(written, found, site, bound)
                    self._open_call(written, found, site, bound)
                more = self._places(written, places)
                places.update(more)
                new.update(more)
            # Calls of values are many: all that is news is looked at together.
            settled, new = new, {}
            for place, bits in settled.items():
                for found, site, arg in chain(values.get(place, ()), values.get(None, ())):
                    self._handed_on(found, site, arg, bits)

    def _calls_of_values(self, scans: list[Scan]) -> ByPlace:
        """Return the arguments of calls of which only a caller may know the callee, by the places
        that they stand at; under None what is unpacked, which may stand at any."""
        values: ByPlace = {}
        for found in scans:
            for site in found.calls:
                if self._calls_a_value(found, site):
                    for place, arg in placed_arguments(site.call):
                        values.setdefault(place, []).append((found, site, arg))
        return values

    # --- calls of what a variable or an attribute holds

    def _places(self, written: Written, known: dict[Place, int]) -> dict[Place, int]:
        """Return the arguments that a function may update where it is called as a value, as far as
        that is news."""
        handed = self.reach.handed
        if not handed.takes(self.reach, written.function):
            return {}
        own = self.handed_bits.get(outermost(written.function, None)[0].key, 0)
        new: dict[Place, int] = {}
        for param in written.params | written.handed.keys():
            bits = written.handed.get(param, 0) | (own if param in written.params else 0)
            for place in handed.places(self.reach, written.function, {param}):
                if bits & ~known.get(place, 0):
                    new[place] = new.get(place, known.get(place, 0)) | bits
        return new

    def _calls_a_value(self, found: Scan, site: CallSite) -> bool:
        if not site.call.args or not self.reach.is_of_a_value(site.call):
            return False
        own = found.function.class_key
        return "unknown" in self.reach.kinds.expression(site.call.fn, site.function, own)

    def _open_call(self, written: Written, found: Scan, site: CallSite, bound: bool) -> None:
        for param, arg in arguments(written.function, site.call, bound):
            if param in written.handed:
                self._handed_on(found, site, arg, written.handed[param])

    def _handed_on(self, found: Scan, site: CallSite, arg: ir.Expr, bits: int) -> None:
        """An argument goes where one of these functions may update it: only what leads to that
        function as well can show it."""
        own = found.function.class_key
        type_ = self.reach.kinds.expression(arg, site.function, own)
        if bits & self.leads_to.get(found.function.key, 0):
            if "unknown" in type_ or holds_array(type_):
                self.local.add(found.function.key)
        sources = self._sources(found, site, arg)
        params = {s[1:] for s in sources if s.startswith("%")}
        self._open(site.function, dict.fromkeys(params, bits))
        self._open(site.function, self._given_back(sources))

    def _given_back(self, sources: set[str]) -> dict[str, int]:
        """Return the parameters that what is updated may be, if a callee gives back what it is
        handed, with the bits of such callees."""
        found: dict[str, int] = {}
        for source in sources:
            if source.startswith("^"):
                place, _, param = source[1:].partition("%")
                keys = self.reach.handed.given_back[int(place) if place.isdigit() else place]
                for key in keys:
                    found[param] = found.get(param, 0) | self.handed_bits.get(key, 0)
        return found

    def _open(self, function: ir.Function, params: dict[str, int]) -> None:
        new = {name: bits for name, bits in params.items() if name in function.params}
        if not new:
            return
        written = self.written.setdefault(function.key, Written(function))
        if any(bits & ~written.handed.get(name, 0) for name, bits in new.items()):
            for name, bits in new.items():
                written.handed[name] = written.handed.get(name, 0) | bits
            self.pending.append(written)

    def _callees(self, found: Scan, site: CallSite) -> set[tuple[str, bool]]:
        """Return the keys of the functions that a call may be one of, and for each if its first
        parameter is no argument. A receiver of which nothing is known here gets its class from a
        caller, who is told by the bits of its own."""
        keys: set[tuple[str, bool]] = set()
        own = found.function.class_key
        for atom in self.reach.kinds.expression(site.call.fn, site.function, own):
            match atom:
                case FuncOf():
                    keys.update((c.function.key, c.bound) for c in self.reach.callees(atom))
                case Inst(key=key):
                    keys.update(self._methods(key, "__call__"))
                case ClassOf(key=key):
                    keys.update(self._methods(key, "__init__", "__new__"))
                case _:
                    pass
        return keys

    def _methods(self, class_key: str, *names: str) -> Iterator[tuple[str, bool]]:
        info = self.reach.kinds.classes.get(class_key)
        for ancestor in info.mro if info is not None else ():
            yield from ((method.key, True) for name, method in ancestor.every() if name in names)

    def _call(self, written: Written, found: Scan, site: CallSite, bound: bool) -> None:
        if written.keeps:
            self.local.add(found.function.key)
        for param, arg in arguments(written.function, site.call, bound):
            if param not in written.params:
                continue
            sources = self._sources(found, site, arg)
            weak, undecided = param in written.weak, param in written.open
            if undecided and self._settles(found, site, arg):
                self.local.add(found.function.key)
            if not weak and (
                self._is_used_after(found, site, arg, sources) or self._gives_back(written, param)
            ):
                self.local.add(found.function.key)
                self.urgent.add(found.function.key)
            params = {s[1:] for s in sources if s.startswith("%")} & set(site.function.params)
            self._add(
                site.function, params, params if weak else set(), params if undecided else set()
            )
            if undecided:
                deciding = self._deciding(found, site.function, arg)
                self._add(site.function, deciding, deciding, deciding)
            self._open(site.function, self._given_back(sources))

    def _settles(self, found: Scan, site: CallSite, arg: ir.Expr) -> bool:
        """True if the argument is known to be an array, which the callee does not know."""
        own = found.function.class_key
        return holds_array(self.reach.kinds.expression(arg, site.function, own))

    def _deciding(self, found: Scan, function: ir.Function, arg: ir.Expr) -> set[str]:
        """Return the parameters that the kind of an argument of unknown kind may depend on."""
        own = found.function.class_key
        if "unknown" not in self.reach.kinds.expression(arg, function, own):
            return set()
        params = function.params
        return names_behind(found, arg) & set(params[1:] if has_receiver(function) else params)

    def _holds_held(self, found: Scan, base: ir.Expr) -> bool:
        """True if what is put into a container when it is made has a name of its own too."""
        names = names_behind(found, base)
        return any(name in found.held for name in names)

    def _gives_back(self, written: Written, param: str) -> bool:
        function = written.function
        return f"%{param}" in self.reach.returned(function, function.class_key)

    def _sources(self, found: Scan, site: CallSite, arg: ir.Expr) -> set[str]:
        if arg not in self.known_sources:
            found_sources = self.reach.sources(arg, site.function, found, None, set())
            self.known_sources[arg] = set(found_sources)
        return self.known_sources[arg]

    def _add(
        self, function: ir.Function, params: set[str], weak: set[str], undecided: set[str]
    ) -> None:
        """Note that a function updates parameters of its own."""
        if not params:
            return
        written = self.written.get(function.key)
        if written is None:
            written = self.written[function.key] = Written(function)
        known = written.params, written.weak, written.open
        if not all(new <= old for new, old in zip((params, weak, undecided), known, strict=True)):
            written.params |= params
            written.weak |= weak
            written.open |= undecided
            self.pending.append(written)

    def _is_used_after(self, found: Scan, site: CallSite, arg: ir.Expr, sources: set[str]) -> bool:
        if not isinstance(arg, ir.Name):
            return bool(sources - {"="})
        if arg.scope != "local" or sources & {"*"} or any(s[0] not in "=%^" for s in sources):
            return True
        if self._is_held(found, arg.name, site.call) or found.in_loop(site.call.at):
            return True
        return found.last_use.get(arg.name, (0, 0)) > site.call.at[2:]


def names_behind(found: Scan, expr: ir.Expr) -> set[str]:
    """Return the local names in an expression, and in what those are bound to."""
    seen: set[str] = set()
    stack: list[ir.Expr] = [expr]
    while stack:
        current = stack.pop()
        stack.extend(children(current))
        if isinstance(current, ir.Name) and current.scope == "local" and current.name not in seen:
            seen.add(current.name)
            values = found.bound.get(current.name, ())
            stack.extend(value for value, _ in values if value is not None)
    return seen


def outermost(function: ir.Function, class_key: str | None) -> tuple[ir.Function, str | None]:
    """Return the function of a module or class that a function is nested in, and its class."""
    while (outer := function.parent) is not None:
        function, class_key = outer, outer.class_key
    return function, class_key
