"""AL004: an in-place update of somebody's attribute through a bare local name."""

from __future__ import annotations

from aliaslint.rules import Rule

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
In a method of the owner the update is stored back (`self.offset = mine = mine + n`): safe, since
the owner keeps the value that it had. Elsewhere the local is rebound, which is unsafe: the owner
no longer changes, and somebody may have counted on it.""",
)
