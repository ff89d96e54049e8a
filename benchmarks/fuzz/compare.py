"""Holds what the analysis says of a generated program against what running it showed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from aliaslint.analysis import AnalysisOptions, analyse
from aliaslint.findings import Finding
from aliaslint.source.files import SourceFile
from benchmarks.fuzz.arrays import Stale
from benchmarks.fuzz.observer import observed
from benchmarks.fuzz.oracle import Truth, observe
from benchmarks.fuzz.tree import Program, as_written

PATH = Path("/generated/program.py")
TRACED = frozenset({"AL101", "AL201", "AL202"})
BY_UPDATE = frozenset({"AL003", "AL004"})
JUDGED = TRACED | BY_UPDATE
# The cache protocol stands for every class that has it, also for those never passed; any call in
# a `try` may raise, as far as the analysis knows, and these never do. Misses count all the same.
UNJUDGED = ("update_and_fetch", "try:")
FEW_RUNS, MANY_RUNS = 24, 400


@dataclass(slots=True)
class Verdict:
    """How one program fared.

    `missed` are lines that read a changed value and that no finding tells of. `unobserved` are
    findings that no run bore out. `stray` are the read steps of borne-out findings that no run
    bore out: (code, line). `told` are stale lines that only an AL102 tells of.
    """

    stale: int = 0
    missed: list[int] = field(default_factory=list)
    told: list[int] = field(default_factory=list)
    unobserved: list[Finding] = field(default_factory=list)
    stray: list[tuple[str, int]] = field(default_factory=list)
    codes: Counter[str] = field(default_factory=Counter)
    reads: int = 0
    error: str = ""
    repair: str = ""

    @property
    def judged(self) -> int:
        """How many findings running can bear out."""
        return sum(self.codes[code] for code in JUDGED)

    @property
    def agrees(self) -> bool:
        return not (self.missed or self.unobserved or self.stray or self.error)


def findings_of(source: str) -> list[Finding]:
    """Return what the analysis reports for a generated program."""
    file = SourceFile(PATH, source.encode(), source, "utf-8")
    result = analyse([file], AnalysisOptions())
    if result.errors:
        raise AssertionError(result.errors[0].message)
    return result.findings


def judge(program: Program) -> Verdict:
    """Analyse and run `program`, and compare."""
    try:
        findings = findings_of(as_written(program))
    except Exception as error:
        return Verdict(error=f"{type(error).__name__}: {error}")
    verdict = compare(findings, observe(program, FEW_RUNS))
    if any(word in as_written(program) for word in UNJUDGED):
        verdict.unobserved, verdict.stray = [], []
    if verdict.unobserved or verdict.stray:
        truth = observe(program, MANY_RUNS)
        verdict = compare(findings, truth, observed(program, MANY_RUNS))
    return verdict


def compare(
    findings: list[Finding], truth: Truth, observer: frozenset[int] | set[int] = frozenset()
) -> Verdict:
    """Return where findings and runs differ.

    Missed can be only what read another value than with value semantics. To bear out a finding
    it is enough that the observer saw a changed handle: the value may be the same by chance.
    """
    verdict = Verdict(stale=len(truth.stale), codes=Counter(f.code for f in findings))
    for line, reads in sorted(truth.stale.items()):
        telling = [f for f in findings if any(_tells(f, read) for read in reads)]
        if not telling:
            verdict.missed.append(line)
        elif all(f.code == "AL102" for f in telling):
            verdict.told.append(line)
    for finding in findings:
        if finding.code in JUDGED and _is_executed(finding, truth):
            _bear_out(finding, truth, truth.lines | observer, verdict)
    return verdict


def _tells(finding: Finding, read: Stale) -> bool:
    lines = {step.span.line for step in finding.trace} | {finding.span.line}
    if finding.code in TRACED and ({read.line} | read.through) & lines:
        return True
    if finding.code in BY_UPDATE:
        return finding.span.line in read.updates
    return finding.code == "AL102" and bool((read.updates | {read.line}) & lines)


def _is_executed(finding: Finding, truth: Truth) -> bool:
    """Whether running could bear the finding out: code that never runs tells nothing."""
    if finding.code in BY_UPDATE:
        return finding.span.line in truth.executed
    return any(s.span.line in truth.executed for s in finding.trace if s.role == "read")


def _bear_out(finding: Finding, truth: Truth, seen: set[int], verdict: Verdict) -> None:
    sure = [s for s in finding.trace if s.role == "read" and "may read" not in s.message]
    reads = {step.span.line for step in sure}
    borne_out = bool(reads & seen)
    if finding.code in TRACED:
        verdict.reads += len(reads)
        if borne_out:
            verdict.stray += [(finding.code, read) for read in sorted(reads - seen)]
    elif finding.code == "AL004":
        borne_out |= finding.span.line in truth.behind
    if not borne_out:
        verdict.unobserved.append(finding)
