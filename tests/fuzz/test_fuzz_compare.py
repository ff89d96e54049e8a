"""The comparison counts what is missed, what is never observed and what is told."""

from __future__ import annotations

from aliaslint.findings import Finding, Role, Span, Step
from benchmarks.fuzz.arrays import Stale
from benchmarks.fuzz.compare import PATH, compare
from benchmarks.fuzz.oracle import Truth

TRUTH = Truth(
    stale={20: [Stale(20, frozenset({7}), frozenset({18}))]},
    behind={15},
    executed={7, 15, 18, 20, 21},
)


def at(line: int) -> Span:
    return Span(line, 5, line, 9)


def finding(code: str, line: int, **lines: int) -> Finding:
    roles: dict[str, Role] = {"mutation": "mutation", "read": "read", "second": "read"}
    trace = tuple(Step(roles[role], PATH, at(n), "") for role, n in lines.items())
    return Finding(code, "name", "message", "error", PATH, at(line), trace)


def test_a_stale_line_without_a_finding_is_missed() -> None:
    assert compare([], TRUTH).missed == [20]


def test_a_trace_through_the_line_tells_of_it() -> None:
    verdict = compare([finding("AL101", 10, mutation=7, read=20)], TRUTH)
    assert (verdict.missed, verdict.unobserved, verdict.stray) == ([], [], [])


def test_a_trace_to_another_read_does_not_tell_of_it() -> None:
    assert compare([finding("AL101", 10, mutation=7, read=21)], TRUTH).missed == [20]


def test_an_update_that_went_through_the_stale_binding_tells_of_it() -> None:
    assert compare([finding("AL101", 10, mutation=7, read=18)], TRUTH).missed == []


def test_the_update_itself_tells_of_what_it_changed() -> None:
    assert compare([finding("AL004", 7)], TRUTH).missed == []


def test_the_producer_alone_tells_nothing() -> None:
    assert compare([finding("AL001", 7)], TRUTH).missed == [20]


def test_an_uncertain_finding_tells_but_is_counted() -> None:
    verdict = compare([finding("AL102", 10, mutation=7)], TRUTH)
    assert (verdict.missed, verdict.told) == ([], [20])


def test_a_finding_whose_reads_are_never_stale_is_unobserved() -> None:
    verdict = compare([finding("AL101", 10, mutation=7, read=21)], TRUTH)
    assert [f.span.line for f in verdict.unobserved] == [10]


def test_a_read_step_that_is_never_stale_is_stray() -> None:
    verdict = compare([finding("AL101", 10, mutation=7, read=20, second=21)], TRUTH)
    assert (verdict.unobserved, verdict.stray) == ([], [("AL101", 21)])


def test_a_finding_about_code_that_never_ran_is_not_judged() -> None:
    assert compare([finding("AL101", 10, mutation=7, read=99)], TRUTH).unobserved == []


def test_an_update_that_no_owner_felt_is_unobserved() -> None:
    verdict = compare([finding("AL004", 15), finding("AL004", 18)], TRUTH)
    assert [f.span.line for f in verdict.unobserved] == [18]
