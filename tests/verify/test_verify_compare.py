"""Differences of logits, by place and step."""

from __future__ import annotations

import pytest

np = pytest.importorskip("numpy")

from aliaslint.verify.compare import TreeRun, distance, largest, measure, noise  # noqa: E402
from aliaslint.verify.gather import Measured, drift, unlike, unrest  # noqa: E402
from aliaslint.verify.model import ArchitectureResult  # noqa: E402

INDEX = [[0, 4], [0, 5], [1, 2], [1, 3]]


def tree(values: dict[str, list[float]], **status: str) -> TreeRun:
    runs = {name: {"status": "ok", "index": INDEX} for name in values}
    runs |= {name: {"status": kind, "reason": "why"} for name, kind in status.items()}
    return TreeRun(runs, {name: np.array(v).reshape(4, 1) for name, v in values.items()})


def test_differences_between_the_three_runs() -> None:
    alone = [0.0, 1.0, 2.0, 3.0]
    trees = {
        "disk": tree({"sequential": alone, "history": [0.0, 1.5, 2.0, 7.0]}),
        "rewritten": tree({"sequential": alone, "history": [0.0, 1.25, 2.0, 3.0]}),
        "value": tree({"sequential": alone, "history": [0.0, 1.0, 2.0, 3.125]}),
    }
    found = measure("history", trees)
    assert (found.difference, found.alias, found.rewrite, found.other, found.cured) == (
        4.0,
        3.875,
        0.25,
        0.125,
        0.25,
    )
    assert found.steps == (0.0, 4.0)


def test_tree_that_raised_is_compared_with_nothing() -> None:
    good = tree({"sequential": [0.0] * 4, "history": [0.0] * 4})
    bad = tree({"sequential": [0.0] * 4}, history="raised")
    found = measure("history", {"disk": bad, "rewritten": good, "value": good})
    assert (found.alias, found.difference, found.rewrite) == (None, None, 0.0)
    assert found.reasons == {"disk": "why"}


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        ([1.0, 2.0], [1.0, 2.5], 0.5),
        ([float("-inf"), 1.0], [float("-inf"), 1.0], 0.0),
        ([float("nan")], [float("nan")], 0.0),
        ([float("nan")], [1.0], float("inf")),
        ([1.0], [1.0, 2.0], float("inf")),
    ],
)
def test_distance(one: list[float], two: list[float], expected: float) -> None:
    assert distance(np.array(one), np.array(two)) == expected


@pytest.mark.parametrize(
    ("values", "finite"),
    [([1.0, float("-inf")], True), ([float("nan"), 1.0], False), ([float("inf"), 1.0], False)],
)
def test_masked_tokens_are_no_fault_of_the_reference(values: list[float], finite: bool) -> None:
    run = tree({"sequential": values * 2, "history": values * 2})
    trees = dict.fromkeys(("disk", "rewritten", "value"), run)
    assert measure("history", trees).finite is finite


def test_largest_needs_every_place_of_the_first() -> None:
    assert largest({(0, 1): np.zeros(2)}, {(0, 2): np.zeros(2)}) is None


def test_noise_is_what_two_runs_of_one_tree_differ_by() -> None:
    one, two = tree({"history": [0.0] * 4}), tree({"history": [0.0, 0.0, 0.5, 0.0]})
    assert noise("history", one, two) == 0.5
    assert noise("rotation", one, two) == 0.0


def trees(disk: float, value: float, rewritten: float) -> dict[str, TreeRun]:
    alone = {"sequential": [0.0] * 4}
    given = {"disk": disk, "value": value, "rewritten": rewritten}
    return {name: tree({**alone, "history": [0.0, 0.0, 0.0, v]}) for name, v in given.items()}


def test_true_difference_between_trees_comes_out_the_same_again() -> None:
    first = measure("history", trees(3.0, 0.0, 0.0))
    assert unrest(first, trees(3.0, 0.0, 0.0), trees(3.0, 0.0, 0.0)) == 0.0


def test_difference_that_does_not_come_again_is_noise() -> None:
    first = measure("history", trees(0.0, 0.0, 3.0))
    assert unrest(first, trees(0.0, 0.0, 0.0), trees(0.0, 0.0, 0.0)) == 3.0


def test_tree_without_rewriting_stands_for_both() -> None:
    first = measure("history", trees(3.0, 0.0, 3.0))
    once = {name: run for name, run in trees(3.0, 0.0, 0.0).items() if name != "rewritten"}
    assert unrest(first, once, once) == 0.0


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [(1.0, 3.5, 2.5), (None, 1.0, 0.0), (float("inf"), float("inf"), 0.0)],
)
def test_drift_of_two_differences(one: float | None, two: float, expected: float) -> None:
    assert drift(one, two) == expected


@pytest.mark.parametrize(("again", "expected"), [(3.0, False), (3.0 + 1e-6, False), (2.0, True)])
def test_compilation_that_changes_how_trees_differ_is_noticed(again: float, expected: bool) -> None:
    result = ArchitectureResult("a", "fixed")
    before, after = (
        Measured(result, [measure("history", trees(v, 0.0, 0.0))]) for v in (3.0, again)
    )
    assert unlike(before, after, 1e-5) is expected
