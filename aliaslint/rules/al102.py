"""AL102: a captured array that outlives an update, without a proven read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from aliaslint.findings import Finding
from aliaslint.rules import Rule

if TYPE_CHECKING:
    from aliaslint.findings import Step
    from aliaslint.flow.context import Escape
    from aliaslint.flow.values import Prov, Where
    from aliaslint.rules.evidence import Evidence

RULE = Rule(
    code="AL102",
    name="escaping-capture",
    summary="captured array that outlives an update, with no read proven",
    message="`{name}` keeps the live array of `{source}`: {reason}",
    severity="error",
    default=False,
    what="""\
Finds captures that may well be stale, without proof of it: the handle is stored (in `self`, a
list, a dict, a closure, or returned) where it outlives an update and no read is proven; or it is
held across a call of the cache protocol that could not be resolved; or it is stale only through a
place that the analysis had to merge at one of its bounds.""",
    why="""\
What AL101 proves, this rule suspects. It tells where the analysis could not see to the end, for
instance because the source of a dependency is not at hand.""",
    example="""\
def remember(self, cache):
    self.start = cache.offset""",
    instead="""\
def remember(self, cache):
    self.start = mx.array(cache.offset)""",
    known_problems="""\
Name the dependency's version (`mlx-lm = "0.31.3"` in `[tool.aliaslint]`, or `--python`) and most
findings of this rule either disappear or become AL101.""",
    fix="A snapshot at the capture. Unsafe, since the sharing may be meant.",
)


def find_in_program(evidence: Evidence) -> Iterator[Finding]:
    """Captures that outlive an update with no read proven, or that a bound hides."""
    told = set(told_places(evidence))
    seen: set[Where] = set()
    for (code, where), group in evidence.groups.items():
        if code == RULE.code and where not in told and where not in seen:
            seen.add(where)
            if evidence.in_target(where):
                reason = f"it is held across {evidence.mutation_text(group)}, which may update it"
                steps = evidence.trace(group, evidence.capture_steps(group.victim))
                yield finding(evidence, where, group.victim, reason, steps)
    for escape in evidence.analysis.escapes.values():
        place = escaped_place(escape)
        if place is None or place in told or place in seen or not evidence.in_target(place):
            continue
        where = place
        seen.add(where)
        site = escape.mark.site
        text = f"`{evidence.text(site.where)}` ({evidence.place(site.where)})"
        steps = (
            *evidence.capture_steps(escape.victim),
            *(evidence.step("call", c, f"calls `{evidence.text(c)}`") for c in escape.mark.chain),
            evidence.step("mutation", site.where, "changes the array in place"),
        )
        yield finding(evidence, where, escape.victim, f"it outlives {text}", steps)


def told_places(evidence: Evidence) -> Iterator[Where]:
    """Captures and hand-overs that another finding tells of already."""
    for (code, where), group in evidence.groups.items():
        if code == RULE.code:
            continue
        yield where
        for prov in (group.victim, *(m.source for m in group.marks.values())):
            if prov is not None and prov.where is not None:
                yield prov.where
            yield from (hop.where for hop in prov.hops) if prov is not None else ()


def escaped_place(escape: Escape) -> Where | None:
    """Only captures of an attribute are told: what a function returns of its own is not one."""
    victim = escape.victim
    if victim.kind != "capture" or not victim.owner:
        return None
    from aliaslint.rules.evidence import capture_place

    return capture_place(victim)


def finding(
    evidence: Evidence, where: Where, victim: Prov, reason: str, steps: tuple[Step, ...]
) -> Finding:
    from aliaslint.rules.copying import obstacle, snapshot
    from aliaslint.rules.evidence import attribute_text

    why = "no read is proven"
    return RULE.finding(
        evidence.path(where),
        evidence.span(where),
        trace=steps,
        repair=snapshot(evidence, where, [victim], "unsafe", "keep-int", why, [victim]),
        obstacle=obstacle(evidence, where),
        name=evidence.bound_name(where),
        source=attribute_text(victim) or evidence.text(where),
        reason=reason,
    )
