"""AL001: an in-place update of an array attribute that others capture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from aliaslint.findings import Finding, Repair, Step
from aliaslint.rules import Rule

if TYPE_CHECKING:
    from aliaslint.flow.values import Site
    from aliaslint.rules.evidence import Evidence

RULE = Rule(
    code="AL001",
    name="inplace-exposed-attribute",
    summary="augmented assignment on an array attribute that others capture",
    message=(
        "`{statement}` updates the array in place: whoever captured `{attribute}` before "
        "sees it change"
    ),
    severity="error",
    default=True,
    what="""\
Finds augmented assignments (`+=`, `-=` and the other eleven) on an `mx.array` attribute of a
cache, where the attribute is *exposed*: it is named in `exposed-attributes` (at first `offset`),
or the update is the mutation step of an AL101 or AL201 trace.

Whether an attribute is an array or an int is inferred from the class, per receiver class; an
int counter such as `self._idx += n` is never reported. Nor is an object that was made in the
same function and has not escaped yet.""",
    why="""\
`a += b` on an `mx.array` does not make a new array. It changes what the handle points at, so
every other name for that handle changes too. A model that read `offset = cache.offset` before
`update_and_fetch` rotates its queries by the position *after* the update. Nothing raises; the
output of a batch is fluent and wrong. The same code is right with a cache whose offset is an
int, which is why it goes unnoticed.""",
    example="""\
class BatchCache:
    def __init__(self, left_padding):
        self.offset = mx.array([-p for p in left_padding])

    def update_and_fetch(self, keys, values):
        self.offset += keys.shape[2]
        return keys, values""",
    instead="""\
class BatchCache:
    def __init__(self, left_padding):
        self.offset = mx.array([-p for p in left_padding])

    def update_and_fetch(self, keys, values):
        self.offset = self.offset + keys.shape[2]
        return keys, values""",
    known_problems="""\
ruff's preview rule PLR6104 (`non-augmented-assignment`) asks for the opposite and its fix brings
the bug back; AL902 reports a configuration that selects it.""",
    fix="""\
Rebinding gives the same value, dtype and shape. It is safe where no second owner of the array
counts on seeing the update, the right-hand side neither suspends nor updates the target, and the
store reaches no setter that writes through. Otherwise it is unsafe, with the reason.
`shared-attributes` declares sharing that is meant. `/=` on an array that may be of integers
raises in place and gives floats when rebound: it is reported and not rewritten.""",
)


def find_in_program(evidence: Evidence) -> Iterator[Finding]:
    """In-place updates of exposed attributes, and of those that a trace shows to be read."""
    for site, info in evidence.analysis.sites.items():
        statement = site.where in evidence.analysis.statements
        if site.via != "attr" or not statement or not evidence.in_target(site.where):
            continue
        exposed = site.attr in evidence.exposed and info.escaped
        if exposed or site in evidence.proven:
            yield finding(RULE, evidence, site)


def finding(rule: Rule, evidence: Evidence, site: Site) -> Finding:
    from aliaslint.rules.rebinding import rebind

    return rule.finding(
        evidence.path(site.where),
        evidence.span(site.where),
        trace=outside_trace(evidence, site),
        repair=rebind(evidence, site),
        statement=evidence.text(site.where),
        attribute=site.text,
    )


def outside_trace(evidence: Evidence, site: Site) -> tuple[Step, ...]:
    """The trace of a capture that lies in a dependency: it is told here or nowhere."""
    for (code, where), group in evidence.groups.items():
        if code in {"AL101", "AL201"} and site in group.marks and not evidence.in_target(where):
            return evidence.trace(group, evidence.capture_steps(group.victim))
    return (evidence.step("mutation", site.where, "changes the array in place"),)


__all__ = ["Repair"]
