"""AL004: an in-place update of somebody's attribute through a bare local name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from aliaslint.findings import Finding, Repair, Step
from aliaslint.rules import Rule

if TYPE_CHECKING:
    from aliaslint.flow.values import Mark
    from aliaslint.rules.evidence import Evidence, Group

RULE = Rule(
    code="AL004",
    name="inplace-through-alias",
    summary="in-place update of an attribute through a local name for it",
    message="`{statement}` also changes `{owner}`: `{alias}` is the same array, not a copy",
    severity="error",
    default=True,
    what="""\
Finds `o = cache.offset` followed by `o += 1` or `o[...] = v`: the local name is the attribute's
own array, so the update changes its owner behind its back.""",
    why="""\
It reads like arithmetic on a local and would be with an int. With an array the cache is advanced
from wherever this happens, a mask function for instance, and then advanced again by its own
`update_and_fetch`.""",
    example="""\
def make_mask(self, n):
    left_padding = self.left_padding
    left_padding -= n
    return left_padding > 0""",
    instead="""\
def make_mask(self, n):
    left_padding = self.left_padding
    left_padding = left_padding - n
    return left_padding > 0""",
    known_problems="""\
The right form is what ruff's PLR6104 wants to turn into the wrong one (AL902).""",
    fix="""\
In a method of the owner, where the local is sure to name its array, the update is stored back
(`self.offset = mine = mine + n`): safe, since the owner keeps the value that it had. Elsewhere
the local is rebound, which is unsafe: the owner no longer changes, and somebody may have counted
on it.""",
)


def find_in_program(evidence: Evidence) -> Iterator[Finding]:
    """Updates through a local name of an array that belongs to somebody's attribute."""
    for (code, where), group in evidence.groups.items():
        if code != RULE.code or not evidence.in_target(where):
            continue
        mark = evidence.mutations(group)[0]
        yield RULE.finding(
            evidence.path(where),
            evidence.span(where),
            trace=trace(evidence, group, mark),
            repair=repair(evidence, mark),
            statement=evidence.text(where),
            owner=owner_text(group, mark),
            alias=mark.site.text,
        )


def trace(evidence: Evidence, group: Group, mark: Mark) -> tuple[Step, ...]:
    first = mark.source if mark.source and mark.source.kind == "capture" else group.victim
    return evidence.trace(group, evidence.capture_steps(first))


def owner_text(group: Group, mark: Mark) -> str:
    """Return what to call the owner: its attribute, or the container of an element."""
    from aliaslint.rules.evidence import attribute_text

    for prov in (mark.source, group.victim):
        text = attribute_text(prov)
        if text and text != mark.site.text:
            return text
    return mark.site.text.rpartition("[")[0] or "its owner"


def repair(evidence: Evidence, mark: Mark) -> Repair | None:
    """Store back in a method of the owner, rebind the local elsewhere."""
    from aliaslint.rules.rebinding import copy_first, divides
    from aliaslint.rules.storing import owner_to_store

    span = evidence.span(mark.site.where)
    if divides(mark.site):
        return None
    if mark.site.via.endswith("-item"):
        return copy_first(evidence, mark.site, "unsafe", "the owner no longer sees the write")
    owner = "" if mark.chain else owner_to_store(evidence, mark)
    if owner:
        return Repair("store-back", span, "safe", owner=owner)
    reason = "the owner no longer sees the update"
    repeatable = evidence.is_repeatable(mark.site.where)
    return Repair("rebind", span, "unsafe", reason, repeatable=repeatable)
