"""The updates and captures of all that a function can lead to, as bits of integers.

A class that is mentioned is taken to be instantiated. Its methods run only if their names are
mentioned too, by something that is reached: an object whose class is known can be used by any of
it. This is rapid type analysis, made for each function that asks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from aliaslint.program.reach import Node, Reach, Unit

Before = dict[Node, list[Node]]


@dataclass(slots=True)
class Facts:
    """What a function leads to: updates, captures that are left behind, classes, member names."""

    updates: int = 0
    leaked: int = 0
    classes: int = 0
    members: int = 0

    def add(self, other: Facts) -> bool:
        """Take in what another function leads to; True if that is news for the methods run."""
        news = bool(other.classes & ~self.classes or other.members & ~self.members)
        self.updates |= other.updates
        self.leaked |= other.leaked
        self.classes |= other.classes
        self.members |= other.members
        return news


class Masks:
    """Answers for the nodes of one graph."""

    def __init__(self, reach: Reach, thorough: bool) -> None:
        """With `thorough`, what a class of the protocol writes into its own buffers counts: on a
        receiver of unknown class it is told as AL102 at most."""
        self.reach = reach
        self.bits = reach.bits
        self.hidden = 0 if thorough else self.bits.items
        self.classes = [unit for unit in reach.units.values() if unit.node[0] == "c"]
        names = dict.fromkeys(name for unit in self.classes for name, _ in unit.methods)
        self.names = {name: 1 << number for number, name in enumerate(names)}
        self.coarse = self._events(self._before(through_classes=True))
        before = self._before(through_classes=False)
        events = self._events(before)
        classes, members = self._classes(before), self._members_of_all(before)
        self.direct = {
            node: Facts(*events[node], classes[node], members[node]) for node in reach.units
        }
        self.of_caches = 0  # what methods of the cache protocol update
        for node, facts in self.direct.items():
            if node[0] == "p":
                self.of_caches |= facts.updates & ~self.hidden
        self.methods = [
            [(self.names[name] if not is_special(name) else 0, node) for name, node in unit.methods]
            for unit in self.classes
        ]

    def _before(self, through_classes: bool) -> Before:
        """Return for each node those that lead to it; a class to its methods if asked for."""
        before: Before = {node: [] for node in self.reach.units}
        for unit in self.reach.units.values():
            for node in unit.leads_to:
                before[node].append(unit.node)
            for _, node in unit.methods if through_classes else ():
                before[node].append(unit.node)
        return before

    def _events(self, before: Before) -> dict[Node, tuple[int, int]]:
        """Return for each node what it may update, and what it may leave captured."""
        units = self.reach.units.values()
        updates = {unit.node: unit.updates for unit in units}
        spread(updates, before, lambda node: self.hidden if node[0] == "p" else 0)
        leaked = {
            unit.node: unit.captures & (unit.leaks | ~self._near_updates(unit, updates))
            for unit in units
        }
        spread(leaked, before)
        return {node: (updates[node], leaked[node]) for node in updates}

    def leading_to(self, functions: list[str]) -> dict[str, int]:
        """Return for each function which of the given ones it may lead to, a bit for each."""
        bits = {key: 1 << number for number, key in enumerate(functions)}
        masks = {node: bits.get(node[1], 0) if node[0] == "f" else 0 for node in self.reach.units}
        spread(masks, self._before(through_classes=True))
        found: dict[str, int] = {}
        for node, mask in masks.items():
            if node[0] == "f":
                found[node[1]] = found.get(node[1], 0) | mask
        return found

    def _classes(self, before: Before) -> dict[Node, int]:
        classes = dict.fromkeys(self.reach.units, 0)
        classes.update((unit.node, 1 << number) for number, unit in enumerate(self.classes))
        spread(classes, before)
        return classes

    def _members_of_all(self, before: Before) -> dict[Node, int]:
        members = {unit.node: self._members(unit) for unit in self.reach.units.values()}
        spread(members, before)
        return members

    def _members(self, unit: Unit) -> int:
        found = 0
        for name in unit.scan.members if unit.scan is not None else ():
            found |= self.names.get(name, 0)
        return found

    def _near_updates(self, unit: Unit, updates: dict[Node, int]) -> int:
        """Return the updates that a function is sure to lead to without its callers: those of
        captures of any other attribute may be known to a caller only."""
        near = unit.sure | self.bits.capture("*")
        for node in unit.leads_to:
            if node[0] in {"p", "m"}:
                near |= updates[node]
        return near

    def meets(self, unit: Unit) -> bool:
        """True if something may be updated that the function, or a call of it, has captured."""
        updates, leaked = self.coarse[unit.node]
        if not self.bits.meeting(updates, unit.captures | leaked):
            return False
        facts = self._run(unit)
        return bool(self.bits.meeting(facts.updates, unit.captures | facts.leaked))

    def captures(self, unit: Unit) -> bool:
        """True if the function's own text captures something that it may lead to an update of."""
        return bool(self.bits.meeting(self.coarse[unit.node][0], unit.captures))

    def captures_of_caches(self, unit: Unit) -> bool:
        """True if the function's own text captures by its name what a cache method updates."""
        return bool(unit.captures & self.of_caches)

    def _run(self, unit: Unit) -> Facts:
        """Return what a function leads to, with the methods that its own mentions can run."""
        facts = Facts(unit.updates, unit.captures, 0, self._members(unit))
        for node in unit.leads_to:
            part = self.direct[node]
            if node[0] == "p":
                part = Facts(part.updates & ~self.hidden, part.leaked, part.classes, part.members)
            facts.add(part)
        ran: set[Node] = set()
        news = True
        while news:
            news = False
            pending = facts.classes
            while pending:
                lowest = pending & -pending
                pending ^= lowest
                for name, node in self.methods[lowest.bit_length() - 1]:
                    if node not in ran and (not name or name & facts.members):
                        ran.add(node)
                        news |= facts.add(self.direct[node])
        return facts


def is_special(name: str) -> bool:
    """True for methods that run without being named: constructors, operators, item access."""
    return name.startswith("__") and name.endswith("__") and name != "__call__"


def spread(
    masks: dict[Node, int], before: Before, hidden: Callable[[Node], int] = lambda node: 0
) -> None:
    """Add to each node the bits of all that it leads to, but for those that a node hides."""
    pending = [node for node, mask in masks.items() if mask]
    while pending:
        node = pending.pop()
        mask = masks[node] & ~hidden(node)
        for caller in before[node]:
            if mask & ~masks[caller]:
                masks[caller] |= mask
                pending.append(caller)
