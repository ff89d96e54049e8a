"""Unified diffs that `patch` and `git apply` take, whatever the line ends."""

from __future__ import annotations

import difflib
import re

_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$")


def unified(before: str, after: str, name: str, context: int = 3) -> str:
    """Return a unified diff of two texts, with the note on a missing final newline."""
    old, new = _LINES.findall(before), _LINES.findall(after)
    lines = difflib.unified_diff(old, new, f"a/{name}", f"b/{name}", n=context)
    return "".join(map(_terminated, lines))


def _terminated(line: str) -> str:
    if line.endswith(("\n", "\r")):
        return line
    return f"{line}\n\\ No newline at end of file\n"
