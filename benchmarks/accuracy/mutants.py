"""Recall on mutants of a real release: `python -m benchmarks.accuracy.mutants PATH`.

PATH is an unpacked release of mlx-lm whose caches update in place (0.31.3). Every shape of
shapes.py, layers.py and rewrites.py is applied to every model file that has the usual lines. A
mutant is one file replaced in a copy of the release; the file is checked with the package around
it, and a report counts if it stands at the capture.

Recall is reported / broken. A mutant is broken if execution says so: mutants.csv holds what
`python -m benchmarks.accuracy.execute` measured. Mutants that could not be executed (no tiny
configuration) are counted apart. With `--twins` the healthy twins are checked: a report at the
capture of a twin is a false alarm.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from benchmarks.accuracy.capture_sites import CAPTURE_RULES, package_folder
from benchmarks.accuracy.layers import LAYER_SHAPES
from benchmarks.accuracy.mutate import Mutant, mutants
from benchmarks.accuracy.rewrites import REWRITES
from benchmarks.accuracy.shapes import SHAPES
from benchmarks.accuracy.tool import run_check

MEASURED = Path(__file__).with_name("mutants.csv")
SHAPE_NAMES = (*(shape.name for shape in SHAPES), *LAYER_SHAPES, *REWRITES)


@dataclass(frozen=True, slots=True)
class Judged:
    """One mutant, the code reported for it (None: silent), and what execution said."""

    mutant: Mutant
    code: str | None
    broken: bool | None


def write_tree(package: Path, target: Path, made: Iterable[Mutant] = ()) -> Path:
    """Copy `package` below `target` with the mutants in place, and return the copy."""
    copied = target / package.name
    shutil.copytree(package, copied, ignore=shutil.ignore_patterns("__pycache__"))
    for mutant in made:
        (copied / mutant.path).write_text(mutant.text, "utf-8")
    return copied


def reported(mutant: Mutant, package: Path) -> str | None:
    """Return the code that is reported at the capture of `mutant`, the one file that differs."""
    place = package / mutant.path
    original = place.read_bytes()
    place.write_text(mutant.text, "utf-8")
    own = f"{package.name}/{mutant.path}"
    try:
        run = run_check(package.parent, "--extend-select", "AL102", target=own)
    finally:
        place.write_bytes(original)
    found = (
        report.code
        for report in run.reports
        if report.path == own and report.line in mutant.lines and report.code in CAPTURE_RULES
    )
    return min(found, key=lambda code: code == "AL102", default=None)


def judge(
    package: Path, shape: str, broken: dict[tuple[str, str], bool], twin: bool, every: int = 1
) -> list[Judged]:
    """Check every n-th mutant of one shape, each alone in a copy of the release."""
    with tempfile.TemporaryDirectory(prefix="aliaslint-mutants-") as folder:
        copied = write_tree(package, Path(folder))
        return [
            Judged(mutant, reported(mutant, copied), broken.get((mutant.shape, mutant.path)))
            for mutant in islice(mutants(package, shape, twin=twin), 0, None, every)
        ]


def read_measured(path: Path = MEASURED) -> dict[tuple[str, str], bool]:
    """Return (shape, path) -> broken, for the mutants that have been executed."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {
            (row["shape"], row["path"]): row["verdict"] == "broken"
            for row in csv.DictReader(file)
            if row["verdict"] in ("broken", "equal")
        }


def line(name: str, judged: Sequence[Judged]) -> str:
    """Return the row of one shape: reported / broken, AL102 alone, and those not executed."""
    broken = [item for item in judged if item.broken]
    found = sum(item.code is not None for item in broken)
    weak = sum(item.code == "AL102" for item in broken)
    rest = [item for item in judged if item.broken is None]
    other = sum(item.code is not None for item in rest)
    return f"{name:20}{found:>5} of {len(broken):<5}{weak:>8}{other:>10} of {len(rest)}"


def recall_table(results: dict[str, list[Judged]]) -> str:
    lines = [f"{'shape':20}{'reported / broken':>14}{'AL102':>5}{'not executed':>17}"]
    lines += [line(name, judged) for name, judged in results.items()]
    everything = [item for judged in results.values() for item in judged]
    lines.append(line("all", everything))
    lines += [
        f"missed: {item.mutant.name} line {item.mutant.lines[0]}"
        for item in everything
        if item.code is None and item.broken is not False
    ]
    return "\n".join(lines)


def twin_table(results: dict[str, list[Judged]]) -> str:
    everything = [item for judged in results.values() for item in judged]
    wrong = [item for item in everything if item.code is not None]
    lines = [f"healthy twins silent: {len(everything) - len(wrong)} of {len(everything)}"]
    lines += [f"wrong: {i.mutant.name} line {i.mutant.lines[0]}: {i.code}" for i in wrong]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy.mutants")
    parser.add_argument("path", type=Path, help="an unpacked release of mlx-lm, 0.31.3")
    parser.add_argument("--shape", action="append", choices=SHAPE_NAMES, help="only these shapes")
    parser.add_argument("--twins", action="store_true", help="check the healthy twins instead")
    parser.add_argument("--every", type=int, default=1, help="only every n-th model file")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    package = package_folder(options.path)
    broken = {} if options.twins else read_measured()
    shapes = options.shape or SHAPE_NAMES
    results = {name: judge(package, name, broken, options.twins, options.every) for name in shapes}
    everything = [item for judged in results.values() for item in judged]
    if options.json:
        print(json.dumps([_row(item) for item in everything], indent=2))
    else:
        print(twin_table(results) if options.twins else recall_table(results))
    failed = [
        i for i in everything if (i.code is not None) == options.twins and i.broken is not False
    ]
    return int(bool(failed))


def _row(item: Judged) -> dict[str, object]:
    mutant = item.mutant
    return {
        "shape": mutant.shape,
        "path": mutant.path,
        "line": mutant.lines[0],
        "twin": mutant.twin,
        "code": item.code,
        "broken": item.broken,
    }


if __name__ == "__main__":
    sys.exit(main())
