"""AL002: an in-place update of an array attribute that nobody is known to capture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from aliaslint.findings import Finding
from aliaslint.rules import Rule
from aliaslint.rules.al001 import finding

if TYPE_CHECKING:
    from aliaslint.rules.evidence import Evidence

RULE = Rule(
    code="AL002",
    name="inplace-unexposed-attribute",
    summary="augmented assignment on an array attribute that nobody is known to capture",
    message=(
        "`{statement}` updates the array in place; nobody is known to hold `{attribute}`, "
        "but whoever captures it will see it change"
    ),
    severity="error",
    default=False,
    what="""\
Finds the same as AL001 on array attributes that are not exposed: not named in
`exposed-attributes`, and in no trace of AL101 or AL201. In mlx-lm 0.32 these are `left_padding`
and `lengths`, which are left so on purpose.""",
    why="""\
Nothing is wrong yet. The first capture of the attribute that outlives an update makes it a bug
that no test of the cache itself shows. Select this rule for a code base that wants value
semantics throughout.""",
    example="""\
class BatchCache:
    def __init__(self, left_padding):
        self.left_padding = mx.array(left_padding)

    def trim(self, n):
        self.left_padding -= n""",
    instead="""\
class BatchCache:
    def __init__(self, left_padding):
        self.left_padding = mx.array(left_padding)

    def trim(self, n):
        self.left_padding = self.left_padding - n""",
    fix="As for AL001.",
)


def find_in_program(evidence: Evidence) -> Iterator[Finding]:
    """In-place updates of array attributes that nothing is known to hold."""
    for site, info in evidence.analysis.sites.items():
        if site.via != "attr" or not info.escaped or not evidence.in_target(site.where):
            continue
        if site.where not in evidence.analysis.statements:
            continue
        if site.attr not in evidence.exposed and site not in evidence.proven:
            yield finding(RULE, evidence, site)
