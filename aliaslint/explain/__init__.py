"""What the analysis knows about a line: why it is reported, or why it is silent.

`explain_line` analyses what the line needs and returns it as data; `text` and `json` show it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from aliaslint.explain.model import Explanation, Place, Verdict

if TYPE_CHECKING:
    from aliaslint.engine import Run
    from aliaslint.explain.looking import Look
    from aliaslint.findings import Finding


def explain_line(
    path: Path, line: int, python: Path | None = None, complete: bool = False
) -> Explanation:
    """Return what is known about a line of a file; nothing of it is imported or run.

    `python` is the environment whose packages the code runs with; with `complete` the verdict
    rests on a check of the whole program. Raises UserError where there is nothing to explain: no
    such file or line, or nothing that runs on it.
    """
    from aliaslint.explain.facts import Facts
    from aliaslint.explain.looking import look
    from aliaslint.explain.reasons import reasons
    from aliaslint.source.files import split_lines

    seen = look(path, line, python, complete)
    facts = Facts(seen.recorder)
    mentions = facts.mentions()
    verdicts = tuple(_verdicts(seen))
    return Explanation(
        path=seen.source.path,
        line=line,
        source=split_lines(seen.source.text)[line - 1],
        unit=seen.spot.unit,
        reached=seen.recorder.reached,
        mentions=mentions,
        calls=facts.calls(),
        verdicts=verdicts,
        reasons=reasons(seen, mentions, verdicts),
        notes=tuple(_notes(seen)),
    )


def _verdicts(seen: Look) -> Iterator[Verdict]:
    """The findings that the line takes part in; those that are shown on it come first."""
    from aliaslint.explain.looking import on_line

    found = []
    for finding, roles in on_line(seen.source.path, seen.spot.line, seen.findings):
        comment = _hidden_by(seen.run, finding)
        status = "reported"
        if comment is not None:
            status = "suppressed"
        elif not _selected(seen.run, finding):
            status = "unselected"
        found.append(Verdict(finding, tuple(roles), status, comment))  # type: ignore[arg-type]
    order = {"reported": 0, "suppressed": 1, "unselected": 2}
    found.sort(key=lambda v: ("place" not in v.roles, order[v.status], v.finding.sort_key()))
    yield from found


def _selected(run: Run, finding: Finding) -> bool:
    from aliaslint.engine import ignored_codes

    return finding.code in run.codes - ignored_codes(run.config, finding.path)


def _hidden_by(run: Run, finding: Finding) -> Place | None:
    """Return the suppression comment that hides a finding."""
    from aliaslint.source.files import split_lines
    from aliaslint.source.suppressions import judge, suppressions

    source = next((file for file in run.files if file.path == finding.path), None)
    if source is None:
        return None
    for comment in suppressions(source.data, source.text):
        if judge((comment,), (finding,)).hidden:
            line = comment.span.line
            return Place(source.path, line, split_lines(source.text)[line - 1].strip())
    return None


def _notes(seen: Look) -> Iterator[str]:
    """Say what the answer rests on: callers that were looked at, and dependencies."""
    from aliaslint.report.summary import count
    from aliaslint.targets import resting_on

    others = seen.candidates - seen.callers
    left_out = [count(others, "other function")] if others else []
    left_out += [count(seen.unread, "other file")] if seen.unread else []
    if seen.abandoned:
        yield (
            f"{seen.spot.root} costs more than one function may and was given up: what stands "
            "here may miss updates and reads behind calls"
        )
    if seen.complete:
        yield f"the findings of a check of {_program(seen)}"
    elif left_out and seen.recorder.may_share:
        yield (
            f"{seen.spot.root} and the {seen.callers} most telling functions that may call it: "
            f"--complete also follows {' and '.join(left_out)} that may"
        )
    elif seen.spot.function is not None and seen.recorder.may_share:
        yield (
            f"{seen.spot.root} and {count(seen.callers, 'function')} that may call it: "
            f"--complete follows every function of {_program(seen)}"
        )
    run = seen.run
    for dependency in resting_on(run.dependencies, run.files, run.options.cache_protocol):
        if dependency.hint:
            yield dependency.hint
        else:
            version = f" {dependency.version}" if dependency.version else ""
            yield f"{dependency.name}{version}: {dependency.origin}"


def _program(seen: Look) -> str:
    """Name the package or the files that are the program."""
    from aliaslint.report import relative
    from aliaslint.report.summary import count

    targets = seen.run.targets
    return relative(targets[0]) if len(targets) == 1 else count(len(targets), "file")
