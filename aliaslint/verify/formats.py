"""A report in each output format, as text."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable

from aliaslint.verify.html import as_html
from aliaslint.verify.junit import as_junit
from aliaslint.verify.model import VerifyReport


def render(report: VerifyReport, output_format: str, *, strict: bool = False) -> str:
    """The report as "text", "json", "junit" or "html"; raises KeyError for any other format.

    `strict` is that of the exit status: what fails then is a failure in JUnit's terms.
    """
    if output_format == "junit":
        return as_junit(report, strict=strict)
    return _FORMATS[output_format](report)


def as_json(report: VerifyReport) -> str:
    """Strict JSON: an infinite difference is written as the largest float."""
    data = finite(report.to_json())
    return json.dumps(data, indent=2, allow_nan=False) + "\n"


def as_text(report: VerifyReport) -> str:
    from aliaslint.verify.report_text import render as render_text

    stream = io.StringIO()
    render_text(report, stream)
    return stream.getvalue()


def finite(value: object) -> object:
    """`value` with the largest float for every infinite one, and lists for tuples."""
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return sys.float_info.max
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value


_FORMATS: dict[str, Callable[[VerifyReport], str]] = {
    "text": as_text,
    "json": as_json,
    "html": as_html,
}
