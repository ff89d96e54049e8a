"""Turns the logits of the three runs of a scenario into differences: numbers only, no verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

SEQUENTIAL = {
    "trim-and-redecode": "sequential-short",
    "rotation": "sequential-rotating",
}


@dataclass(frozen=True, slots=True)
class Measurement:
    """What was measured of one scenario; the fields are those of `ScenarioResult`.

    `reasons` gives the reason of each run whose status is not "ok"; `finite` says whether the
    reference has finite logits only; `noise` is what two runs of one tree differ by.
    """

    name: str
    status: Mapping[str, str]
    reasons: Mapping[str, str] = field(default_factory=dict)
    scale: float = 0.0
    difference: float | None = None
    alias: float | None = None
    rewrite: float | None = None
    other: float | None = None
    cured: float | None = None
    steps: tuple[float, ...] = ()
    finite: bool = True
    noise: float = 0.0


@dataclass(frozen=True, slots=True)
class TreeRun:
    """What one tree answered for one architecture: outcome and logits by scenario name."""

    runs: Mapping[str, Any]
    logits: Mapping[str, np.ndarray]

    def status(self, name: str) -> str:
        return str(self.runs[name]["status"]) if name in self.runs else "unsupported"

    def rows(self, name: str) -> dict[tuple[int, int], np.ndarray] | None:
        """Logits by (row, position), None where the scenario did not run through."""
        if self.status(name) != "ok":
            return None
        index = self.runs[name]["index"]
        pairs = zip(index, self.logits[name], strict=True)
        return {(row, position): values for (row, position), values in pairs}


def measure(name: str, trees: Mapping[str, TreeRun]) -> Measurement:
    """Compare the runs "disk", "rewritten" and "value" of one scenario."""
    status = {tree: run.status(name) for tree, run in trees.items()}
    reasons = {
        tree: str(run.runs.get(name, {}).get("reason", ""))
        for tree, run in trees.items()
        if status[tree] != "ok"
    }
    rows = {tree: run.rows(name) for tree, run in trees.items()}
    reference = SEQUENTIAL.get(name, "sequential") if not name.startswith("sequential") else name
    alone = {tree: run.rows(reference) for tree, run in trees.items()}
    scale, finite = _scale(alone["value"])
    return Measurement(
        name,
        status,
        reasons,
        scale,
        difference=largest(rows["disk"], alone["value"]),
        alias=largest(rows["disk"], rows["value"]),
        rewrite=largest(rows["rewritten"], rows["value"]),
        other=largest(rows["value"], alone["value"]),
        cured=largest(rows["rewritten"], alone["value"]),
        steps=by_step(rows["disk"], alone["value"]),
        finite=finite,
    )


def noise(name: str, one: TreeRun, two: TreeRun) -> float:
    """What two runs of one tree differ by in one scenario; 0 where they cannot be compared."""
    return largest(one.rows(name), two.rows(name)) or 0.0


def largest(
    one: Mapping[tuple[int, int], np.ndarray] | None,
    two: Mapping[tuple[int, int], np.ndarray] | None,
) -> float | None:
    """The largest absolute difference over the places of `one`; None where a side is missing."""
    if one is None or two is None or not one.keys() <= two.keys():
        return None
    return max((distance(values, two[place]) for place, values in one.items()), default=None)


def distance(one: np.ndarray, two: np.ndarray) -> float:
    """The largest absolute difference; infinite where only one side is finite."""
    import numpy as np

    if one.shape != two.shape:
        return float("inf")
    with np.errstate(invalid="ignore"):
        gap = np.abs(one.astype(np.float64) - two.astype(np.float64))
    same = (one == two) | (np.isnan(one) & np.isnan(two))
    gap = np.where(same, 0.0, np.where(np.isnan(gap), np.inf, gap))
    return float(gap.max(initial=0.0))


def by_step(
    one: Mapping[tuple[int, int], np.ndarray] | None,
    two: Mapping[tuple[int, int], np.ndarray] | None,
) -> tuple[float, ...]:
    """Differences by step (a row's n-th logits are step n), the worst row of each."""
    if one is None or two is None or not one.keys() <= two.keys():
        return ()
    first = {row: min(at for other, at in one if other == row) for row, _ in one}
    steps: dict[int, float] = {}
    for (row, at), values in one.items():
        step = at - first[row]
        steps[step] = max(steps.get(step, 0.0), distance(values, two[row, at]))
    return tuple(steps[step] for step in sorted(steps))


def _scale(rows: Mapping[tuple[int, int], np.ndarray] | None) -> tuple[float, bool]:
    """Standard deviation of the reference's logits, and whether they are numbers at all."""
    import numpy as np

    if not rows:
        return 0.0, True
    values = np.stack(list(rows.values())).astype(np.float64)
    usable = values[np.isfinite(values)]  # A masked token is -inf in every run.
    sound = bool(usable.size) and not np.isnan(values).any() and not np.isposinf(values).any()
    return (float(usable.std()) if sound else 0.0), sound
