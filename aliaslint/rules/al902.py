"""AL902: a ruff configuration that selects the rule which undoes rebinding."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from aliaslint.findings import Finding, Span
from aliaslint.rules import Project, Rule
from aliaslint.source.config import ConfigError, load_toml
from aliaslint.source.files import position

RULE = Rule(
    code="AL902",
    name="fix-reverting-rule",
    summary="ruff configuration selects PLR6104, which undoes rebinding",
    message=(
        "`{selector}` selects ruff's PLR6104, which turns `x = x + n` back into `x += n` and so "
        'brings stale captures back; add `ignore = ["PLR6104"]`'
    ),
    severity="warning",
    default=True,
    what="""\
Finds a ruff configuration of the project (pyproject.toml, ruff.toml, .ruff.toml) that selects
PLR6104 (`non-augmented-assignment`), by its code or by a prefix with preview rules on, and does
not ignore it.""",
    why="""\
The rule prefers `x += n` to `x = x + n`. On an `mx.array` the two differ: the first changes the
array for everyone who holds it. Its fix rewrites the cure of AL001 into the bug.""",
    example="""\
[tool.ruff.lint]
preview = true
select = ["PL"]""",
    instead="""\
[tool.ruff.lint]
preview = true
select = ["PL"]
ignore = ["PLR6104"]""",
    language="toml",
)

_CODE = "PLR6104"
_SELECTORS = ("ALL", "PL", "PLR", "PLR6", "PLR61", "PLR610", _CODE)


def find_project(project: Project) -> Iterator[Finding]:
    """Yield where the ruff configuration of each project root selects PLR6104."""
    for root in project.roots:
        for name in (".ruff.toml", "ruff.toml", "pyproject.toml"):
            found = _in_file(root / name)
            if found is not None:
                yield from found
                break  # ruff reads the first of these files that has a configuration.


def _in_file(path: Path) -> list[Finding] | None:
    """Return the findings in one file, None if it holds no ruff configuration."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    if b"ruff" not in data and path.name == "pyproject.toml":
        return None
    try:
        table: Mapping[str, Any] = load_toml(path, data)
    except ConfigError:
        return []  # ruff itself will say so.
    if path.name == "pyproject.toml":
        table = _table(_table(table, "tool"), "ruff")
        if not table:
            return None
    return _in_table(path, data, table)


def _in_table(path: Path, data: bytes, table: Mapping[str, Any]) -> list[Finding]:
    lint = _table(table, "lint")
    selected = _longest(table, lint, "select", "extend-select")
    ignored = _longest(table, lint, "ignore", "extend-ignore")
    preview = lint.get("preview", table.get("preview", False)) is True
    explicit = lint.get("explicit-preview-rules", False) is True
    by_prefix = preview and not explicit
    if _rank(ignored) >= _rank(selected) or not (selected == _CODE or by_prefix):
        return []
    line, column = _place(data, selected)
    span = Span(line, column, line, column + len(selected) + 2)
    return [RULE.finding(path, span, selector=selected)]


def _table(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = table.get(key, {})
    return value if isinstance(value, dict) else {}


def _longest(outer: Mapping[str, Any], lint: Mapping[str, Any], *keys: str) -> str:
    """Return the most specific selector of PLR6104 under these keys, empty if there is none."""
    values = [table.get(key) for table in (outer, lint) for key in keys]
    given = {item for value in values if isinstance(value, list) for item in value}
    return max(filter(given.__contains__, _SELECTORS), key=_rank, default="")


def _rank(selector: str) -> int:
    """ALL is the least specific selector; none at all is less still."""
    return 1 if selector == "ALL" else len(selector)


def _place(data: bytes, selector: str) -> tuple[int, int]:
    """Return line and column of the quoted selector after a `select` key."""
    text = data.decode("utf-8", "replace")
    quoted = rf"""["']{selector}["']"""
    match = re.search(rf"select[\"']?\s*=\s*\[[^\]]*?({quoted})", text)
    return position(text, match.start(1)) if match else (1, 1)
