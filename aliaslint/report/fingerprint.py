"""What stays the same about a finding while the lines around it move."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from aliaslint.findings import Finding
from aliaslint.report import Lines

_SCOPE = re.compile(r"(\s*)(?:async\s+)?(?:def|class)\s+(\w+)")


def context(finding: Finding, lines: Lines) -> str:
    """Return a hash over the finding's own lines and the names of what encloses them.

    Line numbers, indentation and everything elsewhere in the file are left out.
    """
    text = lines.of(finding.path)
    own = [line.strip() for line in text[finding.span.line - 1 : finding.span.end_line]]
    parts = [*_scopes(text, finding.span.line), *own]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def numbered(findings: Iterable[Finding], lines: Lines) -> Iterator[tuple[Finding, str]]:
    """Yield each finding with a fingerprint that is unique in the report.

    Findings that are alike in path, code and context are told apart by their order.
    """
    seen: Counter[tuple[Path, str, str]] = Counter()
    for finding in findings:
        key = (finding.path, finding.code, context(finding, lines))
        seen[key] += 1
        yield finding, f"{finding.code}:{key[2]}:{seen[key]}"


def _scopes(text: list[str], line: int) -> list[str]:
    """Return the names of the functions and classes around a line, innermost first."""
    names: list[str] = []
    current = text[line - 1] if 0 < line <= len(text) else ""
    indent = len(current) - len(current.lstrip())
    for above in reversed(text[: line - 1]):
        match = _SCOPE.match(above)
        if match and len(match[1]) < indent:
            indent = len(match[1])
            names.append(match[2])
    return names
