"""Makes the table of releases of mlx_lm that read stale captures of their own.

    python -m benchmarks.stale_captures [--write] [--into FOLDER] all|VERSION|FIRST..LAST|DIR...

A VERSION (`0.31.3`), and each release between two (`0.27.0..0.32.2`), is downloaded with pip and
unpacked below FOLDER, a temporary one unless given; what lies there already is used again. `all`
stands for every release that has caches for batches. A DIR is an unpacked wheel: `mlx_lm/` beside
`mlx_lm-VERSION.dist-info/`. Runs `aliaslint check` on each, with the caches of the release
itself, and prints what AL101 finds. With --write each release is added to
`aliaslint/program/stale_captures/mlx_lm.json` as soon as it is checked; others stay.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from aliaslint import __version__
from aliaslint.program import effect_tables, stale_captures
from aliaslint.program.declared import in_order
from benchmarks.accuracy.packages import Package, fetch
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


def wanted(words: Iterable[str]) -> Iterator[str]:
    """Yield the versions and folders that the words stand for. Raises InvalidVersion."""
    known = effect_tables.releases(PACKAGE)
    for word in words:
        first, dots, last = word.partition("..")
        if word == "all":
            yield from (v for v in known if effect_tables.batched(PACKAGE, v))
        elif dots and first and last and not Path(word).exists():
            low, high = Version(first), Version(last)
            yield from (v for v in known if low <= Version(v) <= high)
        elif Path(word).is_dir():
            yield word
        else:
            yield str(Version(word))


def folder_of(word: str, into: Path) -> Path:
    """Return the folder of an unpacked release; a version is downloaded below `into`."""
    if Path(word).is_dir():
        return Path(word)
    return fetch(Package(PACKAGE.replace("_", "-"), word, PACKAGE, ""), into)


def add(root: Path, version: str, found: Sequence[Mapping[str, Any]]) -> None:
    """Put a release into the table that is shipped."""
    stale_captures.table.cache_clear()
    entry = {"digest": stale_captures.digest(root), "captures": found}
    table = merged(stale_captures.table(PACKAGE), {version: entry})
    place = Path(stale_captures.__file__).parent / f"{PACKAGE}.json"
    place.write_text(text_of(table), encoding="utf-8")


def run(words: Sequence[str], into: Path, write: bool) -> None:
    """Check the wanted releases one by one; print their captures, and store them if wanted."""
    for word in words:
        folder = folder_of(word, into)
        root, version = folder / PACKAGE, version_of(folder)
        found = captures(checked(root), root)
        print(f"{PACKAGE} {version}: {len(found)} stale captures", flush=True)
        for capture in found:
            print(f"  {capture['path']}:{capture['line']}: {capture['code']}", flush=True)
        if write:
            add(root, version, found)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stale_captures")
    parser.add_argument("--write", action="store_true", help="add the releases to the table")
    parser.add_argument("--into", type=Path, metavar="FOLDER", help="where to unpack releases")
    parser.add_argument("words", nargs="+", metavar="all|VERSION|FIRST..LAST|DIR")
    given = parser.parse_args(arguments)
    try:
        words = list(wanted(given.words))
    except InvalidVersion as error:
        parser.error(f"neither a folder nor a version: {error}")
    if given.into is not None:
        run(words, given.into, given.write)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        run(words, Path(folder), given.write)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
