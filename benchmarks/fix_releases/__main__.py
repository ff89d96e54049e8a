"""The command: see the package."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import benchmarks.fix_releases as this
from benchmarks.accuracy.packages import Package, read_packages
from benchmarks.accuracy.score import lay_out

FIX = "from aliaslint.cli.main import main; main()"
FORMAT_SECONDS = 120.0
BEHAVIOUR = Path(__file__).with_name("behaviour.py")
VERSIONS = (
    "0.27.0 0.27.1 0.28.0 0.28.1 0.28.2 0.28.3 0.28.4 0.29.1 0.30.0 0.30.2 0.30.4 0.30.5 0.30.6 "
    "0.30.7 0.31.0 0.31.1 0.31.2 0.31.3 0.32.0 0.32.1 0.32.2"
).split()
# A fork, a vendored copy, servers, and packages with caches of their own.
OTHERS = (
    "flyto-mlx",
    "mlx-audio",
    "mlx-optiq",
    "mlx-beam",
    "vllm-mlx",
    "mlx-lm-lora",
    "dflash-mlx",
)


@dataclass(frozen=True, slots=True)
class Row:
    """What came of one release; `wrong` says what it does not pass for."""

    release: str
    fixed: int = 0
    files: int = 0
    left: int = 0
    safe_left: int = 0
    imports: str = ""
    caches: str = ""
    alone: str = ""
    batch: str = ""
    wrong: tuple[str, ...] = ()


def packages(only: Sequence[str]) -> list[Package]:
    """Return the releases to try, or those of them and of all labelled packages in `only`.

    `only` names packages, with or without a version.
    """
    found = [Package("mlx-lm", version, "mlx_lm", "") for version in VERSIONS]
    others = [package for package in read_packages() if package.name != "mlx-lm"]
    if not only:
        return found + [package for package in others if package.name in OTHERS]
    return [p for p in found + others if p.name in only or f"{p.name}=={p.version}" in only]


def tried(package: Package, root: Path, seconds: float) -> Row:
    """Fix one release in a temporary folder, and compare the two trees."""
    release = f"{package.name} {package.version}"
    with tempfile.TemporaryDirectory(prefix="aliaslint-fix-") as folder:
        plain, fixed = Path(folder, "plain"), Path(folder, "fixed")
        lay_out(package, root, plain)
        shutil.copytree(plain, fixed)
        try:
            done = aliaslint(["fix", "."], fixed, seconds)
            left = aliaslint(["check", "."], fixed, seconds)["findings"]
        except (ToolFailed, subprocess.TimeoutExpired) as error:
            return Row(release, wrong=(str(error).splitlines()[0],))
        changed = [change["path"] for change in done["changes"]]
        before = behaviour(plain, package.import_name, changed, seconds)
        after = behaviour(fixed, package.import_name, changed, seconds)
        worse = unformatted(fixed, changed) - unformatted(plain, changed)
    counts = done["summary"]
    row = Row(release, counts["fixed"], counts["files_changed"], len(left), safe(left))
    row = judged(row, before, after)
    return dataclasses.replace(row, wrong=(*row.wrong, *sorted(worse)))


class ToolFailed(Exception):
    """The command ended without a report."""


def aliaslint(arguments: Sequence[str], folder: Path, seconds: float) -> dict[str, Any]:
    """Run a command in a folder; return its report. Raises ToolFailed, TimeoutExpired."""
    command = [sys.executable, "-c", FIX, *arguments, "--output-format", "json", "--no-cache"]
    done = run(command, folder, seconds)
    if done.returncode not in (0, 1):
        raise ToolFailed(f"{' '.join(arguments)}: status {done.returncode}: {done.stderr[-300:]}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def behaviour(root: Path, package: str, changed: Sequence[str], seconds: float) -> dict[str, Any]:
    """Run one tree in a process of its own; see behaviour.py."""
    modules = [".".join(Path(path).with_suffix("").parts) for path in changed]
    modules = [name.removesuffix(".__init__") for name in modules]
    done = run([sys.executable, str(BEHAVIOUR), str(root), package, *modules], root, seconds)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"status {done.returncode}"]
        return {"imports": {package: f"ERROR: {last[0]}"}, "caches": {}}
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report


def unformatted(root: Path, changed: Sequence[str]) -> set[str]:
    """Return which formatter would change which file."""
    tools = (["black", "--check", "--quiet"], ["ruff", "format", "--isolated", "--check"])
    return {
        f"{path}: {tool[0]} would format it"
        for path in changed
        for tool in tools
        if run([sys.executable, "-m", *tool, path], root, FORMAT_SECONDS).returncode
    }


def run(command: Sequence[str], folder: Path, seconds: float) -> subprocess.CompletedProcess[str]:
    """Run a child that finds the modules of this process, but no environment of the user's."""
    kept = {key: value for key, value in os.environ.items() if key != "VIRTUAL_ENV"}
    paths = os.pathsep.join(str(Path(entry).resolve()) for entry in sys.path)
    return subprocess.run(
        command,
        cwd=folder,
        env={**kept, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def safe(findings: Sequence[Mapping[str, Any]]) -> int:
    return sum(finding["fixable"] == "safe" for finding in findings)


def judged(row: Row, before: Mapping[str, Any], after: Mapping[str, Any]) -> Row:
    """Return the row with what the two trees did."""
    wrong = [f"{row.safe_left} safe fixes left"] if row.safe_left else []
    wrong += [
        f"{name} cannot be imported any more: {after['imports'][name]}"
        for name, was in before["imports"].items()
        if was == "ok" and after["imports"][name] != "ok"
    ]
    if before["caches"] != after["caches"]:
        wrong.append("the caches give back something else")
    old, new = before.get("models", {}), after.get("models", {})
    wrong += [f"{name} was not tried: {was}" for name, was in old.items() if isinstance(was, str)]
    alone = {name: same(old[name], new[name], "alone") for name in old}
    wrong += [f"{name} generates something else" for name, equal in alone.items() if not equal]
    batch = {name: batches(old[name], new[name]) for name in old}
    wrong += [f"{name}: batch {became}" for name, became in batch.items() if became.endswith("!")]
    return dataclasses.replace(
        row,
        imports=imported(before["imports"]),
        caches=ran(before["caches"]),
        alone=ran({name: old[name] for name in old if isinstance(old[name], str)} or old),
        batch=", ".join(f"{name} {became}" for name, became in batch.items() if became) or "-",
        wrong=tuple(wrong),
    )


def same(old: Any, new: Any, key: str) -> bool:
    if isinstance(old, str) or isinstance(new, str):
        return bool(old == new)
    return bool(old[key] == new[key])


def batches(old: Any, new: Any) -> str:
    """Return how a batch compares with its prompts one by one, before and after the fix.

    "=" and "≠" are equal and different; "!" marks a change that no cure explains.
    """
    if isinstance(old, str) or isinstance(new, str) or old["batch"] is None:
        return ""
    if isinstance(old["batch"], str):
        return "unsupported" if old["batch"] == new["batch"] else "unsupported!"
    signs = ["=" if tree["batch"] == tree["alone"] else "≠" for tree in (old, new)]
    if old["batch"] == new["batch"]:
        return signs[0]
    return "→".join(signs) + ("" if signs == ["≠", "="] else "!")


def imported(imports: Mapping[str, str]) -> str:
    """Return how many modules could be imported, and the first reason why one could not."""
    failed = [text.removeprefix("ERROR: ") for text in imports.values() if text != "ok"]
    count = f"{len(imports) - len(failed)} of {len(imports)}"
    return f"{count} ({failed[0]})" if failed else count


def ran(results: Any) -> str:
    """Return the names of what ran, or the first reason why it did not."""
    if isinstance(results, str):
        return results.removeprefix("ERROR: ")
    failed = [text for text in results.values() if isinstance(text, str)]
    return failed[0].removeprefix("ERROR: ") if failed else ", ".join(results) or "-"


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a table in Markdown, and below it what is wrong."""
    lines = [
        "| release | fixed | left | safe left | imports | caches as before | models as before "
        "| batch against one by one |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        fixed = f"{row.fixed} in {row.files} files"
        cells = (row.release, fixed, row.left, row.safe_left, row.imports)
        lines.append("| " + " | ".join(map(str, (*cells, row.caches, row.alone, row.batch))) + " |")
    lines += [f"{row.release}: {reason}" for row in rows for reason in row.wrong]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fix_releases",
        description=this.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("root", type=Path, help="folder of the unpacked releases, filled if empty")
    parser.add_argument("--only", action="append", default=[], help="NAME or NAME==VERSION")
    parser.add_argument("--timeout", type=float, default=1800.0, help="seconds for one command")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    rows = []
    for package in packages(options.only):
        rows.append(tried(package, options.root, options.timeout))
        print(f"{rows[-1].release}: {'; '.join(rows[-1].wrong) or 'passes'}", file=sys.stderr)
    asked = [dataclasses.asdict(row) for row in rows]
    print(json.dumps(asked, indent=2) if options.json else table(rows))
    return int(any(row.wrong for row in rows))


if __name__ == "__main__":
    sys.exit(main())
