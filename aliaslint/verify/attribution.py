"""From differences to verdicts: pure functions, the whole judgement of `verify`.

Three runs stand behind each scenario: the tree on disk, the rewritten tree, and the tree on disk
with value semantics forced. On disk unlike value semantics means aliasing, whatever else is
wrong; value semantics unlike decoding one by one means another fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from aliaslint.verify.compare import Measurement
from aliaslint.verify.model import ArchitectureResult, ScenarioResult, Verdict

# Relative to the standard deviation of the logits (at least 1): where the healthy population is
# looked for first, and beyond what no difference counts as healthy.
FLOOR = {"float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}
CEILING = {"float32": 1e-2, "float16": 5e-2, "bfloat16": 0.4}
MARGIN = 10.0
ALONE = "sequential"
NO_POWER = "shifting the offset by one changes nothing"
_NUMBER = re.compile(r"\d[\d.]*(?:e[+-]\d+)?")


def relative_tolerance(differences: Iterable[float], dtype: str) -> float:
    """The tolerance that the healthy population of this run gives, relative to the scale.

    The population grows from the floor: the next larger difference belongs to it while it is no
    more than ten times the largest so far. A gap of a factor of ten ends it; the tolerance is ten
    times its largest member.
    """
    edge = FLOOR[dtype] / MARGIN
    for difference in sorted(differences):
        if difference > MARGIN * edge:
            break
        edge = max(edge, difference)
    return min(MARGIN * edge, CEILING[dtype])


def healthy_candidates(measurements: Iterable[Measurement]) -> list[float]:
    """Differences between value semantics and one by one, over the scale of the logits."""
    return [m.other / max(1.0, m.scale) for m in measurements if m.other is not None and m.finite]


def suspected(measurements: Iterable[Measurement], dtype: str) -> bool:
    """Whether two of the trees differ anywhere by more than rounding."""
    return any(
        not _within(gap, FLOOR[dtype] * max(1.0, m.scale))
        for m in measurements
        for gap in (m.alias, m.rewrite)
    )


def judge_scenario(m: Measurement, relative: float) -> ScenarioResult:
    """The verdict over one scenario."""
    tolerance = relative * max(1.0, m.scale)
    verdict, reason = _scenario_verdict(m, tolerance)
    first = next((step for step, gap in enumerate(m.steps) if gap > tolerance), None)
    return ScenarioResult(
        m.name,
        verdict,
        reason,
        m.scale,
        m.difference,
        m.alias,
        m.rewrite,
        m.other,
        m.cured,
        m.noise,
        tolerance,
        first,
        m.steps,
        m.status,
    )


def _scenario_verdict(m: Measurement, tolerance: float) -> tuple[Verdict, str]:
    disk, rewritten, value = (m.status[tree] for tree in ("disk", "rewritten", "value"))
    if not m.finite:
        return "error", "the logits of decoding one by one are not finite"
    if value != "ok":
        if disk == "ok":
            return "error", f"raises under value semantics alone: {m.reasons['value']}"
        if value == "raised" and m.name != ALONE and m.scale:
            return "other-divergence", f"raises in a batch: {m.reasons['value']}"
        return "unsupported", m.reasons["value"]
    if disk != "ok":
        cured = rewritten == "ok" and _within(m.rewrite, tolerance)
        reason = f"raises on disk, not under value semantics: {m.reasons['disk']}"
        return ("fixed" if cured else "broken"), reason
    return _compared(m, tolerance, rewritten)


def _compared(m: Measurement, tolerance: float, rewritten: str) -> tuple[Verdict, str]:
    if m.noise > tolerance:
        return "other-divergence", (
            f"two runs of the same tree differ by {m.noise:.2g}: it reads what it never wrote"
        )
    aliased = not _within(m.alias, tolerance)
    cured = rewritten == "ok" and _within(m.rewrite, tolerance)
    differs = not _within(m.other, tolerance)
    also = f"; differs by {m.other:.2g} for another reason too" if differs else ""
    if aliased and cured:
        return "fixed", f"aliasing moves the logits by {m.alias:.2g}{also}"
    if aliased:
        return "broken", f"aliasing moves the logits by {m.alias:.2g}, not cured{also}"
    if rewritten != "ok":
        return "broken", f"the rewritten tree raises: {m.reasons['rewritten']}"
    if not cured:
        return "broken", f"the rewrite moves the logits by {m.rewrite:.2g}{also}"
    if m.other is None:
        return "unsupported", "there is nothing to compare with: decoding one by one raises"
    if differs:
        return "other-divergence", f"differs from one by one by {m.other:.2g}, not by aliasing"
    return "equivalent", ""


def _within(difference: float | None, tolerance: float) -> bool:
    return difference is None or difference <= tolerance


def judge_architecture(
    scenarios: Sequence[ScenarioResult], power: float | None, relative: float
) -> tuple[Verdict, str]:
    """The verdict over one architecture and the reason for it.

    `power` is the change that shifting the offset by one made, over the scale of the logits
    (None: the control run could not be made).
    """
    alone = next((s for s in scenarios if s.name == ALONE), None)
    if alone is not None and alone.verdict in ("unsupported", "error"):
        return alone.verdict, f"decoding one by one: {alone.reason}"
    by_verdict: dict[Verdict, list[ScenarioResult]] = {}
    for scenario in scenarios:
        if not (scenario.name == ALONE and scenario.verdict == "equivalent"):
            by_verdict.setdefault(scenario.verdict, []).append(scenario)
    verdict = _worst(by_verdict)
    powerless = power is not None and power <= relative
    if verdict == "equivalent":
        if power is None:
            return "no-power", "the control run could not be made"
        if powerless:
            return "no-power", NO_POWER
    reason = _reason(verdict, by_verdict)
    if verdict == "other-divergence" and powerless:
        return verdict, f"{reason} | no-power: {NO_POWER}"
    return verdict, reason


def _worst(by_verdict: dict[Verdict, list[ScenarioResult]]) -> Verdict:
    order: tuple[Verdict, ...] = ("broken", "fixed", "other-divergence", "equivalent", "error")
    found: tuple[Verdict, ...] = tuple(verdict for verdict in order if verdict in by_verdict)
    return found[0] if found else "unsupported"


def _reason(verdict: Verdict, by_verdict: dict[Verdict, list[ScenarioResult]]) -> str:
    """What decided, and, after it, what else differs or did not run."""
    parts = [_grouped(by_verdict.get(verdict, []))] if verdict != "equivalent" else []
    for other in ("broken", "fixed", "other-divergence", "error", "unsupported"):
        if other != verdict and other in by_verdict:
            parts.append(f"{other}: {_grouped(by_verdict[other])}")
    return " | ".join(part for part in parts if part)


def _grouped(scenarios: Sequence[ScenarioResult]) -> str:
    """`left-padded, history: reason` with scenarios of one reason together, the worst named."""
    groups: dict[str, list[ScenarioResult]] = {}
    for scenario in sorted(scenarios, key=lambda s: -(s.alias or s.other or 0.0)):
        groups.setdefault(_NUMBER.sub("#", scenario.reason), []).append(scenario)
    order = {scenario.name: place for place, scenario in enumerate(scenarios)}
    return "; ".join(
        f"{', '.join(sorted((s.name for s in group), key=order.__getitem__))}: {group[0].reason}"
        for group in groups.values()
    )


def with_verdict(
    result: ArchitectureResult, measurements: Sequence[Measurement], relative: float
) -> ArchitectureResult:
    """`result` judged: its scenarios, verdict and reason from the measurements."""
    scenarios = tuple(judge_scenario(m, relative) for m in measurements)
    verdict, reason = judge_architecture(scenarios, result.power, relative)
    return replace(result, scenarios=scenarios, verdict=verdict, reason=reason)


def blamed_on_kernel(
    result: ArchitectureResult, plain: ArchitectureResult, message: str
) -> ArchitectureResult:
    """`result`, as `kernel` if it no longer diverges with RoPE in plain arithmetic (`plain`)."""
    if result.verdict != "other-divergence" or plain.verdict not in ("equivalent", "no-power"):
        return result
    reason = f"agrees with RoPE in plain arithmetic; the kernel: {message} | {result.reason}"
    return replace(result, verdict="kernel", reason=reason)
