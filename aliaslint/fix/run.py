"""A fix run in memory: rounds of plan, edit, re-analyse, until nothing is left to repair."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from aliaslint.depth import room
from aliaslint.findings import FileError, Finding, Repair
from aliaslint.fix import hints, recheck
from aliaslint.fix.apply import edit
from aliaslint.fix.formatting import line_length
from aliaslint.fix.model import (
    Analyse,
    Applied,
    Change,
    FixOptions,
    FixReport,
    Skipped,
)
from aliaslint.fix.plan import ROUNDS, Plan, Round, divisions, outside, plan, unrepairable
from aliaslint.source.files import SourceFile, split_lines

_PASSES = 4  # A pass repairs what the one before it uncovered; more than two was never seen.


def run(
    files: Sequence[SourceFile], analyse: Analyse, options: FixOptions | None = None
) -> FixReport:
    """Repair what `analyse` finds in `files`, in memory; see the package.

    After each round the edited texts are parsed and analysed again. An edit that does not cure
    its finding is taken back; one that brings a new finding takes the edits of its file with it,
    unless a later round repairs what it brought.
    """
    with room():
        work = _Work(list(files), analyse, options or FixOptions())
        found = work.findings
        work.work()
        if work.has_brought_anything(found):
            work = _Work(list(files), analyse, work.options, patient=False)
            work.work()
        return replace(work.report(), found=tuple(found))


_Key = tuple[Path, str, int, str]


@dataclass(slots=True)
class _Work:
    """The state of a run. `current` are the files as they would be written now.

    `banned` are repairs that were tried and failed, with the reason. `patient` puts up with a new
    finding that can be repaired in turn.
    """

    files: list[SourceFile]
    analyse: Analyse
    options: FixOptions
    patient: bool = True
    current: dict[Path, SourceFile] = field(init=False)
    findings: list[Finding] = field(init=False)
    errors: dict[FileError, None] = field(default_factory=dict)
    applied: dict[Path, list[Applied]] = field(default_factory=dict)
    banned: dict[_Key, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.current = {source.path: source for source in self.files}
        self._look()

    def work(self) -> None:
        """Carry out all rounds of the strategy, until a pass changes nothing."""
        for _ in range(_PASSES):
            rounds = [self.round(actions) for actions in ROUNDS[self.options.strategy]]
            if not any(rounds):
                break
            self.banned.clear()  # what failed before an edit may work after it

    def has_brought_anything(self, before: Sequence[Finding]) -> bool:
        """Whether anything is found now where nothing was among the findings `before`."""
        texts = {
            source.path: (source, self.current[source.path])
            for source in self.files
            if source.path in self.applied
        }
        return bool(recheck.compare(before, self.findings, (), texts).new)

    def round(self, actions: Round) -> bool:
        """Carry out one kind of repair; whether anything was edited."""
        while True:
            todo = plan(self._open(), self.current, self.options, actions)
            edited = self._edited(todo)
            if not edited:
                return False
            before, old = self.findings, {path: self.current[path] for path in edited}
            self.current.update(edited)
            self._look()
            texts = {path: (old[path], edited[path]) for path in edited}
            done = [f for path in edited for f, _ in todo.chosen[path]]
            verdict = recheck.compare(before, self.findings, done, texts)
            if self.patient:
                new = tuple(f for f in verdict.new if not self._can_be_repaired(f))
                verdict = recheck.Verdict(verdict.uncured, new)
            if not verdict.uncured and not verdict.new:
                self._note(todo, old)
                return True
            self.current.update(old)
            self.findings = before
            self._take_back(verdict, todo, set(edited))

    def report(self) -> FixReport:
        """Return what came of it."""
        changes = [
            Change(source, self.current[source.path], tuple(self.applied[source.path]))
            for source in self.files
            if source.path in self.applied
        ]
        return FixReport(
            tuple(changes),
            tuple(sorted(self._skipped(), key=lambda s: s.finding.sort_key())),
            tuple(sorted(self.findings, key=Finding.sort_key)),
            tuple(self.errors),
        )

    def _look(self) -> None:
        """Analyse the files as they are now."""
        result = self.analyse([self.current[source.path] for source in self.files])
        self.findings = list(result.findings)
        self.errors.update(dict.fromkeys(result.errors))

    def _open(self) -> list[Finding]:
        return [finding for finding in self.findings if not self._is_banned(finding)]

    def _is_banned(self, finding: Finding) -> bool:
        return bool(self.banned) and self._key(finding) in self.banned

    def _edited(self, todo: Plan) -> dict[Path, SourceFile]:
        """Edit each file of a plan; what cannot be edited is banned and leaves the plan."""
        edited = {}
        for path in list(todo.chosen):
            source = self.current[path]
            made = edit(source, todo.repairs(path), line_length(path, self.options.line_length))
            if isinstance(made, FileError):
                self.errors[made] = None
                self._ban(todo.chosen.pop(path), made.message)
                continue
            for repair, reason in made.refused.items():
                self._ban([pair for pair in todo.chosen[path] if pair[1] == repair], reason)
            todo.chosen[path] = [p for p in todo.chosen[path] if p[1] not in made.refused]
            if made.source.text == source.text:
                self._ban(todo.chosen.pop(path), "there is nothing to change")
            elif _compiles(source) and not _compiles(made.source):
                self._ban(todo.chosen.pop(path), "Python would not take the edited text")
            else:
                edited[path] = made.source
        return edited

    def _note(self, todo: Plan, old: Mapping[Path, SourceFile]) -> None:
        """Record a round that went well."""
        first = {source.path: source for source in self.files}
        for path, met in old.items():
            moved = recheck.lines(first[path].text, met.text)
            for finding, repair in todo.chosen[path]:
                hint = hints.at_the_source(finding, self.current)
                ends = [line for span in repair.spans for line in (span.line, span.end_line)]
                was = [line for end in ends for line in moved.before(end)] or ends
                lines = (min(was), max(was))
                self.applied.setdefault(path, []).append(Applied(finding, met, lines, hint))

    def _take_back(self, verdict: recheck.Verdict, todo: Plan, edited: set[Path]) -> None:
        """Ban the edits that did not work, so that the round is made again without them."""
        if verdict.uncured:
            reason = "an edit was tried, and the finding would still be there"
            self.banned.update({self._key(f): reason for f in verdict.uncured})
            return
        for finding in verdict.new:
            blamed = edited & {finding.path, *(step.path for step in finding.trace)}
            where = f"{finding.path.name}:{finding.span.line}"
            for path in blamed or edited:
                self._ban(todo.chosen[path], f"an edit would bring a new {finding.code} at {where}")

    def _ban(self, pairs: Iterable[tuple[Finding, Repair]], reason: str) -> None:
        self.banned.update({self._key(finding): reason for finding, _ in pairs})

    def _can_be_repaired(self, finding: Finding) -> bool:
        """Whether a later round would repair a finding."""
        if self._is_banned(finding):
            return False
        rounds = ROUNDS[self.options.strategy]
        return any(plan([finding], self.current, self.options, r).chosen for r in rounds)

    def _skipped(self) -> Iterator[Skipped]:
        """Yield why each finding that is left and could be repaired was not."""
        yield from outside(self.findings, self.options)
        yield from divisions(self.findings, self.current, self.options)
        yield from unrepairable(self.findings, self.options)
        for finding in self.findings:
            if self._is_banned(finding):
                yield Skipped(finding, self.banned[self._key(finding)])
        for actions in ROUNDS[self.options.strategy]:
            yield from plan(self._open(), self.current, self.options, actions).skipped

    def _key(self, finding: Finding) -> _Key:
        """Identify a finding over edits elsewhere in its file: by the text of its line."""
        source = self.current.get(finding.path)
        lines = split_lines(source.text) if source else []
        line = finding.span.line
        text = lines[line - 1].strip() if line <= len(lines) else ""
        return finding.path, finding.code, finding.span.column, text


def _compiles(source: SourceFile) -> bool:
    """Whether Python takes a text; what it warns about is not ours.

    The compiler sees more than the parser, such as an import before one from `__future__`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(source.text, str(source.path), "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True
