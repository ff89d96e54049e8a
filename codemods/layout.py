"""Breaks a rewritten line that grew too long, the way black would."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst


@dataclass(frozen=True, slots=True)
class Page:
    """Where a statement stands: its module, its indentation, and how long a line may be."""

    module: cst.Module
    indent: str
    length: int

    def fit(self, before: cst.CSTNode, line: cst.SimpleStatementLine) -> cst.SimpleStatementLine:
        return line
