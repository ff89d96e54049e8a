"""Chooses the format. Each format is loaded only when it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from aliaslint.report import Report

FORMATS = ("text", "concise", "json", "sarif", "github", "gitlab", "junit")


@dataclass(frozen=True, slots=True)
class Style:
    """How text is shown. Other formats ignore it: they always hold everything."""

    color: bool = False
    trace: bool = False
    statistics: bool = False


def render(report: Report, name: str, style: Style) -> str:
    """Return `report` in the format `name`, one of FORMATS, with a final newline if not empty."""
    module = import_module(f"aliaslint.report.{name}")
    text: str = module.render(report, style)
    return text if not text or text.endswith("\n") else text + "\n"
