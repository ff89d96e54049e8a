"""`aliaslint check`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aliaslint.cli.options import (
    cost_options,
    selection,
    selection_options,
    target_options,
    wants_color,
)
from aliaslint.errors import UserError
from aliaslint.parallel import processors
from aliaslint.report.render import FORMATS, Style

if TYPE_CHECKING:
    from aliaslint.engine import Request
    from aliaslint.report import Report
    from aliaslint.source.files import SourceFile

_EPILOG = """\b
Examples:
  aliaslint check .                            this project
  aliaslint check --package mlx_lm             an installed package, not imported
  aliaslint check src --python .venv           with the mlx-lm of that environment
  aliaslint check . --select AL1 --show-trace  stale captures, with every step
  aliaslint check . --output-format sarif --output-file aliaslint.sarif
  aliaslint check . --baseline known.json --write-baseline

\b
Exit status: 0 no finding of severity error, 1 some, 2 wrong use or a file that
could not be read or parsed (the others are still checked).
"""


@click.command("check", epilog=_EPILOG)
@target_options
@selection_options
@click.option(
    "--output-format",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="How to report.",
)
@click.option(
    "--output-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the report there; only the summary is printed.",
)
@click.option(
    "--baseline",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Do not report the findings that this file lists.",
)
@click.option("--write-baseline", is_flag=True, help="Write all findings to --baseline instead.")
@click.option("--statistics", is_flag=True, help="Count findings per rule and unresolved calls.")
@click.option("--show-trace", is_flag=True, help="Show every step of each trace.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even if there are findings.")
@cost_options
def command(**options: Any) -> int:
    """Find stale captures and in-place updates of arrays that others hold.

    PATHS are files and folders; the working directory by default. Nothing in them is imported
    or run. What the code's own dependency on mlx-lm does is part of the analysis: a capture may
    be a bug with one release and healthy with another. The summary says which one was used.
    """
    from aliaslint.engine import check

    request = make_request(options)
    if options["write_baseline"]:
        return _write_baseline(request, options["baseline"])
    report = check(request)
    _print(report, options)
    return 0 if report.status == 1 and options["exit_zero"] else report.status


def make_request(options: dict[str, Any]) -> Request:
    """Return the request that the shared options stand for. Raises UserError."""
    from aliaslint.engine import Request

    paths: tuple[Path, ...] = options["paths"]
    if options["package"] == "":
        raise UserError("--package: the name is empty")
    if options["package"] and paths:
        raise UserError("give either paths or --package, not both")
    stdin = _read_stdin(options["stdin_filename"]) if Path("-") in paths else None
    if stdin and len(paths) > 1:
        raise UserError("- is standard input and stands alone")
    if options["stdin_filename"] and not stdin:
        raise UserError("--stdin-filename needs the path -")
    return Request(
        paths=() if stdin else paths,
        package=options["package"],
        python=options["python"],
        selection=selection(options),
        stdin=stdin,
        baseline=options.get("baseline"),
        force_exclude=options["force_exclude"],
        cache=not options["no_cache"],
        jobs=options["jobs"] or processors(),
    )


def _read_stdin(name: Path | None) -> SourceFile:
    from aliaslint.findings import FileError
    from aliaslint.source.files import from_bytes

    source = from_bytes(name or Path("stdin.py"), sys.stdin.buffer.read())
    if isinstance(source, FileError):
        place = "" if source.line is None else f":{source.line}:{source.column}"
        raise UserError(f"standard input{place}: {source.message}")
    return source


def _write_baseline(request: Request, path: Path | None) -> int:
    """Write all findings of a run to the baseline, whatever it listed before."""
    from dataclasses import replace

    from aliaslint.engine import check
    from aliaslint.report import Lines, baseline
    from aliaslint.report.summary import count
    from aliaslint.report.text import Painter, error

    if path is None:
        raise UserError("--write-baseline needs --baseline FILE")
    report = check(replace(request, baseline=None))
    _write(path, baseline.dump(report.findings, path, Lines(report.sources)))
    for problem in report.errors:
        click.echo(error(problem, Painter(False)), err=True)
    click.echo(f"Wrote {count(len(report.findings), 'finding')} to {path}.")
    return 2 if report.errors else 0


def _print(report: Report, options: dict[str, Any]) -> None:
    from aliaslint.report.render import render

    path: Path | None = options["output_file"]
    color = path is None and wants_color()
    style = Style(color, options["show_trace"], options["statistics"])
    text = render(report, options["output_format"], style)
    if path is None:
        click.echo(text, nl=False, color=color)
        return
    from aliaslint.report.summary import summary
    from aliaslint.report.text import Painter, error

    _write(path, text)
    for problem in report.errors:
        click.echo(error(problem, Painter(False)), err=True)
    click.echo(summary(report, options["statistics"]))


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from None
