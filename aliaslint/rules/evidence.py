"""From proven faults to findings: which rule a fault belongs to, where it is placed, its trace.

One fault gives one finding. What was updated, and how the stale binding came by the handle,
decide the rule; the reads of one capture are gathered under it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from aliaslint.findings import Role, Span, Step
from aliaslint.flow.context import Analysis, Fault
from aliaslint.flow.values import Mark, Pos, Prov, Site, Where
from aliaslint.lower.ir import At

if TYPE_CHECKING:
    from aliaslint.rules.repeating import Program

LOCAL_UPDATES = frozenset({"name", "name-item", "element", "element-item"})
CAPTURES = frozenset({"AL101", "AL201"})
MAX_READS = 40


@dataclass(slots=True)
class Group:
    """All faults that share one finding: its rule, its place, its mutations and reads.

    `possible` are reads of the same capture that some updates may have changed, without proof.
    """

    code: str
    where: Where
    victim: Prov
    marks: dict[Site, Mark] = field(default_factory=dict)
    reads: dict[Where, tuple[Where, ...]] = field(default_factory=dict)
    possible: dict[Where, tuple[Where, ...]] = field(default_factory=dict)
    victims: dict[Prov, None] = field(default_factory=dict)
    left: bool = False

    def add(self, fault: Fault) -> None:
        self.victims[fault.victim] = None
        old = self.marks.get(fault.mark.site)
        if old is None or len(fault.mark.chain) < len(old.chain):
            self.marks[fault.mark.site] = fault.mark
        if fault.kind == "left":
            self.left = True
        elif fault.where not in self.reads or len(fault.calls) < len(self.reads[fault.where]):
            self.reads[fault.where] = fault.calls


@dataclass(slots=True)
class Evidence:
    """What the rules look at: the analysis, the grouped faults, and places in source text."""

    analysis: Analysis
    exposed: frozenset[str]
    shared: frozenset[str]
    groups: dict[tuple[str, Where], Group] = field(default_factory=dict)
    proven: set[Site] = field(default_factory=set)
    sharing: set[Site] = field(default_factory=set)
    _entangled: dict[Site, str] | None = None
    _program: Program | None = None

    def entangled(self) -> dict[Site, str]:
        """Return the updates that run as part of another one, and those others, with reasons."""
        from aliaslint.rules.rebinding import entangled

        if self._entangled is None:
            self._entangled = entangled(self.analysis)
        return self._entangled

    def is_repeatable(self, where: Where) -> bool:
        """Whether what the update at a place writes to may be evaluated twice."""
        from aliaslint.rules import repeating

        if self._program is None:
            self._program = repeating.program(self.analysis)
        return repeating.is_repeatable(self.analysis, self._program, where)

    # --- source text

    def path(self, where: Where) -> Path:
        return self.analysis.modules.by_id[where.module].path

    def in_target(self, where: Where) -> bool:
        return self.analysis.modules.by_id[where.module].in_target

    def span(self, where: Where) -> Span:
        lines = self.analysis.modules.by_id[where.module].lines
        return span_of(lines, where.at)

    def text(self, where: Where, limit: int = 60) -> str:
        """Return the source at a place, on one line and cut where it is long."""
        lines = self.analysis.modules.by_id[where.module].lines
        line, column, end_line, end_column = where.at
        if not 0 < line <= len(lines):
            return ""
        if line == end_line:
            raw = lines[line - 1].encode()[column:end_column].decode("utf-8", "replace")
        else:
            raw = lines[line - 1].encode()[column:].decode("utf-8", "replace").strip() + " ..."
        raw = " ".join(raw.split())
        return raw if len(raw) <= limit else raw[: limit - 3] + "..."

    def line(self, where: Where) -> str:
        lines = self.analysis.modules.by_id[where.module].lines
        return lines[where.at[0] - 1] if 0 < where.at[0] <= len(lines) else ""

    def place(self, where: Where) -> str:
        return f"{self.path(where).name}:{where.at[0]}"

    def order(self, where: Where) -> tuple[str, At]:
        return (str(self.path(where)), where.at)

    def bound_name(self, where: Where) -> str:
        """Return the name that a capture is bound to on its line, or the captured text."""
        match = re.match(r"\s*([A-Za-z_][\w.]*)\s*(?::[^=]+)?(?:=|:=)(?!=)", self.line(where))
        return match.group(1) if match else self.text(where)

    # --- traces

    def step(self, role: Role, where: Where, message: str) -> Step:
        return Step(role, self.path(where), self.span(where), message)

    def mutations(self, group: Group) -> list[Mark]:
        return sorted(group.marks.values(), key=lambda m: (len(m.chain), self.order(m.site.where)))

    def trace(self, group: Group, first: Iterable[Step]) -> tuple[Step, ...]:
        steps = [*first]
        seen: set[Where] = set()
        for mark in self.mutations(group):
            for call in mark.chain:
                if call not in seen:
                    seen.add(call)
                    steps.append(self.step("call", call, f"calls `{self.text(call)}`"))
            text = self.text(mark.site.where)
            where = mark.site.where
            steps.append(self.step("mutation", where, f"`{text}` changes the array in place"))
        for reads, what in ((group.reads, "reads"), (group.possible, "may read")):
            for where in sorted(reads, key=self.order)[:MAX_READS]:
                for call in reads[where]:
                    if call not in seen:
                        seen.add(call)
                        steps.append(self.step("call", call, f"calls `{self.text(call)}`"))
                message = f"`{self.text(where)}` {what} the changed value"
                steps.append(self.step("read", where, message))
        return tuple(steps)

    def capture_steps(self, victim: Prov) -> list[Step]:
        steps: list[Step] = []
        if victim.where is not None and victim.kind == "capture":
            text = f"`{self.text(victim.where)}` takes the live array, not a copy"
            steps.append(self.step("capture", victim.where, text))
        for hop in victim.hops:
            text = self.text(hop.where)
            match hop.kind:
                case "call":
                    message = f"gives back the live `{hop.text or text}`"
                    steps.append(self.step("call", hop.where, message))
                case "hand-over":
                    message = f"`{text}` hands the array over: both hold the same one"
                    steps.append(self.step("hand-over", hop.where, message))
                case "store":
                    message = f"`{text}` keeps the array, not a copy"
                    steps.append(self.step("hand-over", hop.where, message))
                case "alias":
                    message = f"`{text}` is one more name for the array"
                    steps.append(self.step("capture", hop.where, message))
                case _:
                    pass
        return steps

    def mutation_text(self, group: Group) -> str:
        marks = self.mutations(group)
        first = marks[0].site.where
        text = f"`{self.text(first)}` ({self.place(first)})"
        if len(marks) > 1:
            text += f" and {len(marks) - 1} more in-place update" + "s" * (len(marks) > 2)
        return text


def attribute_text(prov: Prov | None) -> str:
    """Return how the source calls what a handle was taken from; "" for an element, or nothing."""
    if prov is None or (isinstance(prov.token, tuple) and isinstance(prov.token[-1], Pos)):
        return ""
    return prov.text


def span_of(lines: list[str], at: At) -> Span:
    line, column, end_line, end_column = at
    return Span(
        max(line, 1),
        characters(lines, line, column) + 1,
        max(end_line, 1),
        characters(lines, end_line, end_column) + 1,
    )


def within(inner: Where, outer: Where) -> bool:
    """Whether one place lies in another."""
    if inner.module != outer.module:
        return False
    return outer.at[:2] <= inner.at[:2] and inner.at[2:] <= outer.at[2:]


def characters(lines: list[str], line: int, column: int) -> int:
    """Turn a column in UTF-8 bytes into one in characters."""
    if not 0 < line <= len(lines):
        return column
    text = lines[line - 1]
    if text.isascii():
        return column
    return len(text.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "replace"))


# --- which rule


def gather(analysis: Analysis, exposed: frozenset[str], shared: frozenset[str]) -> Evidence:
    """Group the faults of an analysis by the finding that they belong to."""
    evidence = Evidence(analysis, exposed, shared)
    for fault in analysis.faults.values():
        placed = classify(evidence, fault)
        if placed is None:
            continue
        code, where = placed
        if code in {"AL101", "AL201"}:
            evidence.proven.add(fault.mark.site)
            if code == "AL201":
                evidence.sharing.add(fault.mark.site)
        group = evidence.groups.setdefault((code, where), Group(code, where, fault.victim))
        group.add(fault)
    add_possible_reads(evidence)
    return evidence


def add_possible_reads(evidence: Evidence) -> None:
    """What AL102 would say of a capture that is told anyway is part of what is told of it."""
    told = {group.where: group for group in evidence.groups.values() if group.code in CAPTURES}
    for group in evidence.groups.values():
        other = told.get(group.where)
        if group.code == "AL102" and other is not None:
            other.possible |= {w: calls for w, calls in group.reads.items() if w not in other.reads}


def classify(evidence: Evidence, fault: Fault) -> tuple[str, Where] | None:
    """Return the rule of a fault and the place of its finding."""
    victim, mark = fault.victim, fault.mark
    site = mark.site
    if site.via == "unresolved" or mark.collapsed:
        where = stored_at(victim, mark) or capture_place(victim)
        return ("AL102", where) if where is not None else None
    if site.via in LOCAL_UPDATES:
        return ("AL004" if has_owner(victim, mark) else "AL202"), site.where
    if site.attr in evidence.shared:
        return None
    handed = hand_over(victim, mark)
    if mark.guessed and site.via.startswith("attr-"):
        # Which class runs is a guess: that somebody keeps a buffer of the cache, too.
        return "AL102", handed or capture_place(victim) or site.where
    if handed is not None:
        given = site.via == "attr-item" and through_protocol(evidence.analysis, mark)
        return ("AL102" if given and handed.module == site.where.module else "AL201"), handed
    if victim.kind == "capture" and victim.where is not None:
        return "AL101", victim.where
    where = capture_place(victim)
    if where is not None and victim.kind in {"param", "fresh", "token"}:
        return "AL101", where
    return "AL201", (victim.where or site.where)


def stored_at(victim: Prov, mark: Mark) -> Where | None:
    """Return where an array was stored in a second place, if an object had it from the start."""
    source = mark.source
    owned = victim.kind in {"fresh", "initial"} or any(hop.kind == "store" for hop in victim.hops)
    if not owned or source is None or source.kind != "capture" or source.where == victim.where:
        return None
    return next((hop.where for hop in source.hops if hop.kind == "store"), None)


def through_protocol(analysis: Analysis, mark: Mark) -> bool:
    """True if the update runs inside a call of the cache protocol: what a cache is given there,
    it is given for good, and what it gives back is used before the next step."""
    keys = [key for where in mark.chain for key in analysis.resolved.get(where, ())]
    names = (key.split(":")[1].rpartition(".")[2] for key in keys if key.count(":") > 1)
    return any(name in analysis.protocol for name in names)


def has_owner(victim: Prov, mark: Mark) -> bool:
    """True if the array updated through a local belongs to somebody's attribute."""
    for prov in (victim, mark.source):
        if prov is None:
            continue
        if prov.owner or (prov.in_location and prov.kind == "initial"):
            return True
        if any(hop.kind in {"store", "hand-over"} for hop in prov.hops):
            return True
    return False


def hand_over(victim: Prov, mark: Mark) -> Where | None:
    """Return where the array was handed to a second owner, if that is how it is shared."""
    for prov in (victim, mark.source):
        if prov is None:
            continue
        for hop in prov.hops:
            if hop.kind == "hand-over":
                return hop.where
    taken = mark.source
    if taken is not None and taken.kind == "capture" and taken.in_location:
        for hop in taken.hops:
            if hop.kind == "store" and victim.kind != "capture":
                return hop.where
    if victim.kind == "static":
        return next((h.where for h in victim.hops if h.kind == "store"), victim.where)
    source = mark.source
    if source is not None and source.kind == "static":
        return source.where or victim.where
    if victim.kind in {"fresh", "param", "token", "initial"}:
        for prov in (victim, source):
            for hop in prov.hops if prov is not None else ():
                if hop.kind == "store":
                    return hop.where
    if victim.kind == "capture" and victim.in_location:
        stored = next((h for h in victim.hops if h.kind == "store"), None)
        same = stored and stored.text.rpartition(".")[2] == victim.text.rpartition(".")[2]
        if stored and same:
            return stored.where
    return None


def capture_place(victim: Prov) -> Where | None:
    if victim.kind == "capture" and victim.where is not None:
        return victim.where
    for hop in victim.hops:
        if hop.kind in {"alias", "arg", "store"}:
            return hop.where
    return victim.where
