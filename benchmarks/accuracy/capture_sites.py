"""Score check against the labelled captures of mlx-lm 0.31.3.

`python -m benchmarks.accuracy.capture_sites PATH`, where PATH is the unpacked release: the
folder that holds `mlx_lm`, or `mlx_lm` itself. The labels in capture_sites.csv were set by
reading the models, independently of this tool: `safe` sites read no changed handle and must
not be reported, `stale` ones do and must be. Only the rules that judge captures and shared
handles count (the producers' AL001 to AL003 are another matter).
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.accuracy.tool import Run, run_check

LABELS = Path(__file__).with_name("capture_sites.csv")
CAPTURE_RULES = ("AL004", "AL101", "AL102", "AL201", "AL202")


@dataclass(frozen=True, slots=True)
class Site:
    """One labelled read or capture of a cache attribute in a model file of the release."""

    file: str
    line: int
    function: str
    receiver: str
    stale: bool
    reason: str

    def __str__(self) -> str:
        return f"models/{self.file}:{self.line} {self.function}: {self.receiver} ({self.reason})"


@dataclass(frozen=True, slots=True)
class Score:
    """How the reports meet the labels. `unlabelled` are reports in model files at other lines."""

    stale: int
    safe: int
    missed: tuple[Site, ...]
    wrong: tuple[Site, ...]
    unlabelled: tuple[str, ...]

    @property
    def perfect(self) -> bool:
        return not (self.missed or self.wrong)


def read_sites(path: Path = LABELS) -> list[Site]:
    """Return the labelled sites. Raises ValueError on a label that is neither safe nor stale."""
    sites = []
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["label"] not in ("safe", "stale"):
                raise ValueError(f"{path}: unknown label {row['label']!r}")
            stale = row["label"] == "stale"
            place = (row["file"], int(row["line"]), row["function"], row["receiver"])
            sites.append(Site(*place, stale, row["reason"]))
    return sites


def package_folder(path: Path) -> Path:
    """Return the `mlx_lm` folder at or below `path`. Raises FileNotFoundError if there is none."""
    for folder in (path, path / "mlx_lm"):
        if (folder / "models" / "cache.py").is_file():
            return folder
    raise FileNotFoundError(f"{path} holds no mlx_lm/models/cache.py")


def reported_lines(run: Run, package: str) -> set[tuple[str, int]]:
    """Return (file, line) of each capture report in the model files."""
    prefix = f"{package}/models/"
    return {
        (report.path.removeprefix(prefix), report.line)
        for report in run.reports
        if report.code in CAPTURE_RULES and report.path.startswith(prefix)
    }


def score(sites: Iterable[Site], reported: set[tuple[str, int]]) -> Score:
    """Compare labels with reports, both by file and line."""
    sites = list(sites)
    stale = [site for site in sites if site.stale]
    safe = [site for site in sites if not site.stale]
    known = {(site.file, site.line) for site in sites}
    return Score(
        len(stale),
        len(safe),
        tuple(site for site in stale if (site.file, site.line) not in reported),
        tuple(site for site in safe if (site.file, site.line) in reported),
        tuple(sorted(f"models/{file}:{line}" for file, line in reported - known)),
    )


def text(result: Score) -> str:
    lines = [
        f"stale captures reported: {result.stale - len(result.missed)} of {result.stale}",
        f"safe captures silent:    {result.safe - len(result.wrong)} of {result.safe}",
        *(f"missed: {site}" for site in result.missed),
        *(f"wrong:  {site}" for site in result.wrong),
        *(f"not labelled, reported: {place}" for place in result.unlabelled),
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy.capture_sites")
    parser.add_argument("path", type=Path, help="the unpacked release mlx-lm 0.31.3")
    parser.add_argument("--all-rules", action="store_true", help="count AL102 as a report too")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    try:
        package = package_folder(options.path)
    except FileNotFoundError as error:
        parser.error(str(error))
    extra = ("--extend-select", "AL102") if options.all_rules else ()
    run = run_check(package.parent, *extra)
    result = score(read_sites(), reported_lines(run, package.name))
    if options.json:
        print(json.dumps({"stale": result.stale, "safe": result.safe} | _details(result), indent=2))
    else:
        print(text(result))
    return 0 if result.perfect else 1


def _details(result: Score) -> dict[str, list[str]]:
    return {
        "missed": list(map(str, result.missed)),
        "wrong": list(map(str, result.wrong)),
        "unlabelled": list(result.unlabelled),
    }


if __name__ == "__main__":
    sys.exit(main())
