"""Verdicts from differences alone: no MLX."""

from __future__ import annotations

from typing import Any

import pytest

from aliaslint.verify import attribution
from aliaslint.verify.compare import Measurement
from aliaslint.verify.model import ArchitectureResult, ScenarioResult, Verdict

OK = {"disk": "ok", "rewritten": "ok", "value": "ok"}


def measured(name: str = "history", **values: Any) -> Measurement:
    base: dict[str, Any] = {"status": OK, "scale": 1.0, "alias": 0.0, "rewrite": 0.0, "other": 0.0}
    return Measurement(name, **{**base, **values})


def raised(*trees: str) -> dict[str, Any]:
    return {
        "status": OK | dict.fromkeys(trees, "raised"),
        "reasons": dict.fromkeys(trees, "ValueError: no (m.py:1 in f)"),
        "alias": None if {"disk", "value"} & set(trees) else 0.0,
        "rewrite": None if {"rewritten", "value"} & set(trees) else 0.0,
        "other": None if "value" in trees else 0.0,
    }


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ({}, "equivalent"),
        ({"alias": 9e-5, "other": 9e-5}, "equivalent"),
        ({"alias": 2.0, "rewrite": 0.0}, "fixed"),
        ({"alias": 2.0, "rewrite": 0.0, "other": 3.0}, "fixed"),
        ({"alias": 2.0, "rewrite": 2.0}, "broken"),
        ({"alias": 0.0, "rewrite": 2.0}, "broken"),
        ({"other": 3.0}, "other-divergence"),
        ({"alias": float("inf"), "rewrite": 0.0}, "fixed"),
        ({"alias": 2.0, "noise": 1.0}, "other-divergence"),
        ({"finite": False}, "error"),
        (raised("disk", "rewritten", "value"), "other-divergence"),
        ({**raised("disk", "rewritten", "value"), "scale": 0.0}, "unsupported"),
        ({**raised("disk", "rewritten", "value"), "name": "sequential"}, "unsupported"),
        (raised("disk"), "fixed"),
        (raised("disk", "rewritten"), "broken"),
        (raised("rewritten"), "broken"),
        (raised("value"), "error"),
        (raised("value", "rewritten"), "error"),
    ],
)
def test_verdict_of_a_scenario(values: dict[str, Any], verdict: Verdict) -> None:
    assert attribution.judge_scenario(measured(**values), 1e-4).verdict == verdict


@pytest.mark.parametrize(("scale", "verdict"), [(1.0, "other-divergence"), (50.0, "equivalent")])
def test_tolerance_scales_with_the_logits(scale: float, verdict: Verdict) -> None:
    result = attribution.judge_scenario(measured(other=1e-3, scale=scale), 1e-4)
    assert (result.verdict, result.tolerance) == (verdict, 1e-4 * scale)


def test_first_step_is_the_first_beyond_the_tolerance() -> None:
    result = attribution.judge_scenario(measured(steps=(0.0, 5e-5, 2e-4, 0.0)), 1e-4)
    assert result.first_step == 2


def test_reason_of_a_cured_alias_names_the_other_divergence() -> None:
    result = attribution.judge_scenario(measured(alias=2.0, other=3.0), 1e-4)
    assert result.reason == "aliasing moves the logits by 2; differs by 3 for another reason too"


@pytest.mark.parametrize(
    ("differences", "expected"),
    [
        ([], 1e-5),
        ([0.0, 0.0, 0.0], 1e-5),
        ([2e-6, 5e-6], 5e-5),
        ([2e-6, 5e-6, 1.5, 3.0], 5e-5),
        ([8e-6, 6e-5, 5e-4, 4e-3], 1e-2),
        ([1.0, 2.0], 1e-5),
    ],
)
def test_tolerance_comes_from_the_healthy_population(
    differences: list[float], expected: float
) -> None:
    assert attribution.relative_tolerance(differences, "float32") == pytest.approx(expected)


def test_population_is_relative_to_the_scale_and_leaves_out_what_is_not_finite() -> None:
    some = [measured(other=4.0, scale=2.0), measured(other=1.0, finite=False), measured(other=None)]
    assert attribution.healthy_candidates(some) == [2.0]


@pytest.mark.parametrize(
    ("values", "suspected"),
    [({}, False), ({"alias": 1e-3}, True), ({"rewrite": 1e-3}, True), ({"other": 1.0}, False)],
)
def test_only_differing_trees_raise_suspicion(values: dict[str, Any], suspected: bool) -> None:
    assert attribution.suspected([measured(**values)], "float32") is suspected


def scenarios(*verdicts: Verdict) -> list[ScenarioResult]:
    return [ScenarioResult(f"s{i}", verdict, "why") for i, verdict in enumerate(verdicts)]


@pytest.mark.parametrize(
    ("verdicts", "power", "verdict"),
    [
        (["equivalent", "equivalent"], 1.0, "equivalent"),
        (["equivalent"], 0.0, "no-power"),
        (["equivalent"], 5e-5, "no-power"),
        (["equivalent"], None, "no-power"),
        (["equivalent", "unsupported"], None, "no-power"),
        (["equivalent", "unsupported"], 1.0, "equivalent"),
        (["equivalent", "other-divergence"], 0.0, "other-divergence"),
        (["other-divergence", "fixed"], 1.0, "fixed"),
        (["fixed", "broken"], 1.0, "broken"),
        (["unsupported"], None, "unsupported"),
        ([], None, "unsupported"),
    ],
)
def test_verdict_of_an_architecture(
    verdicts: list[Verdict], power: float | None, verdict: Verdict
) -> None:
    assert attribution.judge_architecture(scenarios(*verdicts), power, 1e-4)[0] == verdict


@pytest.mark.parametrize(("power", "told"), [(0.0, True), (1.0, False), (None, False)])
def test_divergence_that_says_nothing_about_offsets_says_so(
    power: float | None, told: bool
) -> None:
    found = scenarios("equivalent", "other-divergence")
    verdict, reason = attribution.judge_architecture(found, power, 1e-4)
    ending = " | no-power: shifting the offset by one changes nothing"
    assert (verdict, reason.endswith(ending)) == ("other-divergence", told)


def test_decoding_one_by_one_alone_is_no_equivalence() -> None:
    alone = ScenarioResult("sequential", "equivalent")
    assert attribution.judge_architecture([alone], 1.0, 1e-4)[0] == "unsupported"


def test_architecture_that_cannot_decode_at_all_says_so_once() -> None:
    alone = ScenarioResult("sequential", "unsupported", "RuntimeError: no Metal")
    verdict = attribution.judge_architecture([alone, *scenarios("unsupported")], None, 1e-4)
    assert verdict == ("unsupported", "decoding one by one: RuntimeError: no Metal")


def test_reasons_that_differ_in_their_numbers_stand_together_with_the_largest() -> None:
    found = [
        ScenarioResult("left", "fixed", "aliasing moves the logits by 1.5", alias=1.5),
        ScenarioResult("right", "fixed", "aliasing moves the logits by 2e-3", alias=2e-3),
        ScenarioResult("trim", "unsupported", "cannot be trimmed"),
    ]
    assert attribution.judge_architecture(found, 1.0, 1e-4) == (
        "fixed",
        "left, right: aliasing moves the logits by 1.5 | unsupported: trim: cannot be trimmed",
    )


@pytest.mark.parametrize(
    ("before", "plain", "after"),
    [
        ("other-divergence", "equivalent", "kernel"),
        ("other-divergence", "no-power", "kernel"),
        ("other-divergence", "other-divergence", "other-divergence"),
        ("fixed", "equivalent", "fixed"),
    ],
)
def test_kernel_is_blamed_only_for_what_plain_arithmetic_cures(
    before: Verdict, plain: Verdict, after: Verdict
) -> None:
    result = ArchitectureResult("a", before, "reason")
    judged = attribution.blamed_on_kernel(result, ArchitectureResult("a", plain), "single token")
    assert judged.verdict == after
