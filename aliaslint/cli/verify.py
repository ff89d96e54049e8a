"""`aliaslint verify`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aliaslint.errors import UserError

if TYPE_CHECKING:
    from aliaslint.verify import VerifyReport, VerifyRequest

FORMATS = ("text", "json")

_EPILOG = """\b
Examples:
  aliaslint verify forks/mlx-lm                every architecture of a checkout
  aliaslint verify --package mlx_lm -a llama   one architecture of the installed package

\b
Exit status: 0 nothing alias-broken, 1 an architecture of the tree on disk is
alias-broken (whether fix cures it or not), 2 nothing could be verified.
"""


@click.command("verify", epilog=_EPILOG)
@click.argument("target", required=False, type=click.Path(path_type=Path))
@click.option("--package", metavar="NAME", help="Verify the installed package of this name.")
@click.option(
    "--arch",
    "-a",
    "architectures",
    multiple=True,
    metavar="TYPE",
    help="Only this model type (repeatable).",
)
@click.option("--device", type=click.Choice(["cpu", "gpu"]), help="Default: MLX's own default.")
@click.option(
    "--dtype",
    type=click.Choice(["float32", "float16", "bfloat16"]),
    default="float32",
    show_default=True,
)
@click.option("--jobs", "-j", type=click.IntRange(1), help="Processes at a time [all cores].")
@click.option(
    "--timeout", type=float, default=60.0, show_default=True, help="Seconds for one model."
)
@click.option("--memory", type=float, default=6.0, show_default=True, help="GiB for one model.")
@click.option("--strict", is_flag=True, help="Other divergences fail too.")
@click.option("--output-format", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--output-file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE")
def command(**options: Any) -> int:
    """Decode batched and one by one with every architecture of TARGET, and compare.

    TARGET is a package folder with models/cache.py, or a folder that contains one; the working
    directory by default. The tree is run as it is, as `fix` would rewrite it, and with value
    semantics forced, so that a difference is blamed on aliasing only where aliasing makes it.
    """
    report = run_with_progress(make_request(options))
    write_report(report, options["output_format"], options["output_file"])
    return report.exit_status(strict=options["strict"])


def make_request(options: dict[str, Any]) -> VerifyRequest:
    """Return the request that the options stand for. Raises UserError."""
    from aliaslint.verify import VerifyRequest

    return VerifyRequest(
        target=_target(options["target"], options["package"]),
        architectures=options["architectures"],
        device=options["device"],
        dtype=options["dtype"],
        jobs=options["jobs"] or os.cpu_count() or 1,
        timeout=options["timeout"],
        memory=options["memory"],
    )


def run_with_progress(request: VerifyRequest) -> VerifyReport:
    """Run a verification under a live progress bar."""
    from aliaslint.verify import run
    from aliaslint.verify.report_text import RichProgress

    with RichProgress() as progress:
        return run(request, progress)


def show(report: VerifyReport) -> None:
    """Print the report as `aliaslint verify` does."""
    from aliaslint.verify.report_text import render

    render(report)


def write_report(report: VerifyReport, output_format: str, output_file: Path | None) -> None:
    """Write the report in one format to a file or to standard output."""
    from aliaslint.verify.formats import render

    if output_file is None and output_format == "text":
        show(report)
        return
    text = render(report, output_format)
    if output_file is None:
        click.echo(text, nl=False)
        return
    try:
        output_file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{output_file}: cannot be written: {error.strerror}") from None


def _target(target: Path | None, package: str | None) -> Path:
    from aliaslint.verify.target import installed_package

    if target is not None and package is not None:
        raise UserError("give either a folder or --package, not both")
    if package is not None:
        return installed_package(package)
    return target or Path()
