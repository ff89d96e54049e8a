"""What a state knows of tests that have been made: two tests of one condition agree.

Behind `if flag: a = x` / `else: a = y` the variable may hold both, but where `flag` is tested
again it holds what it got under that outcome. A case is a condition on a local variable that
cannot change its outcome until the variable is bound anew: `x is None`, and the truth of what is
a truth value. Each case has what its variables are restricted to where it is true, and where it
is false; None in the place of that says that it cannot be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from aliaslint.flow.values import EMPTY, Link, Val

Restrictions = Mapping[str, frozenset[Link]]
Outcome = Restrictions | None
MAX_CASES = 6


class Case(NamedTuple):
    kind: str  # "true" or "none"
    name: str


Cases = dict[Case, tuple[Outcome, Outcome]]  # where it is true, and where it is false
Env = dict[str, Val]
ANYTHING: Restrictions = {}
NEVER: Outcome = None


def assume(env: Env, cases: Cases, case: Case, truth: bool) -> Cases | None:
    """Restrict the variables in `env` to one outcome, and return what is known then; None if
    that outcome cannot be."""
    known = cases.get(case, (ANYTHING, ANYTHING))[not truth]
    if known is None:
        return None
    for name, links in known.items():
        val = env.get(name, EMPTY)
        kept = {link: stale for link, stale in val.items() if link in links}
        if len(kept) != len(val):
            env[name] = kept
    return added(cases, case, (ANYTHING, NEVER) if truth else (NEVER, ANYTHING))


def added(cases: Cases, case: Case, outcomes: tuple[Outcome, Outcome]) -> Cases:
    """Return `cases` with one more, if need be in the place of one that restricts nothing."""
    result = dict(cases)
    if case not in result and len(result) >= MAX_CASES:
        idle = next((c for c, (true, false) in result.items() if not true and not false), None)
        if idle is None:
            return cases
        del result[idle]
    result[case] = outcomes
    return result


def without_variable(cases: Cases, name: str) -> Cases:
    """Return what is still known where the variable is bound anew."""
    return {case: known for case, known in loosened(cases, name).items() if case.name != name}


def loosened(cases: Cases, name: str) -> Cases:
    """Return the same without what the variable is restricted to."""
    return {
        case: (unrestricted(true, name), unrestricted(false, name))
        for case, (true, false) in cases.items()
    }


def unrestricted(outcome: Outcome, name: str) -> Outcome:
    if outcome is None or name not in outcome:
        return outcome
    return {other: links for other, links in outcome.items() if other != name}


def joined(a: Env, known: Cases, b: Env, others: Cases, both: Env) -> Cases:
    """Return what is known in the union `both` of two states with variables `a` and `b`."""
    changed: list[str] | None = None
    result: Cases = {}
    for case, mine in known.items():
        theirs = others.get(case)
        if theirs is None:
            continue
        if mine is theirs or mine == theirs == (ANYTHING, ANYTHING):
            result[case] = mine
            continue
        if changed is None:
            changed = [
                n for n, val in both.items() if a.get(n) is not b.get(n) and n[0] not in "#<"
            ]
        true, false = (united(a, x, b, y, both, changed) for x, y in zip(mine, theirs, strict=True))
        if true != ANYTHING or false != ANYTHING:
            result[case] = true, false
    return result


def united(
    a: Env, mine: Outcome, b: Env, theirs: Outcome, both: Env, changed: list[str]
) -> Outcome:
    if mine is None and theirs is None:
        return NEVER
    if not mine and not theirs and mine is not None and theirs is not None:
        return ANYTHING
    names = dict.fromkeys((*changed, *(mine or ()), *(theirs or ())))
    result: dict[str, frozenset[Link]] = {}
    for name in names:
        links: set[Link] = set()
        for env, outcome in ((a, mine), (b, theirs)):
            if outcome is not None:
                held = outcome.get(name)
                links.update(env.get(name, EMPTY) if held is None else held)
        if not links.issuperset(both.get(name, EMPTY)):
            result[name] = frozenset(links)
    return result


def moved(cases: Cases, move: Callable[[Iterable[Link]], Iterable[Link]]) -> Cases:
    """Return the same of links that have been renamed."""

    def outcome(known: Outcome) -> Outcome:
        if not known:
            return known
        return {name: frozenset(move(links)) for name, links in known.items()}

    return {case: (outcome(true), outcome(false)) for case, (true, false) in cases.items()}


__all__ = ["Case", "Cases", "assume", "joined", "loosened", "moved", "without_variable"]
