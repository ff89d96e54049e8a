"""Execute the mutants: `python -m benchmarks.accuracy.execute PATH` writes mutants.csv.

Each mutant is decoded twice in a tiny model with merged caches (each prompt prefilled alone,
then a batch): as it is, and with value semantics forced in the cache classes. A mutant whose
logits differ reads a stale offset (`broken`); one that agrees does not (`equal`); what has no
tiny configuration or raises is `not run`, with the reason. The machinery is that of
`aliaslint verify`, which knows nothing of the analysis. Needs MLX.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aliaslint.verify import configs
from aliaslint.verify.configs import Plan
from aliaslint.verify.pool import Pool, child_environment
from benchmarks.accuracy.capture_sites import package_folder
from benchmarks.accuracy.mutants import MEASURED, SHAPE_NAMES, write_tree
from benchmarks.accuracy.mutate import Mutant, mutants

SEMANTICS = ("in place", "by value")
SCENARIO = "history"
Done = tuple[Mapping[str, Any], str]  # A task, and what went wrong with its process or "".
TOLERANCE = 1e-4  # Times the standard deviation of the logits, or 1 where that is smaller.


@dataclass(frozen=True, slots=True)
class Measurement:
    """What execution said of one mutant; `difference` is the largest one between the logits."""

    mutant: Mutant
    verdict: str
    difference: float
    reason: str


def setup(package: Path, semantics: str) -> dict[str, Any]:
    forces: dict[str, Any] | None = None if semantics == "in place" else {}
    return {
        "package": package.name,
        "folder": str(package),
        "replaced": {},
        "forces": forces,
        "rope": "",
    }


def task(plan: Plan, semantics: str, package: str, folder: Path) -> dict[str, Any]:
    """Return one task of the verifying worker: the history scenario in one semantics."""
    model_type = plan.model_type
    name = f"{model_type}-{plan.variant}-{semantics.replace(' ', '-')}"
    return {
        "tree": semantics,
        "kind": "architecture",
        "package": package,
        "model_type": model_type,
        "names": dict(configs.names()),
        "config": dict(plan.values),
        "seed": 0,
        "dtype": "float32",
        "device": "",
        "only": [SCENARIO],
        "out": str(folder / f"{name}.npz"),
        "result": str(folder / f"{name}.json"),
        "memory": 6.0,
        "timeout": 120.0,
    }


def failure(done: Mapping[str, Any], problem: str) -> str:
    """Return why a task gave no logits, or ""."""
    path = Path(done["result"])
    if problem or not path.exists():
        return problem or "no result"
    result = json.loads(path.read_text("utf-8"))
    if result["status"] != "ok":
        return str(result.get("reason", result["status"]))
    run = result["runs"][SCENARIO]
    return "" if run["status"] == "ok" else str(run["reason"])


def compare(mutant: Mutant, pairs: Sequence[Sequence[Done]]) -> Measurement:
    """Return what the runs of a mutant say together: one pair a configuration."""
    found = [compare_pair(mutant, pair) for pair in pairs]
    order = ("broken", "equal", "not run")
    return min(found, key=lambda one: (order.index(one.verdict), -one.difference))


def compare_pair(mutant: Mutant, pair: Sequence[Done]) -> Measurement:
    """Return what two runs of one configuration say together."""
    import numpy as np

    reasons = [failure(item, problem) for item, problem in pair]
    if any(reasons):
        return Measurement(mutant, "not run", 0.0, next(filter(None, reasons)))
    first, second = (np.load(item["out"])[SCENARIO] for item, _ in pair)
    difference = float(np.abs(first - second).max())
    limit = TOLERANCE * max(1.0, float(second.std()))
    return Measurement(mutant, "broken" if difference > limit else "equal", difference, "")


def measure(package: Path, shape: str, jobs: int, twin: bool) -> Iterator[Measurement]:
    """Yield what execution says of each mutant of one shape, over all its configurations."""
    made = list(mutants(package, shape, twin=twin))
    with tempfile.TemporaryDirectory(prefix="aliaslint-execute-") as name:
        folder = Path(name)
        copied = write_tree(package, folder, made)
        setups = {semantics: setup(copied, semantics) for semantics in SEMANTICS}
        tasks = {
            (mutant.path, number, semantics): task(plan, semantics, package.name, folder)
            for mutant in made
            for number, plan in enumerate(configs.plans(Path(mutant.path).stem))
            for semantics in SEMANTICS
        }
        numbered = [{**item, "id": number} for number, item in enumerate(tasks.values())]
        with Pool(setups, jobs, child_environment(False), folder, inline=not forks()) as pool:
            problems = {
                answer.task["id"]: answer.problem for answer in pool.run(numbered, lambda _: True)
            }
        done: dict[tuple[str, int], list[Done]] = {}
        for (path, number, _), item in zip(tasks, numbered, strict=True):
            done.setdefault((path, number), []).append((item, problems[item["id"]]))
        for mutant in made:
            yield compare(mutant, [pair for (path, _), pair in done.items() if path == mutant.path])


def forks() -> bool:
    """Whether the backend survives a fork: the CPU on Linux."""
    return sys.platform == "linux" and hasattr(os, "fork")


def write(rows: Sequence[Measurement], path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("shape", "path", "verdict", "difference", "reason"))
        for row in rows:
            number = f"{row.difference:.3g}" if row.verdict != "not run" else ""
            writer.writerow((row.mutant.shape, row.mutant.path, row.verdict, number, row.reason))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy.execute")
    parser.add_argument("path", type=Path, help="an unpacked release of mlx-lm, 0.31.3")
    parser.add_argument("--shape", action="append", choices=SHAPE_NAMES, help="only these shapes")
    parser.add_argument("--twins", action="store_true", help="execute the healthy twins instead")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path, default=MEASURED)
    options = parser.parse_args(arguments)
    package = package_folder(options.path).resolve()
    rows: list[Measurement] = []
    for shape in options.shape or SHAPE_NAMES:
        found = list(measure(package, shape, options.jobs, options.twins))
        rows += found
        counts = {v: sum(r.verdict == v for r in found) for v in ("broken", "equal", "not run")}
        print(f"{shape:20}" + "".join(f"{n:>5} {v}" for v, n in counts.items()), flush=True)
    write(rows, options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
