"""AL102: a captured array that outlives an update, without a proven read."""

from __future__ import annotations

from aliaslint.rules import Rule

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
