"""Command line of the fuzzing: `python -m benchmarks.fuzz --help`."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from benchmarks.fuzz.compare import JUDGED, Verdict, judge
from benchmarks.fuzz.generator import RandomChoices, generate
from benchmarks.fuzz.shrink import shrink
from benchmarks.fuzz.tree import Program, as_written

CHUNK = 20


@dataclass(slots=True)
class Totals:
    """Sums over all programs."""

    programs: int = 0
    stale_programs: int = 0
    stale_lines: int = 0
    reads: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    seeds: dict[str, list[str]] = field(default_factory=dict)

    def add(self, seed: str, verdict: Verdict) -> None:
        self.programs += 1
        self.stale_programs += verdict.stale > 0
        self.stale_lines += verdict.stale
        self.reads += verdict.reads
        self.codes += verdict.codes
        for kind, count in kinds(verdict).items():
            self.wrong[kind] += count
            self.seeds.setdefault(kind, []).append(seed)


def kinds(verdict: Verdict) -> Counter[str]:
    """Return the kinds of disagreement, and how many of each."""
    found = Counter(f"unobserved {f.code}" for f in verdict.unobserved)
    found.update(f"stray read {code}" for code, _ in verdict.stray)
    found.update({"missed": len(verdict.missed), "told by AL102 only": len(verdict.told)})
    if verdict.repair:
        found[f"fix: {verdict.repair}"] = 1
    if verdict.error:
        found[f"error {verdict.error[:60]}"] = 1
    return +found


def judge_fully(program: Program, fix: bool) -> Verdict:
    """Judge the findings of a program and, if `fix`, what the fixes make of it."""
    verdict = judge(program)
    if fix and not verdict.error:
        from benchmarks.fuzz import repair

        verdict.repair = repair.check(program)
    return verdict


def judge_seed(seed: str, fix: bool) -> tuple[str, Verdict]:
    return seed, judge_fully(generate(RandomChoices(seed)), fix)


def verdicts(seeds: list[str], jobs: int, fix: bool) -> Iterator[tuple[str, Verdict]]:
    one = partial(judge_seed, fix=fix)
    if jobs <= 1:
        yield from map(one, seeds)
        return
    with multiprocessing.Pool(jobs) as pool:
        yield from pool.imap_unordered(one, seeds, CHUNK)


def smallest(seed: str, kind: str) -> tuple[Program, Verdict]:
    """Return the program of `seed`, shrunk as far as it still shows `kind`."""
    fix = kind.startswith("fix")

    def keeps(program: Program) -> bool:
        try:
            return kind in kinds(judge_fully(program, fix))
        except Exception:
            return False

    program = shrink(generate(RandomChoices(seed)), keeps)
    return program, judge_fully(program, fix)


def numbered(program: Program) -> str:
    lines = as_written(program).rstrip("\n").split("\n")
    return "\n".join(f"{n:3}  {line}" for n, line in enumerate(lines, start=1) if n > 4)


def show(seed: str, kind: str, write: Callable[[str], object] = print) -> None:
    """Print the smallest program that shows `kind`, and what was said of it."""
    program, verdict = smallest(seed, kind)
    write(f"\n== {kind} (seed {seed})\n{numbered(program)}")
    write(f"missed: {verdict.missed}  stray: {verdict.stray}  error: {verdict.error}")
    for finding in verdict.unobserved:
        write(f"unobserved: {finding.span.line}:{finding.span.column} {finding.code}")
        for step in finding.trace:
            write(f"    {step.span.line}:{step.span.column} {step.role}: {step.message}")


def summary(totals: Totals, seconds: float) -> str:
    judged = sum(totals.codes[code] for code in JUDGED)
    unobserved = sum(n for kind, n in totals.wrong.items() if kind.startswith("unobserved"))
    rate = 100 * unobserved / judged if judged else 0.0
    lines = [
        f"{totals.programs} programs in {seconds:.0f} s, {totals.stale_programs} with a stale read",
        f"stale lines {totals.stale_lines}, missed {totals.wrong['missed']}",
        f"findings judged {judged}, never observed {unobserved} ({rate:.2f} %)",
        f"findings by code: {dict(sorted(totals.codes.items()))}",
    ]
    lines += [f"  {n:5} {kind}: seeds {listed(totals, kind)}" for kind, n in totals.wrong.items()]
    return "\n".join(lines)


def listed(totals: Totals, kind: str) -> list[str]:
    """Return the seeds to name: all that show a miss, and some of any other kind."""
    return totals.seeds[kind] if kind == "missed" else totals.seeds[kind][:5]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many programs")
    parser.add_argument("--seed", default="0", help="the seed of the whole run")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--show", type=int, default=1, help="minimal programs to print a kind")
    parser.add_argument("--fix", action="store_true", help="also fix and run the result")
    parser.add_argument("--only", help="show this seed alone (a seed printed by an earlier run)")
    options = parser.parse_args(arguments)
    seeds = [f"{options.seed}:{n}" for n in range(options.count)]
    if options.only:
        seeds = [options.only]
    totals, start = Totals(), time.monotonic()
    for seed, verdict in verdicts(seeds, options.jobs, options.fix):
        totals.add(seed, verdict)
    print(summary(totals, time.monotonic() - start))
    for kind, found in totals.seeds.items():
        for seed in found[: options.show]:
            show(seed, kind)
    failed = totals.wrong["missed"] or any(kind.startswith("error") for kind in totals.wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
