"""Makes the table of releases of mlx_lm that read stale captures of their own.

    python -m benchmarks.stale_captures [--write] DIR...

Each DIR is an unpacked wheel: `mlx_lm/` beside `mlx_lm-VERSION.dist-info/`. Runs `aliaslint check`
on each, and prints what AL101 finds, with the caches of the release itself. With --write
the releases are added to `aliaslint/program/stale_captures/mlx_lm.json`; those that are there
already and not given stay.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aliaslint import __version__
from aliaslint.program import stale_captures
from aliaslint.program.requirements import in_order
from benchmarks.effect_tables import PACKAGE, version_of

CODE = "AL101"


class CheckFailed(Exception):
    """`aliaslint check` did not give a report."""


def checked(root: Path) -> dict[str, Any]:
    """Return the report of `aliaslint check` on a package's folder. Raises CheckFailed."""
    command = [sys.executable, "-m", "aliaslint.cli.main", "check", str(root), "--no-cache"]
    options = ["--select", CODE, "--output-format", "json", "--exit-zero"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    try:
        report: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise CheckFailed(f"{root}: status {done.returncode}: {done.stderr.strip()}") from None
    return report


def captures(report: Mapping[str, Any], root: Path) -> list[dict[str, Any]]:
    """Return the stale captures of a report, with paths relative to the package's folder."""
    found = []
    for finding in report["findings"]:
        path = Path(finding["path"]).absolute()
        if finding["code"] != CODE:
            continue
        reads = [step["line"] for step in finding["trace"] if step["role"] == "read"]
        found.append(
            {
                "path": path.relative_to(root.absolute()).as_posix(),
                "line": finding["line"],
                "code": finding["code"],
                "read": reads[0] if reads else finding["line"],
            }
        )
    return sorted(found, key=lambda capture: (capture["path"], capture["line"]))


def merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table with the entries of `new` added, lowest release first."""
    releases = {**old["releases"], **new}
    return {"tool": __version__, "releases": {v: releases[v] for v in in_order(releases)}}


def text_of(table: Mapping[str, Any]) -> str:
    """Return the table as JSON with a line for each capture, so that changes can be reviewed."""
    rows = []
    for version, entry in table["releases"].items():
        head = f' {json.dumps(version)}: {{"digest": {json.dumps(entry["digest"])}, "captures": ['
        lines = ",\n".join(f"  {json.dumps(capture)}" for capture in entry["captures"])
        rows.append(head + (f"\n{lines}\n " if lines else "") + "]}")
    tool = json.dumps(table["tool"])
    return f'{{\n"tool": {tool},\n"releases": {{\n' + ",\n".join(rows) + "\n}\n}\n"


def main(arguments: Sequence[str]) -> int:
    """Check the given releases; print their captures, and store them if wanted."""
    folders = [Path(a) for a in arguments if a != "--write"]
    if not folders:
        print(__doc__)
        return 2
    for folder in folders:
        root = folder / PACKAGE
        found = captures(checked(root), root)
        version = version_of(folder)
        print(f"{PACKAGE} {version}: {len(found)} stale captures")
        for capture in found:
            print(f"  {capture['path']}:{capture['line']}: {capture['code']}")
        if "--write" in arguments:
            stale_captures.table.cache_clear()
            entry = {"digest": stale_captures.digest(root), "captures": found}
            table = merged(stale_captures.table(PACKAGE), {version: entry})
            place = Path(stale_captures.__file__).parent / f"{PACKAGE}.json"
            place.write_text(text_of(table), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
