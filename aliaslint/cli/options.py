"""Options that several commands share, and what they make of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from aliaslint.rules import Selection

Function = TypeVar("Function", bound=Callable[..., Any])


class PathType(click.Path):
    """A path. An empty one, as from a variable that is not set, is not the working directory."""

    def __init__(self, **options: Any) -> None:
        super().__init__(path_type=Path, **options)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the path is empty", param, ctx)
        return super().convert(value, param, ctx)


def _codes(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...] | None:
    """Split lists of codes at commas; None if the option was not given.

    A selection of nothing, as from a variable that is not set, would pass as a clean run.
    """
    if not values:
        return None
    codes = tuple(part.strip() for value in values for part in value.split(",") if part.strip())
    if not codes and parameter.name == "select":
        raise click.BadParameter("no rule is named", context, parameter)
    return codes


python_option = click.option(
    "--python",
    type=PathType(),
    metavar="PATH",
    help="Interpreter or virtual environment whose packages the code runs with.",
)


def text_or_json(help: str) -> Callable[[Function], Function]:
    """Return the option --output-format of the commands that know these two."""
    return click.option(
        "--output-format",
        type=click.Choice(("text", "json")),
        default="text",
        show_default=True,
        help=help,
    )


def target_options(function: Function) -> Function:
    """Add the options that say what to look at."""
    for option in reversed(
        (
            click.argument("paths", nargs=-1, type=PathType()),
            click.option(
                "--package",
                metavar="NAME",
                help="Look at an installed package (mlx_lm), without importing it.",
            ),
            python_option,
            click.option(
                "--stdin-filename",
                type=PathType(),
                metavar="FILE",
                help="Name of the file that is given on standard input (with the path -).",
            ),
            click.option(
                "--force-exclude",
                is_flag=True,
                help="Apply excludes to named files too (for pre-commit).",
            ),
        )
    ):
        function = option(function)
    return function


def selection_options(function: Function) -> Function:
    """Add --select, --ignore and --extend-select."""
    texts = {
        "select": "Rules to run: codes, prefixes (AL1), names or ALL, separated by commas.",
        "ignore": "Rules not to run.",
        "extend-select": "Rules to run in addition.",
    }
    for name, text in reversed(texts.items()):
        function = click.option(
            f"--{name}", callback=_codes, multiple=True, metavar="CODES", help=text
        )(function)
    return function


def cost_options(function: Function) -> Function:
    """Add --no-cache and --jobs."""
    jobs = "At most this many processes, instead of one a processor."
    for option in (
        click.option("--jobs", "-j", type=click.IntRange(1), metavar="N", help=jobs),
        click.option("--no-cache", is_flag=True, help="Neither read nor write the cache."),
    ):
        function = option(function)
    return function


def selection(options: dict[str, Any]) -> Selection:
    """Return the command line's layer of the selection."""
    return Selection(
        select=options["select"],
        ignore=options["ignore"] or (),
        extend_select=options["extend_select"] or (),
    )


def wants_color() -> bool:
    """Whether standard output shows colour: a terminal, unless NO_COLOR; or FORCE_COLOR."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()
