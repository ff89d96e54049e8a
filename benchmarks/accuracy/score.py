"""Score check against the labelled list of real packages: `python -m benchmarks.accuracy.score`.

labels.csv holds one line a finding (package, version, path, line, code, label, evidence, why):
`right` is a real fault that must be reported, `wrong` is a place where a report would be a
false alarm. `evidence` says how the label was set: `run` (the code was executed, in place
against value semantics) or `read`. The labels are about the code, never about the tool.

A label counts only if its rule ran. The table gives, for each package: reports labelled right,
wrong and not labelled yet, and the right ones that are missing. Precision is right / (right +
wrong), recall right / (right + missing).
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aliaslint import rules
from benchmarks.accuracy.packages import Package, fetch, read_packages
from benchmarks.accuracy.tool import Report, run_check

LABELS = Path(__file__).with_name("labels.csv")

Place = tuple[str, int, str]


@dataclass(frozen=True, slots=True)
class Label:
    """One labelled place of one release; `path` is relative to the unpacked release."""

    path: str
    line: int
    code: str
    right: bool
    evidence: str
    why: str

    @property
    def place(self) -> Place:
        return (self.path, self.line, self.code)


@dataclass(frozen=True, slots=True)
class Score:
    """The reports of one release against its labels, each list as printable lines."""

    package: Package
    right: tuple[Label, ...]
    wrong: tuple[Label, ...]
    missing: tuple[Label, ...]
    unlabelled: tuple[Report, ...]
    errors: tuple[str, ...]


def read_labels(package: Package, path: Path = LABELS) -> list[Label]:
    """Return the labels of one release. Raises ValueError on an unknown label or evidence."""
    labels = []
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["label"] not in ("right", "wrong") or row["evidence"] not in ("run", "read"):
                raise ValueError(f"{path}: unknown label in {row}")
            if (row["package"], row["version"]) == (package.name, package.version):
                right = row["label"] == "right"
                place = (row["path"], int(row["line"]), row["code"])
                labels.append(Label(*place, right, row["evidence"], row["why"]))
    return labels


def lay_out(package: Package, root: Path, target: Path) -> Path:
    """Copy the package below `target`, with its dependency in a `.venv` beside it."""
    ignore = shutil.ignore_patterns("__pycache__", "*.safetensors", "*.metallib")
    source = fetch(package, root) / package.import_name
    shutil.copytree(source, target / package.import_name, ignore=ignore)
    if package.dependency:
        name, version = package.dependency.split("==")
        known = next(p for p in read_packages() if (p.name, p.version) == (name, version))
        site = target / ".venv/lib/python3.11/site-packages"
        installed = fetch(known, root)
        shutil.copytree(installed / known.import_name, site / known.import_name, ignore=ignore)
        (target / ".venv/pyvenv.cfg").write_text("version = 3.11.0\n", "utf-8")
        info = site / f"{known.folder}.dist-info"
        info.mkdir()
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (info / "METADATA").write_text(metadata, "utf-8")
    return target


def score(package: Package, root: Path, options: Sequence[str]) -> Score:
    """Check one release and compare the reports with the labels."""
    with tempfile.TemporaryDirectory(prefix="aliaslint-score-") as folder:
        run = run_check(lay_out(package, root, Path(folder)), *options)
    ran = {rule.code for rule in rules.rules() if rule.default} | set(options[1:])
    labels = {label.place: label for label in read_labels(package) if label.code in ran}
    reports = {(r.path, r.line, r.code): r for r in run.reports}
    seen = [labels[place] for place in reports if place in labels]
    return Score(
        package,
        tuple(label for label in seen if label.right),
        tuple(label for label in seen if not label.right),
        tuple(lab for place, lab in labels.items() if lab.right and place not in reports),
        tuple(report for place, report in reports.items() if place not in labels),
        run.errors,
    )


def share(part: int, rest: int) -> str:
    return f"{part / (part + rest):.3f}" if part + rest else "none to judge"


def table(scores: Sequence[Score]) -> str:
    """Return the counts a package, the totals, and every place that is not as it should be."""
    lines = [f"{'package':26}{'right':>7}{'wrong':>7}{'missing':>9}{'unlabelled':>12}"]
    for s in scores:
        name = f"{s.package.name} {s.package.version}"
        counts = (len(s.right), len(s.wrong), len(s.missing), len(s.unlabelled))
        lines.append("{:26}{:>7}{:>7}{:>9}{:>12}".format(name, *counts))
    right, wrong, missing = (
        sum(len(getattr(s, what)) for s in scores) for what in ("right", "wrong", "missing")
    )
    lines.append(f"precision {share(right, wrong)}, recall {share(right, missing)}")
    for s in scores:
        lines += [f"wrong: {s.package.name} {x.path}:{x.line}: {x.code} ({x.why})" for x in s.wrong]
        lines += [
            f"missing: {s.package.name} {x.path}:{x.line}: {x.code} ({x.why})" for x in s.missing
        ]
        lines += [f"not labelled: {s.package.name} {x}" for x in s.unlabelled]
        lines += [f"error: {s.package.name} {x}" for x in s.errors]
    return "\n".join(lines)


def as_json(s: Score) -> dict[str, object]:
    return {
        "package": s.package.name,
        "version": s.package.version,
        **{
            what: [str(label.place) for label in getattr(s, what)]
            for what in ("right", "wrong", "missing")
        },
        "unlabelled": [str(report) for report in s.unlabelled],
        "errors": list(s.errors),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy.score")
    parser.add_argument("root", type=Path, help="folder of the unpacked releases, filled if empty")
    parser.add_argument("--package", action="append", help="only these packages")
    parser.add_argument("--extend-select", default="", help="further rules, such as AL102")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    packages = [p for p in read_packages() if not options.package or p.name in options.package]
    extra = ("--extend-select", options.extend_select) if options.extend_select else ()
    scores = [score(package, options.root, extra) for package in packages]
    print(json.dumps(list(map(as_json, scores)), indent=2) if options.json else table(scores))
    return int(any(s.wrong or s.missing or s.unlabelled for s in scores))


if __name__ == "__main__":
    sys.exit(main())
