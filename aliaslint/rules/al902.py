"""AL902: a ruff configuration that selects the rule which undoes rebinding."""

from __future__ import annotations

from aliaslint.rules import Rule

RULE = Rule(
    code="AL902",
    name="fix-reverting-rule",
    summary="ruff configuration selects PLR6104, which undoes rebinding",
    message=(
        "`{selector}` selects ruff's PLR6104, which turns `x = x + n` back into `x += n` and so "
        'brings stale captures back; add `ignore = ["PLR6104"]`'
    ),
    severity="warning",
    default=True,
    what="""\
Finds a ruff configuration of the project (pyproject.toml, ruff.toml, .ruff.toml) that selects
PLR6104 (`non-augmented-assignment`), by its code or by a prefix with preview rules on, and does
not ignore it.""",
    why="""\
The rule prefers `x += n` to `x = x + n`. On an `mx.array` the two differ: the first changes the
array for everyone who holds it. Its fix rewrites the cure of AL001 into the bug.""",
    example="""\
[tool.ruff.lint]
preview = true
select = ["PL"]""",
    instead="""\
[tool.ruff.lint]
preview = true
select = ["PL"]
ignore = ["PLR6104"]""",
    language="toml",
)
