"""Makes one report of the reports of several shards."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from aliaslint.errors import UserError
from aliaslint.verify.model import VerifyReport, report_from_json


def load_report(path: Path) -> VerifyReport:
    """The report in a JSON file; raises UserError where there is none."""
    try:
        return report_from_json(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UserError(f"{path}: is no report of verify") from None


def merge_reports(reports: Sequence[VerifyReport]) -> VerifyReport:
    """All architectures of all shards in order; raises UserError where they do not belong together.

    The largest tolerance of the shards is given; each scenario keeps the one that judged it.
    """
    if not reports:
        raise UserError("--merge needs the JSON reports of the shards")
    first = reports[0]
    _complete(reports)
    for name in ("version", "device", "dtype", "mlx"):
        values = sorted({str(getattr(report, name)) for report in reports})
        if len(values) > 1:
            raise UserError(f"the reports differ in {name}: {', '.join(values)}")
    found = {}
    for report in reports:
        for result in report.architectures:
            key = (result.architecture, result.variant)
            if key in found:
                raise UserError(f"{result.title} is in more than one of the reports")
            found[key] = result
    relative = max(report.tolerance.get("relative", 0.0) for report in reports)
    caches = {(c.path, c.name): c for report in reports for c in report.caches}
    return replace(
        first,
        architectures=tuple(found[key] for key in sorted(found)),
        caches=tuple(caches[key] for key in sorted(caches)),
        errors=tuple(dict.fromkeys(line for report in reports for line in report.errors)),
        edited_files=tuple(sorted({path for r in reports for path in r.edited_files})),
        tolerance={"relative": relative},
        shard=(1, 1),
        nothing_changed=all(report.nothing_changed for report in reports),
    )


def _complete(reports: Sequence[VerifyReport]) -> None:
    """Raise UserError where a part of the run is missing: green must not mean "not there"."""
    numbers = {of for _, of in (report.shard for report in reports)}
    if len(numbers) > 1:
        every = ", ".join(f"{which}/{of}" for which, of in sorted(r.shard for r in reports))
        raise UserError(f"the reports are shards of different runs: {every}")
    (of,) = numbers
    there = {report.shard[0] for report in reports}
    missing = [f"{which}/{of}" for which in range(1, of + 1) if which not in there]
    if missing:
        raise UserError(f"shard {', '.join(missing)} is missing")
