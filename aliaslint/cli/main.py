"""The command line. Commands are loaded when they are called, so that each starts fast.

Exit status: 0 nothing to report, 1 findings, 2 wrong use, bad input or an internal error.
"""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn

import click

from aliaslint import __version__
from aliaslint.errors import UserError

_COMMANDS = {
    "check": "Find stale captures and in-place updates of arrays that others hold.",
    "fix": "Rewrite what check finds, as one transaction.",
    "verify": "Prove by execution that batched decoding gives what sequential decoding gives.",
    "doctor": "Say whether this environment computes right results.",
    "explain": "Show a rule's page, or what the analysis knows about a line.",
    "rules": "List the rules.",
}
TRACEBACK = "ALIASLINT_TRACEBACK"


class LazyGroup(click.Group):
    """A group whose commands live in modules of the same name, as `command` or by that name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"aliaslint.cli.{cmd_name}")
        command = getattr(module, "command", None) or getattr(module, cmd_name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"no such command {args[0]!r}{_suggest(args[0])}")
        return super().resolve_command(ctx, args)

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run and exit: one line for each error, status 2, and no traceback."""
        run: Callable[..., Any] = super().main
        if not standalone_mode:
            return run(*args, standalone_mode=False, **extra)
        try:
            status = run(*args, standalone_mode=False, **extra)
        except click.ClickException as error:
            _fail(f"error: {error.format_message()}{_help_hint(error)}")
        except UserError as error:
            _fail(f"error: {error}")
        except (KeyboardInterrupt, click.Abort):
            _fail("interrupted", 130)
        except BrokenPipeError:  # The reader of our output went away: nobody to tell.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
        except Exception as error:
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                _fail(f"error: cannot write: {error.strerror}")
            if os.environ.get(TRACEBACK):
                raise
            kind, text = type(error).__name__, " ".join(str(error).split())
            hint = f"(run again with {TRACEBACK}=1 to see where, and please report it)"
            _fail(f"internal error: {kind}: {text} {hint}")
        sys.exit(status if isinstance(status, int) else 0)


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Try `aliaslint check .` first, and `aliaslint explain AL101` for what it says.",
)
@click.version_option(__version__, prog_name="aliaslint", message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Find and fix stale captures of mx.array cache attributes.

    An mx.array is a mutable handle: `a += b` changes it for every name that refers to it. Code
    that captured `cache.offset` before an in-place update reads a position that was not meant,
    in batched decoding only, and nothing raises.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        context.exit(2)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    gc.disable()  # A run makes many objects and few cycles.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    cli.main(args=None if arguments is None else list(arguments), prog_name="aliaslint")


def _fail(message: str, status: int = 2) -> NoReturn:
    click.echo(f"aliaslint: {message}", err=True)
    sys.exit(status)


def _help_hint(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    return f" ({context.command_path} --help)" if context else ""


def _suggest(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, _COMMANDS, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    if os.path.exists(name):
        return f"; to check a path: aliaslint check {name}"
    return f"; the commands are {', '.join(_COMMANDS)}"


if __name__ == "__main__":
    main()
