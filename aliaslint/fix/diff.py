"""Unified diffs that `patch` and `git apply` take, whatever the line ends."""

from __future__ import annotations

import difflib
import re

_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$")


def unified(before: str, after: str, name: str, context: int = 3) -> str:
    """Return a unified diff of two texts, with the note on a missing final newline."""
    old, new = _LINES.findall(before), _LINES.findall(after)
    tab = "\t" if " " in name else ""  # Without it, patch takes a name up to its first space.
    lines = difflib.unified_diff(old, new, f"a/{name}{tab}", f"b/{name}{tab}", n=context)
    return "".join(map(_terminated, lines))


def patch(before: bytes, after: bytes, name: str) -> bytes:
    """Return the diff in the bytes of the files: they may have another encoding, or a mark."""
    plain = name.encode("utf-8", "surrogateescape").decode("latin-1")
    return unified(before.decode("latin-1"), after.decode("latin-1"), plain).encode("latin-1")


def _terminated(line: str) -> str:
    if line.endswith(("\n", "\r")):
        return line
    return f"{line}\n\\ No newline at end of file\n"
