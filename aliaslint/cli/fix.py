"""`aliaslint fix`."""

from __future__ import annotations

import dataclasses
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from aliaslint.cli.check import make_request
from aliaslint.cli.options import (
    cost_options,
    selection_options,
    target_options,
    text_or_json,
    wants_color,
)
from aliaslint.errors import UserError
from aliaslint.parallel import processors

if TYPE_CHECKING:
    from aliaslint.engine import Request, Run
    from aliaslint.findings import FileError, Finding
    from aliaslint.fix import Change, FixReport, Strategy
    from aliaslint.report import Report
    from aliaslint.report.text import Painter
    from aliaslint.source.files import SourceFile
    from aliaslint.verify import VerifyReport

_EPILOG = """\b
Examples:
  aliaslint fix . --diff                what would change; writes nothing
  aliaslint fix . --diff --show-trace   the same, and why each change is made
  aliaslint fix .                       safe fixes only
  aliaslint fix . --unsafe-fixes        also those that may change what is meant
  aliaslint fix forks/mlx_lm --verify   write only if batched decoding is then right
  aliaslint fix - < cache.py            standard input to standard output

\b
Exit status, about what remains: 0 no finding of severity error, 1 some, 2 wrong
use, a file that could not be read, parsed or written. With --diff 1 also if the
diff is not empty; with --verify 1 if the rewritten tree is not right.
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What happened: the plan, what was written, the errors, the verification if there was one."""

    report: FixReport
    errors: tuple[FileError, ...]
    written: bool
    verified: VerifyReport | None = None


@click.command("fix", epilog=_EPILOG)
@target_options
@selection_options
@click.option("--diff", is_flag=True, help="Print a unified diff and write nothing.")
@click.option(
    "--strategy",
    type=click.Choice(("auto", "rebind", "snapshot", "both")),
    default="auto",
    show_default=True,
    help="Rebind the updates, snapshot the captures; auto snapshots where rebinding cannot reach.",
)
@click.option(
    "--show-trace",
    is_flag=True,
    help="Show every step behind each fix, why it has its form, and what is left.",
)
@click.option("--unsafe-fixes", is_flag=True, help="Carry out fixes that may change what is meant.")
@click.option(
    "--verify",
    is_flag=True,
    help="Write only if the rewritten tree decodes batches right (needs the verify extra).",
)
@text_or_json("How to report.")
@cost_options
def command(**options: Any) -> int:
    """Rewrite what check finds: in-place updates to rebinding, stale captures to snapshots.

    Only the given files and the selected rules are touched. The edited text is analysed again
    before anything is written, and each file is replaced as a whole or not at all. Running it a
    second time changes nothing.
    """
    if options["diff"] and options["verify"]:
        raise UserError("give either --diff or --verify: a diff writes nothing to verify")
    request = make_request(options)
    if request.stdin and options["verify"]:
        raise UserError("--verify needs a tree on disk, not standard input")
    from aliaslint.engine import prepare

    run = prepare(request)
    outcome = _carry_out(run, request, options)
    if options["output_format"] == "json":
        _print_json(outcome)
    elif request.stdin and not options["diff"]:
        _print_source(request.stdin, outcome.report)
        _print_text(outcome, options, run, err=True)
    else:
        _print_text(outcome, options, run, err=bool(options["diff"]))
    return _status(outcome, options)


def _carry_out(run: Run, request: Request, options: dict[str, Any]) -> Outcome:
    """Plan, verify if asked to, and write unless there is a reason not to."""
    from aliaslint import fix

    def analyse(files: Sequence[SourceFile]) -> Report:
        from aliaslint.engine import examine, judge

        edited = dataclasses.replace(run, files=tuple(files))
        return judge(edited, examine(edited, request))

    settings = fix.FixOptions(
        strategy=cast("Strategy", options["strategy"]),
        unsafe=options["unsafe_fixes"] or run.config.unsafe_fixes,
        codes=run.codes,
    )
    if not options["diff"]:
        fix.sweep(run.files)  # Temporary files of a run that was killed.
    report = fix.run(run.files, analyse, settings)
    errors = tuple(dict.fromkeys([*run.errors, *report.errors]))
    if options["diff"] or request.stdin or not report.changes:
        return Outcome(report, errors, written=False)
    verified = _verify(run.targets, report, options["jobs"]) if options["verify"] else None
    if verified is not None and verified.exit_status(cured_is_success=True):
        return Outcome(report, errors, False, verified)
    failures = fix.write(report.changes, run.files)
    return Outcome(report.without(failures), (*errors, *failures), True, verified)


def _verify(targets: Sequence[Path], report: FixReport, jobs: int | None) -> VerifyReport:
    """Run the rewritten tree against the one on disk. Raises UserError if that is impossible."""
    from aliaslint import verify
    from aliaslint.cli.verify import run_with_progress
    from aliaslint.targets import common_folder
    from aliaslint.verify.rewrite import edits_of

    request = verify.VerifyRequest(
        target=common_folder(targets),
        rewritten={change.after.path: change.after.data for change in report.changes},
        edits=edits_of(report.changes),
        findings=report.found,
        jobs=jobs or processors(most=None),
    )
    try:
        return run_with_progress(request)
    except (verify.VerifyError, verify.TargetError) as error:
        raise UserError(str(error)) from None


def _status(outcome: Outcome, options: dict[str, Any]) -> int:
    if outcome.errors:
        return 2
    if outcome.verified is not None:
        status = outcome.verified.exit_status(cured_is_success=True)
        if status:
            return status
    if options["diff"] and outcome.report.changes:
        return 1
    return int(any(finding.severity == "error" for finding in outcome.report.remaining))


def _print_source(source: SourceFile, report: FixReport) -> None:
    changed = [change.after.data for change in report.changes]
    sys.stdout.buffer.write(changed[0] if changed else source.data)
    sys.stdout.buffer.flush()


def _print_text(outcome: Outcome, options: dict[str, Any], run: Run, err: bool) -> None:
    from aliaslint.report.text import Painter, error, heading

    paint = Painter(wants_color() and not err)
    if options["diff"]:
        for change in outcome.report.changes:
            _print_diff(change)
    if outcome.verified is not None:
        from aliaslint.cli.verify import write_report

        write_report(outcome.verified, "text", None)
    for change in outcome.report.changes:
        click.echo(_change_line(change, outcome.written), err=err)
        for applied in change.applied:
            if options["show_trace"]:
                click.echo(_told(applied.finding, [*run.files, applied.met], paint), err=err)
            if applied.hint:
                click.echo(f"    {applied.hint}", err=err)
    reasons = {id(skipped.finding): skipped.reason for skipped in outcome.report.skipped}
    after = [*run.files, *(change.after for change in outcome.report.changes)]
    for finding in outcome.report.remaining:
        trace = options["show_trace"]
        click.echo(_told(finding, after, paint) if trace else heading(finding, paint), err=err)
        if reason := reasons.get(id(finding)):
            click.echo(f"    not fixed: {reason}", err=err)
    for problem in outcome.errors:
        click.echo(error(problem, paint), err=err)
    click.echo(_closing(outcome, options, run.count), err=err)


def _print_diff(change: Change) -> None:
    """Print a diff: for a person as text, for `patch` and `git apply` in the file's own bytes."""
    from aliaslint.report import relative

    name = relative(change.before.path)
    click.echo(change.diff(name) if sys.stdout.isatty() else change.patch(name), nl=False)


def _told(finding: Finding, files: Sequence[SourceFile], paint: Painter) -> str:
    """Return a finding with every step of its trace; `files` are quoted, of one path the last."""
    from aliaslint.report import Lines
    from aliaslint.report.text import block

    lines = Lines({source.path: source for source in files})
    return "\n".join(block(finding, lines, paint, full=True))


def _change_line(change: Change, written: bool) -> str:
    from aliaslint.report import relative

    codes = Counter(applied.finding.code for applied in change.applied)
    what = ", ".join(f"{number} × {code}" for code, number in sorted(codes.items()))
    return f"{relative(change.before.path)}: {'fixed' if written else 'would fix'} {what}"


def _closing(outcome: Outcome, options: dict[str, Any], files: int) -> str:
    """Return the last line: how much was done, and what remains."""
    from aliaslint.report.summary import count

    report = outcome.report
    fixed = f"{count(len(report.applied), 'finding')} in {count(len(report.changes), 'file')}"
    if not report.changes:
        done = f"Nothing to fix in {count(files, 'file')}"
    elif outcome.written:
        done = f"Fixed {fixed}"
    elif options["verify"]:
        done = f"Wrote nothing, since the rewritten tree is not right: would fix {fixed}"
    else:
        done = f"Would fix {fixed}"
    unsafe = sum(finding.fixable == "unsafe" for finding in report.remaining)
    hint = f" ({unsafe} with --unsafe-fixes)" if unsafe and not options["unsafe_fixes"] else ""
    remain = f"; {count(len(report.remaining), 'finding')} left{hint}" if report.remaining else ""
    return f"{done}{remain}."


def _print_json(outcome: Outcome) -> None:
    import json

    click.echo(json.dumps(_document(outcome), indent=2))


def _document(outcome: Outcome) -> dict[str, Any]:
    """Return the object that is printed: docs/schema/fix.json."""
    from aliaslint import __version__
    from aliaslint.report import relative
    from aliaslint.report.json import error_object, finding_object

    report = outcome.report
    return {
        "version": __version__,
        "written": outcome.written,
        "changes": [
            {
                "path": relative(change.before.path),
                "fixed": [{**finding_object(a.finding), "hint": a.hint} for a in change.applied],
                "diff": change.diff(relative(change.before.path)),
            }
            for change in report.changes
        ],
        "skipped": [{**finding_object(s.finding), "reason": s.reason} for s in report.skipped],
        "findings": [finding_object(finding) for finding in report.remaining],
        "errors": [error_object(error) for error in outcome.errors],
        "verify": outcome.verified.to_json() if outcome.verified else None,
        "summary": {
            "files_changed": len(report.changes),
            "fixed": len(report.applied),
            "findings": len(report.remaining),
            "errors": len(outcome.errors),
        },
    }
