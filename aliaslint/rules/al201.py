"""AL201: one array handed over to a second owner and updated in place by one of them."""

from __future__ import annotations

from aliaslint.rules import Rule

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
shallow copy, a constructor argument, a class attribute, a default argument.""",
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
