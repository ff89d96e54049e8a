"""AL101: a captured array read after an in-place update."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from aliaslint.findings import Finding, Repair
from aliaslint.rules import Rule

if TYPE_CHECKING:
    from aliaslint.findings import Form
    from aliaslint.rules.evidence import Evidence, Group

RULE = Rule(
    code="AL101",
    name="stale-capture",
    summary="captured array read after an in-place update",
    message=(
        "`{name}` is the live array of `{source}`, not a copy: read after {mutation}, it has "
        "the changed value"
    ),
    severity="error",
    default=True,
    what="""\
Finds a captured array handle that is read after an in-place update of that handle, on some path:
in the same function or through calls, returns, loops, containers and closures.

A read is a use of the value: an operand, an argument of a function outside the program, an index,
a truth test, a conversion. Shapes, `isinstance`, `is` and `mx.eval` are none. Every finding
carries its trace: the capture, the mutation with the calls that lead to it, and the reads.""",
    why="""\
The capture looks like a number and is with the plain caches, whose offset is an int. With the
caches of a batch it is the cache's own array, and reads whatever the cache has made of it since.
The queries are then rotated by the wrong position. Nothing raises; the output reads well and is
wrong.""",
    example="""\
offset = cache.offset
keys, values = cache.update_and_fetch(keys, values)
queries = self.rope(queries, offset=offset)""",
    instead="""\
offset = mx.array(cache.offset)
keys, values = cache.update_and_fetch(keys, values)
queries = self.rope(queries, offset=offset)""",
    known_problems="""\
A capture is only reported against a cache that updates in place: the same line is a bug with
mlx-lm 0.31.3 and healthy with 0.32.2. What stood for a dependency is named in the summary.""",
    fix="""\
By preference the update is rebound where it happens (AL001), which cures every capture. What is
left gets a snapshot at the capture: `mx.array(...)` where the value is an array, a form that keeps
an int an int, and None as it is, where it may be one. Safe where a cache with an int offset would
give the same result. Of what comes in a container the array is copied after the statement that
unpacks it, or where a function of the program puts it in. Where neither can be done, nothing is
rewritten, and `fix` says why.""",
)


def find_in_program(evidence: Evidence) -> Iterator[Finding]:
    """One finding a capture in the target, with every mutation and read of it."""
    from aliaslint.rules.copying import obstacle
    from aliaslint.rules.evidence import attribute_text

    for (code, where), group in evidence.groups.items():
        if code != RULE.code or not evidence.in_target(where):
            continue
        yield RULE.finding(
            evidence.path(where),
            evidence.span(where),
            trace=evidence.trace(group, evidence.capture_steps(group.victim)),
            repair=repair(evidence, group),
            obstacle=obstacle(evidence, where),
            name=evidence.bound_name(where),
            source=attribute_text(group.victim) or evidence.text(where),
            mutation=evidence.mutation_text(group),
        )


def repair(evidence: Evidence, group: Group) -> Repair | None:
    """A snapshot of the captured array; ints stay ints where an int cache may be meant."""
    from aliaslint.rules.copying import snapshot

    if group.victim.kind != "capture":
        return None
    form: Form = "array" if group.victim.array else "keep-int"
    victims = [*group.victims]
    return snapshot(evidence, group.where, [group.victim], "safe", form, victims=victims)
