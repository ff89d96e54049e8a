"""Run `aliaslint check` as a user would, and read its JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHECK = "from aliaslint.cli.main import main; main()"


class ToolError(RuntimeError):
    """The tool gave no JSON: a crash or a wrong use, which no score may hide."""


@dataclass(frozen=True, slots=True)
class Report:
    """One reported finding. `path` is relative to the tree, with forward slashes.

    `steps` are the lines of the trace as (role, path, line); paths outside the tree are
    absolute.
    """

    code: str
    path: str
    line: int
    message: str
    steps: tuple[tuple[str, str, int], ...]

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.code} {self.message}"


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of check said about a tree."""

    reports: tuple[Report, ...]
    errors: tuple[str, ...]
    summary: dict[str, Any]

    def at(self, path: str, line: int) -> tuple[Report, ...]:
        return tuple(
            report for report in self.reports if (report.path, report.line) == (path, line)
        )


def relative(path: str, root: Path) -> str:
    """Return `path` relative to `root` where it lies below it, else as it is."""
    place = (root / path).resolve()
    return place.relative_to(root).as_posix() if place.is_relative_to(root) else str(place)


def run_check(root: Path, *options: str, target: str = ".", cache: bool = False) -> Run:
    """Check `target`, a path in the folder `root`. Raises ToolError where no JSON comes back.

    The tool runs with `root` as its working directory, as in a checkout.
    """
    root = root.resolve()
    command = [sys.executable, "-c", CHECK, "check", target, "--output-format", "json", *options]
    done = subprocess.run(
        command if cache else [*command, "--no-cache"],
        cwd=root,
        env=_environment(),
        capture_output=True,
        text=True,
    )
    try:
        document = json.loads(done.stdout)
    except json.JSONDecodeError as error:
        raise ToolError(f"exit status {done.returncode}: {done.stderr.strip()[-2000:]}") from error
    reports = tuple(_report(finding, root) for finding in document["findings"])
    errors = tuple(f"{e.get('path')}:{e.get('line')}: {e['message']}" for e in document["errors"])
    return Run(reports, errors, document.get("summary", {}))


def _report(finding: dict[str, Any], root: Path) -> Report:
    steps = tuple(
        (step["role"], relative(step["path"], root), step["line"]) for step in finding["trace"]
    )
    path = relative(finding["path"], root)
    return Report(finding["code"], path, finding["line"], finding["message"], steps)


def _environment() -> dict[str, str]:
    """Return the environment for a child that finds the same modules in another folder.

    Without VIRTUAL_ENV, so that what happens to be installed stands for no dependency.
    """
    modules = os.pathsep.join(str(Path(entry).resolve()) for entry in sys.path)
    kept = {key: value for key, value in os.environ.items() if key != "VIRTUAL_ENV"}
    return {**kept, "PYTHONPATH": modules}
