"""`aliaslint explain`."""

from __future__ import annotations

import re
from pathlib import Path

import click

from aliaslint.cli.options import python_option, text_or_json, wants_color
from aliaslint.errors import UserError

_PLACE = re.compile(r"(?P<path>.+):(?P<line>\d+)$", re.DOTALL)
_PLACE_AND_COLUMN = re.compile(r"(?P<path>.+):(?P<line>\d+):\d+$", re.DOTALL)
_EPILOG = """\b
Examples:
  aliaslint explain AL101                      the rule's page
  aliaslint explain stale-capture              the same
  aliaslint explain models/gemma3n.py:138      why that line is reported, or is not
  aliaslint explain models/gemma3n.py:138:26   the same: a place as check prints it
  aliaslint explain server.py:40 --python .venv
                                               with the mlx-lm of that environment
  aliaslint explain cache.py:961 --complete    with all callers in the package
  aliaslint explain cache.py:961 --output-format json

\b
Exit status: 0, and 2 for wrong use: no such rule, file or line, or a line on
which nothing runs.
"""


@click.command("explain", epilog=_EPILOG)
@click.argument("subject", metavar="CODE|PATH:LINE")
@python_option
@click.option(
    "--complete",
    is_flag=True,
    help="Check the whole package too, for evidence from everywhere; takes as long as `check`.",
)
@text_or_json("How to say it.")
def command(subject: str, python: Path | None, complete: bool, output_format: str) -> None:
    """Show a rule's page, or what the analysis knows about a line.

    For a line: the findings that it takes part in, those that are off or suppressed included, or
    why there is none; the kinds of what it mentions, what holds the same array, and which update
    made it stale; what each call resolved to, and which calls did not resolve.

    The package of the file is the program. Only what the line needs of it is analysed: the
    function that holds the line, what that calls, and the most telling of its callers. If a
    check of the package is stored, or with --complete, its findings are the verdict.
    """
    place = _place(subject)
    if place is None:
        _about_rule(subject, output_format)
    else:
        _about_line(*place, python, complete, output_format)


def _place(subject: str) -> tuple[Path, int] | None:
    """Return path and line. A colon may be part of a file's name; then the file exists."""
    found = [m for m in (_PLACE.match(subject), _PLACE_AND_COLUMN.match(subject)) if m]
    if not found:
        return None
    best = next((m for m in found if Path(m["path"]).exists()), found[-1])
    return Path(best["path"]), int(best["line"])


def _about_rule(subject: str, output_format: str) -> None:
    import json

    from aliaslint import __version__
    from aliaslint.cli.rules import rule_object
    from aliaslint.rules import UnknownRule, lookup
    from aliaslint.rules.page import page

    try:
        rule = lookup(subject)
    except UnknownRule as error:
        path = Path(subject)
        if path.is_dir():
            message = f"{path}: is a folder; name a line of a file"
        elif path.exists():
            message = f"name a line of the file: aliaslint explain {subject}:LINE"
        elif named := _file_before_colon(subject):
            message = f"{subject}: a line number has to follow the file: {named}:LINE"
        else:
            message = f"{error}"
        raise UserError(message) from None
    if output_format == "json":
        click.echo(json.dumps({"version": __version__, "rule": rule_object(rule)}, indent=2))
    else:
        click.echo(page(rule), nl=False)


def _file_before_colon(subject: str) -> str | None:
    """Return the file of a subject that names one, and after a colon something else than a line."""
    parts = subject.split(":")
    names = (":".join(parts[:end]) for end in range(len(parts) - 1, 0, -1))
    return next((name for name in names if name.endswith(".py") or Path(name).is_file()), None)


def _about_line(
    path: Path, line: int, python: Path | None, complete: bool, output_format: str
) -> None:
    import json

    from aliaslint.explain import explain_line

    if path.is_dir():
        raise UserError(f"{path}: is a folder; name a line of a file")
    explanation = explain_line(path, line, python, complete)
    if output_format == "json":
        from aliaslint.explain.json import document

        click.echo(json.dumps(document(explanation), indent=2))
        return
    from aliaslint.explain.text import render

    color = wants_color()
    click.echo(render(explanation, color), color=color)
