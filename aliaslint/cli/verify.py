"""`aliaslint verify`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aliaslint.cli.options import PathType
from aliaslint.errors import UserError
from aliaslint.parallel import processors

if TYPE_CHECKING:
    from aliaslint.verify import VerifyReport, VerifyRequest
    from aliaslint.verify.inject import Fault
    from aliaslint.verify.target import Target

FORMATS = ("text", "json", "junit", "html")
# What each other way to run does not look at.
_CHOICE = {"changed_since": "--changed-since", "shard": "--shard", "strict": "--strict"}
_OWN = {"architectures": "--arch", "configs": "--config", "output_file": "--output-file"}
IDLE: dict[str, dict[str, str]] = {
    "emit_test": {"merge": "--merge", "inject": "--inject", **_CHOICE, **_OWN},
    "merge": {
        "inject": "--inject",
        "package": "--package",
        "changed_since": "--changed-since",
        "shard": "--shard",
        "architectures": "--arch",
        "configs": "--config",
    },
    "inject": _CHOICE,
}

_EPILOG = """\b
Examples:
  aliaslint verify forks/mlx-lm                every architecture of a checkout
  aliaslint verify --package mlx_lm -a llama   one architecture of the installed package
  aliaslint verify mlx_lm/models/llama.py      what this file can have changed
  aliaslint verify . --changed-since main      what differs from a revision
  aliaslint verify . --shard 2/4 --output-format json --output-file 2.json
  aliaslint verify --merge 1.json 2.json 3.json 4.json
  aliaslint verify --package mlx_lm --inject   put the bug in and see it caught
  aliaslint verify . --emit-test tests/test_captured_offsets.py

\b
Exit status: 0 nothing alias-broken, 1 an architecture of the tree on disk is
alias-broken (whether fix cures it or not), 2 nothing could be verified.
"""


@click.command("verify", epilog=_EPILOG)
@click.argument("target", nargs=-1, type=PathType())
@click.option("--package", metavar="NAME", help="Verify the installed package of this name.")
@click.option(
    "--arch",
    "-a",
    "architectures",
    multiple=True,
    metavar="TYPE",
    help="Only this model type (repeatable).",
)
@click.option(
    "--config",
    "configs",
    multiple=True,
    metavar="TYPE=FILE",
    help="Use this config.json for a model type (repeatable).",
)
@click.option("--changed-since", metavar="REV", help="Only what differs from a git revision.")
@click.option("--shard", metavar="K/N", help="Run the K-th of N parts.")
@click.option("--merge", is_flag=True, help="TARGET are JSON reports of shards: make one of them.")
@click.option("--inject", is_flag=True, help="Put the bug into a healthy tree and see it caught.")
@click.option(
    "--emit-test",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write a regression test for the caches of TARGET there, and do no more.",
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
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    help="Seconds for one model.",
)
@click.option(
    "--memory",
    type=click.FloatRange(0, min_open=True),
    default=6.0,
    show_default=True,
    help="GiB for one model.",
)
@click.option("--strict", is_flag=True, help="Other divergences fail too.")
@click.option("--output-format", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--output-file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE")
def command(**options: Any) -> int:
    """Decode batched and one by one with every architecture of TARGET, and compare.

    TARGET is a package folder with models/cache.py, or a folder that contains one; the working
    directory by default. Files of it stand for the architectures that they can change. The tree
    is run as it is, as `fix` would rewrite it, and with value semantics forced, so that a
    difference is blamed on aliasing only where aliasing makes it.
    """
    _require_sense(options)
    for name in ("output_file", "emit_test"):
        _require_place(options[name])
    if options["emit_test"]:
        return _emit_test(make_request(options), options["emit_test"])
    if options["merge"]:
        report = _merged(options["target"])
    elif options["inject"]:
        return _self_test(make_request(options), options)
    else:
        report = run_with_progress(make_request(options))
    strict = options["strict"]
    write_report(report, options["output_format"], options["output_file"], strict=strict)
    return report.exit_status(strict=strict)


def _require_sense(options: dict[str, Any]) -> None:
    """Raise UserError where an option would silently do nothing."""
    for mode, idle in IDLE.items():
        if options[mode]:
            given = [flag for name, flag in idle.items() if options[name]]
            if given:
                raise UserError(f"--{mode.replace('_', '-')} does not go with {', '.join(given)}")
    if options["inject"] and options["output_format"] not in ("text", "json"):
        raise UserError("--inject answers in text or json")


def make_request(options: dict[str, Any]) -> VerifyRequest:
    """Return the request that the options stand for. Raises UserError."""
    from aliaslint.verify import VerifyRequest
    from aliaslint.verify.target import find_target

    path = _target(options["target"], options["package"])
    target = find_target(path)
    configs = _configs(target, options["configs"])
    wanted = _architectures(target, options, configs)
    return VerifyRequest(
        target=path,
        architectures=wanted or (),
        nothing_changed=wanted is None,
        configs=configs,
        device=options["device"],
        dtype=options["dtype"],
        jobs=options["jobs"] or processors(most=None),
        timeout=options["timeout"],
        memory=options["memory"],
        shard=_shard(options["shard"]),
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


def write_report(
    report: VerifyReport, output_format: str, output_file: Path | None, *, strict: bool = False
) -> None:
    """Write the report in one format to a file or to standard output."""
    from aliaslint.verify.formats import render

    if output_file is None and output_format == "text":
        show(report)
        return
    text = render(report, output_format, strict=strict)
    try:
        _write(text, output_file)
    except UserError:
        show(report)  # The work is done: what cannot be written can still be read.
        raise


def _write(text: str, output_file: Path | None) -> None:
    if output_file is None:
        click.echo(text, nl=False)
        return
    try:
        output_file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{output_file}: cannot be written: {error.strerror}") from None


def _require_place(path: Path | None) -> None:
    """Raise UserError where a file cannot be written, before minutes of work and not after."""
    if path is None:
        return
    place = path if path.exists() else path.parent
    if not place.exists():
        raise UserError(f"{path}: cannot be written: there is no folder {path.parent}")
    if not os.access(place, os.W_OK):
        raise UserError(f"{path}: cannot be written: permission denied")


def _merged(paths: tuple[Path, ...]) -> VerifyReport:
    from aliaslint.verify.merge import load_report, merge_reports

    return merge_reports([load_report(path) for path in paths])


def _self_test(request: VerifyRequest, options: dict[str, Any]) -> int:
    from aliaslint.verify.inject import self_test
    from aliaslint.verify.report_text import RichProgress, headline

    with RichProgress() as progress:
        faults, report = self_test(request, progress)
    if options["output_format"] == "json":
        items = [_fault_object(fault) for fault in faults]
        _write(json.dumps({"self_test": items}, indent=2) + "\n", options["output_file"])
    else:
        lines = [headline(report), *map(_fault_line, faults)]
        _write("\n".join(lines) + "\n", options["output_file"])
    return 0 if all(fault.caught for fault in faults) else 1


def _emit_test(request: VerifyRequest, path: Path) -> int:
    from aliaslint.verify.session import emitted_test

    text = emitted_test(request)
    _write(text, path)
    click.echo(f"Wrote {text.count('    def test_')} tests to {path}.")
    return 0


def _fault_object(fault: Fault) -> dict[str, Any]:
    return {"fault": fault.what, "path": fault.path, "caught": fault.caught, "found": fault.found}


def _fault_line(fault: Fault) -> str:
    word = "caught" if fault.caught else "MISSED"
    return f"{word}: {fault.what} ({fault.path}): {fault.found}"


def _target(targets: tuple[Path, ...], package: str | None) -> Path:
    from aliaslint.verify.target import installed_package

    if targets and package is not None:
        raise UserError("give either a folder or --package, not both")
    if package is not None:
        return installed_package(package)
    if len(targets) > 1 and not all(path.is_file() for path in targets):
        raise UserError("give one folder, or files of one package")
    return targets[0] if targets else Path()


def _architectures(
    target: Target, options: dict[str, Any], configs: Iterable[str]
) -> tuple[str, ...] | None:
    """The model types that were asked for: by name, by file, by revision.

    Empty for all, None if the files or the revision touch none.
    """
    from aliaslint.verify.changes import affected, changed_since, touches_caches
    from aliaslint.verify.session import require_known

    named = tuple(target.model_type(name) for name in options["architectures"])
    require_known(target, (*named, *configs))
    changed: list[Path] | None = None
    if options["changed_since"] is not None:
        changed = changed_since(target, options["changed_since"])
    elif options["target"] and all(path.is_file() for path in options["target"]):
        changed = list(options["target"])
    if changed is None or touches_caches(target, changed):
        return named
    found = tuple(name for name in affected(target, changed) if not named or name in named)
    return found or None


def _configs(target: Target, texts: Iterable[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for text in texts:
        given, value = _config(text)
        name = target.model_type(given)
        if name in found:
            raise UserError(f"--config {text}: {name} has a configuration already")
        found[name] = value
    return found


def _config(text: str) -> tuple[str, Any]:
    name, _, file = text.partition("=")
    if not (name and file):
        raise UserError(f"--config {text}: write it as model_type=config.json")
    try:
        value = json.loads(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise UserError(f"{file}: is no JSON") from None
    if not isinstance(value, dict):
        raise UserError(f"{file}: a configuration is a JSON object")
    return name, value


def _shard(text: str | None) -> tuple[int, int]:
    if text is None:
        return 1, 1
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    which, of = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= which <= of:
        raise UserError(f"--shard {text}: write it as K/N with K from 1 to N")
    return which, of
