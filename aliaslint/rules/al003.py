"""AL003: an item assignment on an array attribute that a holder reads afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from aliaslint.findings import Finding
from aliaslint.rules import Rule

if TYPE_CHECKING:
    from aliaslint.rules.evidence import Evidence

RULE = Rule(
    code="AL003",
    name="inplace-item-assignment",
    summary="item assignment on an array attribute that a holder reads afterwards",
    message="`{statement}` writes into the array that `{holder}` still holds and reads afterwards",
    severity="error",
    default=True,
    what="""\
Finds `self.offset[i] = v` (any index, slices and masks included) on an `mx.array` attribute where
some other holder of the array is proven to read it afterwards.

`self.keys[..., a:b, :] = k` is what a cache does; it is silent unless somebody holds `self.keys`
over it.""",
    why="""\
An item assignment changes the array for every name that refers to it, exactly as an augmented
assignment does. The holder reads values that were written after it took them.""",
    example="""\
class BatchCache:
    def reset_row(self, i):
        self.offset[i] = 0


before = cache.offset
cache.reset_row(1)
moved = cache.offset - before  # always 0""",
    instead="""\
class BatchCache:
    def reset_row(self, i):
        self.offset = mx.array(self.offset)
        self.offset[i] = 0""",
    known_problems="""\
`a.at[i]` has no `set`, and `a.at[i].add(1)` counts a repeated index twice where `a[i] += 1` counts
it once. The fix therefore never uses `.at`.""",
    fix="""\
Copies the attribute before the write. Always unsafe: it costs a copy of the array, and a second
owner that shares the array on purpose no longer sees the write.""",
)


def find_in_program(evidence: Evidence) -> Iterator[Finding]:
    """Item assignments on an array attribute whose other holder is proven to read it."""
    from aliaslint.rules.rebinding import copy_first

    for site in evidence.analysis.sites:
        if site.via != "attr-item" or site.op == "__setitem__" or site not in evidence.proven:
            continue
        if not evidence.in_target(site.where):
            continue
        group = next(g for g in evidence.groups.values() if site in g.marks)
        yield RULE.finding(
            evidence.path(site.where),
            evidence.span(site.where),
            trace=evidence.trace(group, evidence.capture_steps(group.victim)),
            repair=copy_first(
                evidence, site, "unsafe", "who holds the array on purpose no longer sees the write"
            ),
            statement=evidence.text(site.where),
            holder=evidence.bound_name(group.where),
        )
