"""AL901: a suppression that hides nothing. The check itself is `aliaslint.source.suppressions`."""

from __future__ import annotations

from aliaslint.rules import Rule

RULE = Rule(
    code="AL901",
    name="unused-suppression",
    summary="suppression comment that hides nothing",
    message="{problem}",
    severity="error",
    default=True,
    what="""\
Finds `# aliaslint: ignore[...]` and `# noqa: AL...` comments that hide no finding. Only codes that
ran are judged, only in files whose dependencies were found, and a suppression is unused only if
it is so under every version of a dependency that the project admits.""",
    why="""\
A suppression that outlives its finding hides the next one.""",
    example="count = count + 1  # aliaslint: ignore[AL001] checked by hand",
    instead="count = count + 1",
    fix="Removes the comment, or the code in it that hides nothing. Safe.",
)
