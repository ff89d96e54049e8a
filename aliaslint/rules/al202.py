"""AL202: an operand that is the same array as one updated in place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from aliaslint.findings import Finding, Repair
from aliaslint.rules import Rule

if TYPE_CHECKING:
    from aliaslint.findings import Safety
    from aliaslint.rules.evidence import Evidence, Group

RULE = Rule(
    code="AL202",
    name="aliased-operand",
    summary="in-place update of an array that another name still reads",
    message="`{statement}` also changes `{other}`, the same array, which is read afterwards",
    severity="error",
    default=True,
    what="""\
Finds the same fault away from owners: `residual = x; x += f(x)` and then a read of `residual`, or
a function that updates its parameter in place while its caller reads the argument later.""",
    why="""\
`residual = x` copies nothing. After `x += f(x)` both names have the sum, and the residual
connection adds it to itself. With numbers and with torch's out-of-place habits the code reads
as if it were right.""",
    example="""\
residual = x
x += self.attn(x)
return self.mlp(x) + residual""",
    instead="""\
residual = x
x = x + self.attn(x)
return self.mlp(x) + residual""",
    known_problems="""\
Out-parameters are meant and silent: a function that updates its parameter and returns nothing
derived from it, and `x = process(x)`, where the caller puts the result back under the same name.
They are reported only where a third name still holds the array and is read.""",
    fix="""\
Rebinding. Safe unless the function is meant to write into its parameter, or a loop may be meant
to write into the elements that it goes over.""",
)


def find_in_program(evidence: Evidence) -> Iterator[Finding]:
    """Operands updated in place while another name for them is read afterwards."""
    for (code, where), group in evidence.groups.items():
        if code != RULE.code or not evidence.in_target(where):
            continue
        yield RULE.finding(
            evidence.path(where),
            evidence.span(where),
            trace=evidence.trace(group, evidence.capture_steps(group.victim)),
            repair=repair(evidence, group),
            statement=evidence.text(where),
            other=other_name(evidence, group),
        )


def other_name(evidence: Evidence, group: Group) -> str:
    from aliaslint.rules.evidence import attribute_text

    if group.reads:
        first = min(group.reads, key=evidence.order)
        return evidence.text(first, 30)
    return attribute_text(group.victim) or "another name"


def repair(evidence: Evidence, group: Group) -> Repair | None:
    """Rebinding the operand is safe unless the update may be meant for whoever else holds it."""
    from aliaslint.rules.rebinding import copy_first, divides
    from aliaslint.rules.storing import is_loop_variable

    mark = evidence.mutations(group)[0]
    if divides(mark.site):
        return None
    reason = ""
    if any(m.meant for m in group.marks.values()):
        reason = "the function is there to write its parameter"
    elif is_loop_variable(evidence, mark.site):
        reason = "the elements that the loop goes over no longer change"
    safety: Safety = "unsafe" if reason else "safe"
    if mark.site.via.endswith("-item"):
        return copy_first(evidence, mark.site, safety, reason)
    repeatable = evidence.is_repeatable(group.where)
    return Repair("rebind", evidence.span(group.where), safety, reason, repeatable=repeatable)
