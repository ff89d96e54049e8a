"""Takes suppression comments, or single codes in one, out of a text."""

from __future__ import annotations

import re
from collections.abc import Iterable

from aliaslint.findings import Span

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_NEXT_IN_BRACKETS = re.compile(r"[\s,]+(?=\w)")
_NEXT_CODE = re.compile(r"(?:\s*,\s*|\s+)(?=[A-Z]+[0-9]+\b)")


def remove(text: str, spans: Iterable[Span]) -> str:
    """Return the text without what stands at `spans`: whole directives, or codes of a list.

    A comment that only held the directive goes with the spaces before it, and with its line if
    nothing else is there; the rest of a comment stays.
    """
    lines = _LINE.findall(text)
    for span in sorted(spans, reverse=True):
        index = span.line - 1
        body = lines[index].rstrip("\r\n")
        end = lines[index][len(body) :]
        start, stop = span.column - 1, span.end_column - 1
        if body[start] == "#":
            _remove_directive(lines, index, body, end, start, stop)
        else:
            lines[index] = _without_code(body, start, stop) + end
    return "".join(lines)


def _remove_directive(
    lines: list[str], index: int, body: str, end: str, start: int, stop: int
) -> None:
    before, after = body[:start], body[stop:].strip()
    if after.startswith("#") or not before.strip():
        kept = before + after
    else:
        kept = before.rstrip() + (f"  {after}" if after else "")
    kept = kept.rstrip()
    lines[index] = kept + end
    if not kept:
        lines[index] = ""
        _close_gap(lines, index)


def _close_gap(lines: list[str], index: int) -> None:
    """Where a line went from between two blank ones, one of them goes too."""
    above = next((line for line in reversed(lines[:index]) if line), "x")
    if index + 1 < len(lines) and not above.strip() and not lines[index + 1].strip():
        lines[index + 1] = ""


def _without_code(body: str, start: int, stop: int) -> str:
    """Take one code out of a list: with the separator behind it, or before it if it is last."""
    before, after = body[:start], body[stop:]
    bracketed = before.rfind("[") > before.rfind("]")
    following = (_NEXT_IN_BRACKETS if bracketed else _NEXT_CODE).match(after)
    if following:
        return before + after[following.end() :]
    return re.sub(r"[\s,]+$", "", before) + after
