"""Measure what `aliaslint check` costs on a tree: `python -m benchmarks.speed PATH`.

Every number is a ratio of CPU seconds (user and system, of child processes) taken in the same
run, so that a slow or busy machine moves both sides. Rounds are interleaved, and the median
of the rounds is printed. The budgets are those of docs/performance.md.

Baselines: the cold run is compared with a bare loop of `ast.parse` over the same files (the
loop alone, without the start of the interpreter), the warm run with `python -c "import click"`.
"""

from __future__ import annotations

import argparse
import json
import os
import pstats
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

CHECK = "from aliaslint.cli.main import main; main()"
PARSE_LOOP = """
import ast, sys, time, warnings
warnings.simplefilter("ignore")
paths = sys.stdin.read().splitlines()
begin = time.process_time()
for path in paths:
    with open(path, "rb") as file:
        source = file.read()
    try:
        ast.parse(source)
    except (SyntaxError, ValueError):
        pass
print(time.process_time() - begin)
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one child process used: CPU seconds and its peak resident memory in MiB."""

    cpu: float
    memory: float


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: medians over the rounds, and the budget (None: no budget).

    `unit` is "s" for CPU seconds, "MiB" for memory, "M" for millions of calls; `ratio` is the
    median of the rounds' ratios, not the ratio of the medians.
    """

    name: str
    value: float
    baseline: str
    baseline_value: float
    ratio: float
    budget: float | None
    unit: str = "s"

    @property
    def within(self) -> bool:
        return self.budget is None or self.ratio <= self.budget


class BenchmarkError(RuntimeError):
    """A measured command failed, so that its time means nothing."""


def run_child(arguments: Sequence[str], environment: dict[str, str]) -> Cost:
    """Run a child to its end and return what it used. A status above 1 raises."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = code = os.waitstatus_to_exitcode(status)
    if code not in (0, 1):
        raise BenchmarkError(f"exit status {code}: {errors.decode(errors='replace').strip()}")
    scale = 1024 if sys.platform != "darwin" else 1024 * 1024  # ru_maxrss: KiB, macOS: bytes
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / scale)


def python_files(root: Path) -> list[Path]:
    return sorted(root.rglob("*.py")) if root.is_dir() else [root]


def parse_loop(files: Sequence[Path], environment: dict[str, str]) -> float:
    """Return the CPU seconds of reading and parsing `files`, one after the other."""
    done = subprocess.run(
        [sys.executable, "-c", PARSE_LOOP],
        input="\n".join(map(str, files)),
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def import_counts(files: Sequence[Path]) -> Counter[str]:
    """Return how often each module name of `files` is named by an import statement in them."""
    stems = {path.stem for path in files}
    counts: Counter[str] = Counter(dict.fromkeys(stems, 0))
    pattern = re.compile(rb"^\s*(?:from\s+[.\w]+\s+)?import\s.*|^\s*from\s+([.\w]+)", re.MULTILINE)
    for path in files:
        lines = b"\n".join(match.group(0) for match in pattern.finditer(path.read_bytes()))
        words = set(re.findall(r"\w+", lines.decode("utf-8", "replace")))
        counts.update(words & (stems - {path.stem}))
    return counts


def leaf_and_hub(files: Sequence[Path]) -> tuple[Path, Path]:
    """Return a large file that no other imports, and the file that most others import."""
    counts = import_counts(files)
    named = [path for path in files if path.stem not in ("__init__", "__main__")] or list(files)
    leaf = min(named, key=lambda path: (counts[path.stem], -path.stat().st_size))
    hub = max(named, key=lambda path: (counts[path.stem], path.stat().st_size))
    return leaf, hub


@dataclass(frozen=True, slots=True)
class Bench:
    """Copies of one tree below a temporary folder, and the environment of the child runs."""

    root: Path
    environment: dict[str, str]
    rounds: int

    @property
    def one(self) -> Path:
        return self.root / "one"

    @property
    def two(self) -> Path:
        return self.root / "two"

    def check(self, target: Path, *options: str) -> Cost:
        return run_child(["-c", CHECK, "check", str(target), *options], self.environment)

    def cold(self, target: Path) -> Cost:
        return self.check(target, "--no-cache")

    def calls(self, target: Path) -> int:
        """Return how many functions a cold run calls: its work, the same on any machine."""
        profile = self.root / "profile"
        options = ("check", str(target), "--no-cache", "--jobs", "1")
        profiler = ("-m", "cProfile", "-o", str(profile))
        run_child([*profiler, "-m", "aliaslint", *options], self.environment)
        return int(vars(pstats.Stats(str(profile)))["total_calls"])


def prepare(source: Path, root: Path, rounds: int) -> Bench:
    """Copy `source` once below `one` and twice below `two`."""
    for place in ("one/a", "two/a", "two/b"):
        target = root / place / source.name
        if source.is_dir():
            ignore = shutil.ignore_patterns("__pycache__", ".git", ".venv", "*.pyc")
            shutil.copytree(source, target, ignore=ignore)
        else:
            target.parent.mkdir(parents=True)
            shutil.copy(source, target)
    cache = str(root / "cache")
    environment = {
        **os.environ,
        "XDG_CACHE_HOME": cache,
        "ALIASLINT_CACHE_DIR": cache,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    return Bench(root, environment, rounds)


def compare(
    name: str,
    baseline: str,
    budget: float | None,
    pairs: Sequence[tuple[float, float]],
    unit: str = "s",
) -> Row:
    """Return the row for the rounds' (value, baseline value) pairs."""
    values, bases = zip(*pairs, strict=True)
    ratio = statistics.median(value / base for value, base in pairs)
    value, base = statistics.median(values), statistics.median(bases)
    return Row(name, value, baseline, base, ratio, budget, unit)


def counted(bench: Bench) -> tuple[float, float]:
    """Return the function calls, in millions, of a cold run on two copies and on one."""
    two, one = (bench.calls(target) / 1e6 for target in (bench.two, bench.one))
    return two, one


def measure_cold(bench: Bench) -> list[Row]:
    """Cold run against the parse loop, two copies against one, and peak memory."""
    files = python_files(bench.one)
    parse: list[tuple[float, float]] = []
    twice: list[tuple[float, float]] = []
    memory: list[float] = []
    for _ in range(bench.rounds):
        cold, loop, double = (
            bench.cold(bench.one),
            parse_loop(files, bench.environment),
            bench.cold(bench.two),
        )
        parse.append((cold.cpu, loop))
        twice.append((double.cpu, cold.cpu))
        memory.append(cold.memory)
    start = run_child(["-c", "import click"], bench.environment).memory
    peak = statistics.median(memory)
    return [
        compare("cold", "ast.parse loop", 1.0, parse),
        compare("two copies, cold", "one copy, cold", 2.3, twice),
        compare("two copies, function calls", "one copy", 2.3, [counted(bench)], "M"),
        Row("peak memory, cold", peak, "import click", start, peak / start, None, "MiB"),
    ]


def edit(path: Path, number: int) -> None:
    """Change the file's content without changing its meaning."""
    text = path.read_text("utf-8").split("\n# edit ")[0]
    path.write_text(f"{text}\n# edit {number:04}\n", "utf-8")


def measure_warm(bench: Bench) -> list[Row]:
    """Warm run, and a run after one changed leaf file and after a change of the hub."""
    leaf, hub = leaf_and_hub(python_files(bench.one))
    bench.check(bench.one)
    warm: list[tuple[float, float]] = []
    changed: dict[Path, list[tuple[float, float]]] = {leaf: [], hub: []}
    for number in range(bench.rounds):
        click = run_child(["-c", "import click"], bench.environment).cpu
        again = bench.check(bench.one).cpu
        warm.append((again, click))
        cold = bench.cold(bench.one).cpu
        for path, base in ((leaf, again), (hub, cold)):
            edit(path, number)
            changed[path].append((bench.check(bench.one).cpu, base))
    return [
        compare("warm", "import click", 3.0, warm),
        compare(f"changed leaf ({leaf.name})", "warm", 2.0, changed[leaf]),
        compare(f"changed hub ({hub.name})", "cold", 1.0, changed[hub]),
    ]


def measure(source: Path, rounds: int) -> list[Row]:
    """Return all rows for the tree `source`. The tree itself is only read."""
    with tempfile.TemporaryDirectory(prefix="aliaslint-speed-") as folder:
        bench = prepare(source.resolve(), Path(folder), rounds)
        steps: list[Callable[[Bench], list[Row]]] = [measure_cold, measure_warm]
        return [row for step in steps for row in step(bench)]


def table(rows: Sequence[Row]) -> str:
    lines = [f"{'measured':34}{'':>10}  {'against':16}{'':>10}{'ratio':>8}{'budget':>8}"]
    for row in rows:
        budget = "" if row.budget is None else f"{row.budget:.1f}"
        mark = "" if row.within else "  over"
        value, base = (f"{v:.2f} {row.unit}" for v in (row.value, row.baseline_value))
        lines.append(
            f"{row.name:34}{value:>10}  {row.baseline:16}{base:>10}"
            f"{row.ratio:>8.2f}{budget:>8}{mark}"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("path", type=Path, help="a package folder or a file to check")
    parser.add_argument("--rounds", type=int, default=5, help="rounds to take the median of")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--strict", action="store_true", help="exit 1 where a budget is exceeded")
    options = parser.parse_args(arguments)
    if not options.path.exists():
        parser.error(f"no such path: {options.path}")
    rows = measure(options.path, max(1, options.rounds))
    if options.json:
        print(json.dumps([{**asdict(row), "within": row.within} for row in rows], indent=2))
    else:
        print(table(rows))
    return int(options.strict and not all(row.within for row in rows))


if __name__ == "__main__":
    sys.exit(main())
