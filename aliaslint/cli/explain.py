"""`aliaslint explain`."""

from __future__ import annotations

import re
from pathlib import Path

import click

from aliaslint.errors import UserError
from aliaslint.rules import UnknownRule, lookup

_PLACE = re.compile(r"(?P<path>.+?):(?P<line>\d+)(?::\d+)?$")
_EPILOG = """\b
Examples:
  aliaslint explain AL101                   the rule's page
  aliaslint explain stale-capture           the same
  aliaslint explain models/gemma3n.py:145   what is known about that line
"""


@click.command("explain", epilog=_EPILOG)
@click.argument("subject", metavar="CODE|PATH:LINE")
@click.option(
    "--python",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Interpreter or virtual environment whose packages the code runs with.",
)
def command(subject: str, python: Path | None) -> None:
    """Show a rule's page, or what the analysis knows about a line.

    For a line: the kinds of what it mentions, what may be the same array, what each call
    resolved to, which calls did not resolve, and why there is a finding or none.
    """
    place = _PLACE.match(subject)
    if place:
        click.echo(_about_line(Path(place["path"]), int(place["line"]), python))
        return
    click.echo(_about_rule(subject), nl=False)


def _about_rule(subject: str) -> str:
    from aliaslint.rules.page import page

    try:
        return page(lookup(subject))
    except UnknownRule as error:
        if Path(subject).exists():
            raise UserError(f"name a line of the file: aliaslint explain {subject}:LINE") from None
        raise UserError(f"{error}") from None


def _about_line(path: Path, line: int, python: Path | None) -> str:
    from aliaslint import analysis
    from aliaslint.engine import Request, prepare
    from aliaslint.findings import FileError
    from aliaslint.source.files import read, split_lines

    source = read(path)
    if isinstance(source, FileError):
        raise UserError(f"{path}: {source.message}")
    if not 0 < line <= len(split_lines(source.text)):
        raise UserError(f"{path}: has no line {line}")
    run = prepare(Request(paths=(path,), python=python))
    explain = getattr(analysis, "explain_line", None)
    if explain is None:
        raise UserError("explaining a line is not available in this version")
    return str(explain(source.path, line, run.files, run.options))
