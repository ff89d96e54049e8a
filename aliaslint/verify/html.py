"""The report as one self-contained page: a heat map of architecture by step, with filters."""

from __future__ import annotations

import json
from pathlib import Path

from aliaslint.verify.model import MEANINGS, VerifyReport

TEMPLATE = Path(__file__).with_name("report.html")


def as_html(report: VerifyReport) -> str:
    """The page; it loads nothing from anywhere, and no text of the report can leave its script."""
    from aliaslint.verify.formats import finite
    from aliaslint.verify.report_text import headline

    data = {"report": report.to_json(), "meanings": MEANINGS, "headline": headline(report)}
    text = json.dumps(finite(data), allow_nan=False, separators=(",", ":"))
    return TEMPLATE.read_text(encoding="utf-8").replace("@DATA@", text.replace("<", "\\u003c"))
