"""AL901: a suppression that hides nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from aliaslint.findings import Finding, Repair, Span
from aliaslint.rules import Rule, UnknownRule, lookup

if TYPE_CHECKING:
    from aliaslint.source.suppressions import Named, Suppression

RULE = Rule(
    code="AL901",
    name="unused-suppression",
    summary="suppression comment that hides nothing",
    message="unused suppression: {problem}",
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


def find(
    path: Path, comments: Iterable[Suppression], used: Collection[Span], codes: frozenset[str]
) -> Iterator[Finding]:
    """Yield a finding for each comment, or name in one, that hides nothing.

    `used` holds the names that hid a finding, `codes` the rules that ran on the file.
    """
    for comment in comments:
        if comment.kind == "skip-file":
            continue  # Says how to treat a file, not that there is something to hide.
        idle = [(n, p) for n in comment.named if (p := _problem(n, comment, used, codes))]
        if not comment.named:
            problem = "names no rule, so it hides nothing: write `ignore[AL001]`"
            yield _finding(path, comment.span, problem)
        elif len(idle) == len(comment.named):
            yield _finding(path, comment.span, "; ".join(problem for _, problem in idle))
        else:
            yield from (_finding(path, named.span, problem) for named, problem in idle)


def _finding(path: Path, span: Span, problem: str) -> Finding:
    repair = Repair("remove-suppression", span, "safe")
    return RULE.finding(path, span, repair=repair, problem=problem)


def _problem(
    named: Named, comment: Suppression, used: Collection[Span], codes: frozenset[str]
) -> str:
    """Return what is wrong with one name, nothing if it hides a finding or is not ours."""
    if named.span in used:
        return ""
    try:
        rule = lookup(named.text)
    except UnknownRule as error:
        return "" if comment.kind == "noqa" else str(error)
    if rule.code not in codes or rule is RULE:
        return ""
    return f"no {rule.code} here"
