"""From the answers of the workers to judged architectures: loading, measuring, judging."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from aliaslint.verify import attribution
from aliaslint.verify.compare import SEQUENTIAL, Measurement, TreeRun, largest, measure, noise
from aliaslint.verify.configs import Plan
from aliaslint.verify.model import ArchitectureResult, Verdict
from aliaslint.verify.pool import NOT_RUN, Answer

TWINS = {tree: (tree, f"{tree}-again") for tree in ("disk", "value", "rewritten")}


@dataclass
class Measured:
    """One configuration after the sweep, before judgement."""

    result: ArchitectureResult
    measurements: list[Measurement] = field(default_factory=list)


@dataclass
class Collected:
    """What has come in for one plan so far, by tree."""

    plan: Plan
    answers: dict[str, Answer] = field(default_factory=dict)
    results: dict[str, Mapping[str, Any] | None] = field(default_factory=dict)

    @property
    def hopeless(self) -> bool:
        """Whether a tree has no logits to give, so that the others need not run."""
        return any(told is None or told["status"] != "ok" for told in self.results.values())


class Missing(Exception):
    """A tree has no logits for a plan: the verdict that follows, and why."""

    def __init__(self, verdict: Verdict, reason: str) -> None:
        super().__init__(reason)
        self.verdict = verdict


def loaded_trees(state: Collected) -> dict[str, TreeRun]:
    """What each tree answered for a plan; the files with the logits are removed."""
    import numpy as np

    trees: dict[str, TreeRun] = {}
    for tree, answer in sorted(state.answers.items(), key=lambda item: item[1].problem == NOT_RUN):
        path, told = Path(answer.task["out"]), state.results[tree]
        if told is None:
            raise Missing("error", f"{tree} tree: {answer.problem or 'no result'}")
        if told["status"] != "ok":
            verdict: Verdict = "error" if told["status"] == "error" else "unsupported"
            raise Missing(verdict, told["reason"])
        with np.load(path) as arrays:
            trees[tree] = TreeRun(told["runs"], {name: arrays[name] for name in arrays})
        path.unlink()
    return trees


def measured_plan(state: Collected) -> Measured:
    """Compare what the trees answered for one plan."""
    plan = state.plan
    seconds = round(sum(answer.seconds for answer in state.answers.values()), 3)
    result = ArchitectureResult(plan.model_type, "error", variant=plan.variant, seconds=seconds)
    try:
        trees = loaded_trees(state)
    except Missing as missing:
        return Measured(replace(result, verdict=missing.verdict, reason=str(missing)))
    trees.setdefault("rewritten", trees["disk"])
    caches = tuple((state.results["disk"] or {})["caches"])
    result = replace(result, power=power(trees["value"]), caches=caches)
    return Measured(result, measurements(trees))


def add_noise(measured: Measured, state: Collected) -> Measured:
    """`measured` with what runs of one tree differ by, from two repetitions of every tree."""
    try:
        runs = loaded_trees(state)
    except Missing:
        return measured
    once, twice = (
        {tree: runs[twins[i]] for tree, twins in TWINS.items() if twins[i] in runs} for i in (0, 1)
    )
    noisy = [replace(m, noise=max(m.noise, unrest(m, once, twice))) for m in measured.measurements]
    return Measured(measured.result, noisy)


def unrest(first: Measurement, once: Mapping[str, TreeRun], twice: Mapping[str, TreeRun]) -> float:
    """What the runs of a tree differ by, and by how much the trees differ otherwise than at first.

    Runs that read memory which they never wrote may agree by chance; what they differ from other
    trees by then does not come out the same again.
    """
    gaps = [noise(first.name, once[tree], twice[tree]) for tree in once]
    for trees in (once, twice):
        again = measure(first.name, {"rewritten": trees["disk"], **trees})
        gaps += [drift(first.alias, again.alias), drift(first.rewrite, again.rewrite)]
    return max(gaps)


def drift(one: float | None, two: float | None) -> float:
    """By how much two differences differ; 0 where one is not known."""
    if one is None or two is None or one == two:
        return 0.0
    return abs(one - two)


def unlike(before: Measured, after: Measured, relative: float) -> bool:
    """Whether the trees differ from each other otherwise than they did before."""
    known = {m.name: m for m in before.measurements}
    return any(
        max(drift(m.alias, known[m.name].alias), drift(m.rewrite, known[m.name].rewrite))
        > relative * max(1.0, m.scale)
        for m in after.measurements
        if m.name in known
    )


def same_noise(before: Measured, after: Measured) -> Measured:
    """`after` with the noise that was found before, by scenario."""
    known = {m.name: m.noise for m in before.measurements}
    noisy = [replace(m, noise=known.get(m.name, 0.0)) for m in after.measurements]
    return Measured(after.result, noisy)


def measurements(trees: Mapping[str, TreeRun]) -> list[Measurement]:
    """Every scenario measured, decoding one by one first."""
    names = [name for name in trees["value"].runs if name != "control"]
    bounded = set(SEQUENTIAL.values())
    return [measure(name, trees) for name in names if name not in bounded]


def power(run_: TreeRun) -> float | None:
    """How far shifting the offset by one moves the logits, over their standard deviation."""
    control, normal = run_.rows("control"), run_.rows("history")
    if control is None or normal is None:
        return None
    scale = max(float(run_.logits["history"].std()), 1e-6)
    moved = largest(control, normal)
    return None if moved is None else moved / scale


def judge(measured: Sequence[Measured], dtype: str) -> tuple[list[ArchitectureResult], float]:
    """Judge all against the tolerance that their own healthy population gives."""
    everything = [m for item in measured for m in item.measurements]
    population = attribution.healthy_candidates(everything)
    relative = attribution.relative_tolerance(population, dtype)
    return [judge_one(item, relative) for item in measured], relative


def judge_one(item: Measured, relative: float) -> ArchitectureResult:
    if not item.measurements:
        return item.result
    return attribution.with_verdict(item.result, item.measurements, relative)


def combined(before: ArchitectureResult, after: ArchitectureResult) -> ArchitectureResult:
    """The verdict of the re-check, unless it could not run (no compiler, say)."""
    if after.verdict in ("error", "unsupported"):
        note = f"{before.reason} | with compilation on it could not be run: {after.reason}"
        return replace(before, reason=note)
    seconds = round(before.seconds + after.seconds, 3)
    if before.verdict == "kernel" and after.verdict == "other-divergence":
        return replace(before, rechecked=True, seconds=seconds)
    after = replace(after, rechecked=True, seconds=seconds)
    if after.verdict == before.verdict:
        return after
    note = f"{after.reason} | without compilation: {before.verdict}: {before.reason}"
    return replace(after, reason=note.removeprefix(" | "))
