"""Which functions can yield a finding at all, so that only they are interpreted.

The answer errs on the side of too much. A function that is interpreted on its own finds what
happens in itself and in what it calls. So it matters only if it, or something that it can lead
to, updates a handle in place, and if it can lead to something that holds one meanwhile.

What a function can lead to is taken by names: every function, class and method whose name its
text mentions, from any module, and all methods of each class that is mentioned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from aliaslint.program.events import Events, events
from aliaslint.program.modules import Module, ModuleTable
from aliaslint.program.units import Unit, units


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


class Graph:
    """Units, and what each can lead to by name, with the events of all of it."""

    def __init__(self) -> None:
        self.units: list[Unit] = []
        self.events: list[Events] = []
        self.named: dict[str, list[int]] = {}
        self.classes: dict[str, list[int]] = {}
        self.below: dict[str, set[str]] = {}
        self.aliases: dict[str, dict[str, set[str]]] = {}

    def add(self, module: Module) -> None:
        table = self.aliases.setdefault(module.id, {})
        for name, (kind, value) in module.names.items():
            if kind == "import":
                table.setdefault(name, set()).add(str(value).rpartition(":")[2])
        for unit in units(module):
            number = len(self.units)
            self.units.append(unit)
            self.events.append(events(unit))
            if unit.name:
                self.named.setdefault(unit.name, []).append(number)
            if unit.owner:
                self.classes.setdefault(unit.owner, []).append(number)
                if not unit.name:
                    self.named.setdefault(unit.owner, []).append(number)
                    for word in unit.words:
                        self.below.setdefault(word, set()).add(unit.owner)
            elif not unit.name:
                for name, (kind, _) in module.names.items():
                    if kind == "var":
                        self.named.setdefault(name, []).append(number)

    def successors(self, number: int) -> set[int]:
        unit = self.units[number]
        found: set[int] = set()
        aliases = self.aliases[unit.module.id]
        words = set(unit.words)
        for word in unit.words:
            words |= aliases.get(word, set())
        if unit.owner:
            words.add(unit.owner)
            words |= self.below.get(unit.owner, set()) & self.classes.keys()
        for word in words:
            found.update(self.named.get(word, ()))
            found.update(self.classes.get(word, ()))
        return found

    def masks(self, own: list[int]) -> list[int]:
        """Return for each unit the union of `own` over all that it can lead to."""
        before: list[list[int]] = [[] for _ in self.units]
        for number in range(len(self.units)):
            for successor in self.successors(number):
                before[successor].append(number)
        masks = list(own)
        pending = [n for n, mask in enumerate(masks) if mask]
        while pending:
            number = pending.pop()
            mask = masks[number]
            for caller in before[number]:
                if mask & ~masks[caller]:
                    masks[caller] |= mask
                    pending.append(caller)
        return masks


LOCAL = 1
CACHE_MODULES = ("mlx_lm.models.cache",)


def relevance(modules: Iterable[Module], protocol: frozenset[str]) -> Relevance:
    """Return which units of the modules have to be interpreted on their own.

    A call of the cache protocol that no class defines may update whatever is held.
    """
    graph = Graph()
    for module in modules:
        graph.add(module)
    bits: dict[str, int] = {}
    for found in graph.events:
        for attr in found.updates:
            bits.setdefault(attr, 4 << (2 * len(bits)))
    every_capture = 0
    for bit in bits.values():
        every_capture |= bit << 1
    own = [own_mask(found, bits, every_capture) for found in graph.events]
    masks = graph.masks(own)
    result = Relevance()
    for unit, mask, found in zip(graph.units, masks, graph.events, strict=True):
        both = any(mask & bit and mask & bit << 1 for bit in bits.values())
        unknown = bool(found.captures) and not unit.words.isdisjoint(protocol)
        matters = bool(mask & LOCAL or both or found.augmented or unknown)
        if unit.first:
            lines = (unit.first, unit.last)
            result.functions.setdefault(unit.module.id, {})[lines] = matters
        elif matters:
            result.bodies.add(unit.module.id)
    return result


def own_mask(found: Events, bits: dict[str, int], every_capture: int) -> int:
    mask = LOCAL if found.local else 0
    for attr in found.updates:
        mask |= bits[attr]
    for attr in found.captures:
        if attr == "*":
            mask |= every_capture
        elif attr in bits:
            mask |= bits[attr] << 1
    return mask


def relevance_of(table: ModuleTable, protocol: frozenset[str]) -> Relevance:
    """Return the relevance of a program: its targets and the dependencies that they import."""
    return relevance(program(table), protocol)


def program(table: ModuleTable) -> list[Module]:
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
