"""AL201: one array handed over to a second owner and updated in place by one of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from aliaslint.findings import Finding, Repair
from aliaslint.rules import Rule

if TYPE_CHECKING:
    from aliaslint.rules.evidence import Evidence, Group

RULE = Rule(
    code="AL201",
    name="shared-handle",
    summary="array handed over to a second owner, updated by one and read through the other",
    message=(
        "`{source}` and `{target}` now hold the same array: {mutation} changes both, and the "
        "other is read afterwards"
    ),
    severity="error",
    default=True,
    what="""\
Finds an array handle that is handed over to a second owner, updated in place by one owner and
read through the other. Hand-overs are state getters and setters, `copy`, `merge`, `extract`, a
shallow copy, a constructor argument, a class attribute, a default argument, and what a
`cached_property` or a function under `lru_cache` gives back.""",
    why="""\
Two caches that share one `offset` advance each other. A prefix snapshot taken through `state`
changes after the fact. Each class is right on its own, so tests of either one pass.""",
    example="""\
other = Cache()
other.offset = cache.offset
cache.update_and_fetch(keys, values)
mask = other.make_mask(n)""",
    instead="""\
other = Cache()
other.offset = mx.array(cache.offset)
cache.update_and_fetch(keys, values)
mask = other.make_mask(n)""",
    known_problems="""\
Sharing that is meant (one `lengths` for several caches of a request) is declared with
`shared-attributes = ["lengths"]`.""",
    fix="A copy at the hand-over. Unsafe, since the sharing may be meant.",
)


OBSTACLE = (
    "the array has no expression of its own here: give each of its owners an array of its own"
)


def find_in_program(evidence: Evidence) -> Iterator[Finding]:
    """Arrays handed to a second owner, updated through one and read through the other."""
    from aliaslint.rules.evidence import attribute_text

    for (code, where), group in evidence.groups.items():
        if code != RULE.code or not evidence.in_target(where):
            continue
        mark = evidence.mutations(group)[0]
        yield RULE.finding(
            evidence.path(where),
            evidence.span(where),
            trace=evidence.trace(group, evidence.capture_steps(richer(group))),
            repair=repair(evidence, group),
            obstacle=OBSTACLE,
            source=attribute_text(group.victim) or evidence.text(where),
            target=mark.site.text,
            mutation=evidence.mutation_text(group),
        )


def repair(evidence: Evidence, group: Group) -> Repair | None:
    """A copy of the array where it is handed over."""
    from aliaslint.rules.copying import snapshot

    provs = [group.victim, *(mark.source for mark in evidence.mutations(group))]
    reason = "the two owners no longer share the array, should that be meant"
    return snapshot(evidence, group.where, provs, "unsafe", "array", reason, [*group.victims])


def richer(group: Group):  # type: ignore[no-untyped-def]
    """Return the provenance that tells of the hand-over."""
    for mark in group.marks.values():
        source = mark.source
        if source is not None and any(h.kind == "hand-over" for h in source.hops):
            if not any(h.kind == "hand-over" for h in group.victim.hops):
                return source
    return group.victim
