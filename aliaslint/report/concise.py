"""One line a finding."""

from __future__ import annotations

from aliaslint.report import Report
from aliaslint.report.render import Style
from aliaslint.report.summary import summary
from aliaslint.report.text import Painter, error, heading


def render(report: Report, style: Style) -> str:
    paint = Painter(style.color)
    found = [heading(finding, paint) for finding in report.findings]
    failed = [error(problem, paint) for problem in report.errors]
    return "\n".join([*found, *failed, summary(report, style.statistics)])
