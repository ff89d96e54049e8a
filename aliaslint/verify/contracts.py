"""Judges what the cache contract of both trees found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aliaslint.verify.model import CacheResult, Verdict

EXPOSED = ("offset",)


def contract_results(
    disk: Sequence[Mapping[str, Any]],
    rewritten: Sequence[Mapping[str, Any]],
    exposed: Iterable[str] = EXPOSED,
) -> list[CacheResult]:
    """One result a cache class, from what each tree's worker found for it.

    Only the exposed attributes decide: what else changes in place is named in the reason.
    """
    after = {(item["path"], item["name"]): item for item in rewritten}
    names = frozenset(exposed)
    return [_result(item, after.get((item["path"], item["name"])), names) for item in disk]


def _result(
    before: Mapping[str, Any], after: Mapping[str, Any] | None, exposed: frozenset[str]
) -> CacheResult:
    changed = tuple(before["changed"])
    left = tuple(after["changed"]) if after else changed
    verdict, reason = _judge(before["problem"], changed, left, exposed)
    return CacheResult(
        before["name"],
        before["path"],
        verdict,
        reason,
        tuple(before["attributes"]),
        changed,
        left,
    )


def _judge(
    problem: str, changed: Sequence[str], left: Sequence[str], exposed: frozenset[str]
) -> tuple[Verdict, str]:
    if problem:
        return "unsupported", problem
    if _of(left, exposed):
        return "broken", f"still changes after the rewrite: {', '.join(_of(left, exposed))}"
    if _of(changed, exposed):
        return "fixed", ""
    reason = f"changes in place, not exposed: {', '.join(left)}" if left else ""
    return "equivalent", reason


def _of(changed: Sequence[str], exposed: frozenset[str]) -> list[str]:
    return [item for item in changed if item.split(" ", 1)[0] in exposed]
