"""Says where a copied capture could be cured at its source instead."""

from __future__ import annotations

import ast
import os
from collections.abc import Mapping
from pathlib import Path

from aliaslint.findings import Finding
from aliaslint.fix.plan import statement_at
from aliaslint.source.files import SourceFile, read

_COPIES = frozenset({"snapshot", "copy-in-callee", "copy-after"})
_INSTALLED = frozenset({"site-packages", "dist-packages"})


def at_the_source(finding: Finding, given: Mapping[Path, SourceFile]) -> str:
    """Return what else would cure a finding that a copy cured, "" if there is nothing.

    An update in a file that was not given, and is no installed package's, can be rebound there.
    """
    if finding.repair is None or finding.repair.action not in _COPIES:
        return ""
    for step in finding.trace:
        if step.role != "mutation" or step.path in given or _INSTALLED & set(step.path.parts):
            continue
        source = read(step.path)
        if isinstance(source, SourceFile) and _can_be_rebound(statement_at(source, step.span)):
            return f"could be cured at its source: run fix on {_shown(step.path)}"
    return ""


def _can_be_rebound(statement: ast.stmt | None) -> bool:
    return isinstance(statement, ast.AugAssign) and not isinstance(statement.op, ast.Div)


def _shown(path: Path) -> str:
    """Return a path relative to the working directory where it lies below it."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith(os.pardir) else relative
