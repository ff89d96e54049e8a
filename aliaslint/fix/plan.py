"""Decides which repairs are carried out, in which round, and says why others are not."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent

from aliaslint.findings import Action, Finding, Repair, Span, joined
from aliaslint.fix.model import FixOptions, Skipped, Strategy
from aliaslint.source.files import SourceFile, split_lines

Round = frozenset[Action]

_REBIND: Round = frozenset({"rebind", "store-back", "copy-first"})
_IN_CALLEES: Round = frozenset({"copy-in-callee"})
_SNAPSHOT: Round = frozenset({"snapshot"})
_AFTER: Round = frozenset({"copy-after"})
_COPIES = (_IN_CALLEES, _SNAPSHOT, _AFTER)
_NATIVE_RANK: Round = frozenset({"native-rank"})
_COMMENTS: Round = frozenset({"remove-suppression"})

# A producer is rebound before the captures are looked at again: that cures most of them. So does
# what a function gives back before those are that it is given to, lest an array is copied twice.
ROUNDS: Mapping[Strategy, tuple[Round, ...]] = {
    "auto": (_REBIND, _NATIVE_RANK, *_COPIES, _COMMENTS),
    "rebind": (_REBIND, _NATIVE_RANK, _COMMENTS),
    "snapshot": (*_COPIES, _NATIVE_RANK, _COMMENTS),
    "both": (_REBIND | _SNAPSHOT, _IN_CALLEES, _AFTER, _NATIVE_RANK, _COMMENTS),
}
# Of two repairs of one statement, the one that does more for other holders.
_PREFERENCE: tuple[Action, ...] = ("copy-first", "store-back", "rebind")
_DIVISION = (
    "`/=` on an array of integers raises, and would give floating-point numbers when rebound: "
    "rewrite it by hand if the array cannot hold integers"
)


@dataclass(slots=True)
class Plan:
    """The findings to repair in one round, by file, and those passed over."""

    chosen: dict[Path, list[tuple[Finding, Repair]]] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)

    def repairs(self, path: Path) -> list[Repair]:
        """Return the repairs of a file without repetition."""
        return list(dict.fromkeys(repair for _, repair in self.chosen[path]))


def plan(
    findings: Iterable[Finding],
    files: Mapping[Path, SourceFile],
    options: FixOptions,
    actions: Round,
) -> Plan:
    """Choose among the findings that `actions` would repair; `files` are those given."""
    result = Plan()
    for finding in findings:
        repair = finding.repair
        if repair is None or repair.action not in actions:
            continue
        if options.codes is not None and finding.code not in options.codes:
            continue
        reason = _obstacle(finding, repair, files, options)
        if reason:
            result.skipped.append(Skipped(finding, reason))
        else:
            path = repair.path or finding.path
            result.chosen.setdefault(path, []).append((finding, repair))
    for path in list(result.chosen):
        result.chosen[path] = list(_without_overlap(result.chosen[path], result.skipped))
    return result


def outside(findings: Iterable[Finding], options: FixOptions) -> list[Skipped]:
    """Return the findings with a repair that the strategy never carries out."""
    covered = frozenset[Action]().union(*ROUNDS[options.strategy])
    reason = f"not part of --strategy {options.strategy}"
    return [
        Skipped(finding, reason)
        for finding in findings
        if finding.repair
        and finding.repair.action not in covered
        and (options.codes is None or finding.code in options.codes)
    ]


def divisions(
    findings: Iterable[Finding], files: Mapping[Path, SourceFile], options: FixOptions
) -> Iterator[Skipped]:
    """Yield the updates by `/=`, which have no repair: the user has to know what they divide."""
    for finding in findings:
        source = files.get(finding.path)
        if finding.repair or source is None:
            continue
        if options.codes is not None and finding.code not in options.codes:
            continue
        statement = statement_at(source, finding.span)
        if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Div):
            yield Skipped(finding, _DIVISION)


def unrepairable(findings: Iterable[Finding], options: FixOptions) -> Iterator[Skipped]:
    """Yield the findings that the analysis found no repair for, with what it says about that."""
    for finding in findings:
        if finding.obstacle and (options.codes is None or finding.code in options.codes):
            yield Skipped(finding, finding.obstacle)


def statement_at(source: SourceFile, span: Span) -> ast.stmt | None:
    """Return the statement that stands at a span, None if it is not exactly one."""
    lines = split_lines(source.text)[span.line - 1 : span.end_line]
    if not lines:
        return None
    lines[-1] = lines[-1][: span.end_column - 1]
    lines[0] = lines[0][span.column - 1 :]
    try:
        body = ast.parse(dedent("\n".join(lines))).body
    except SyntaxError:
        return None
    return body[0] if len(body) == 1 else None


def _obstacle(
    finding: Finding, repair: Repair, files: Mapping[Path, SourceFile], options: FixOptions
) -> str:
    """Return why a repair is not carried out, "" if it is."""
    if (repair.path or finding.path) not in files:
        return "its file is not among those given"
    if repair.safety == "unsafe" and not options.unsafe:
        return f"unsafe ({repair.reason})" if repair.reason else "unsafe"
    return ""


def _without_overlap(
    chosen: Sequence[tuple[Finding, Repair]], skipped: list[Skipped]
) -> Iterable[tuple[Finding, Repair]]:
    """Yield at most one repair a statement, and of nested copies the inner one."""
    statements: dict[Span, Repair] = {}
    for _, repair in sorted(chosen, key=lambda pair: _rank(pair[1])):
        if repair.action in _REBIND:
            statements.setdefault(repair.span, repair)
    copies = {repair.span for _, repair in chosen if repair.action == "snapshot"}
    after = joined(repair for _, repair in chosen if repair.action == "copy-after")
    for finding, repair in chosen:
        if repair.action in _REBIND:
            yield finding, statements[repair.span]
        elif repair.action == "copy-after":
            yield finding, after[repair.span]
        elif repair.action == "snapshot" and _holds_another(repair.span, copies):
            skipped.append(Skipped(finding, "a copy inside this expression comes first"))
        else:
            yield finding, repair


def _rank(repair: Repair) -> int:
    return _PREFERENCE.index(repair.action) if repair.action in _PREFERENCE else 0


def _holds_another(span: Span, spans: Collection[Span]) -> bool:
    start, end = (span.line, span.column), (span.end_line, span.end_column)
    return any(
        other != span
        and start <= (other.line, other.column)
        and (other.end_line, other.end_column) <= end
        for other in spans
    )
