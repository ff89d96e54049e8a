"""Form feeds in indentation: Python counts columns anew behind one, libcst does not parse it.

They are taken out of the text that libcst is shown and put back into what it gives.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace

from aliaslint.findings import Repair, Span

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_LEADING = re.compile(r"[ \t\f]*\f")


@dataclass(frozen=True, slots=True)
class Feeds:
    """What stood at the start of each line, up to its last form feed; most often nothing."""

    starts: tuple[str, ...]

    def moved(self, repair: Repair) -> Repair:
        """Return a repair with its spans as they are without the form feeds."""
        also = tuple(map(self._moved, repair.also))
        return replace(repair, span=self._moved(repair.span), also=also)

    def _moved(self, span: Span) -> Span:
        start, end = self._width(span.line), self._width(span.end_line)
        return Span(span.line, span.column - start, span.end_line, span.end_column - end)

    def put_back(self, before: str, after: str) -> str | None:
        """Return `after`, an edit of `before`, with the form feeds of `before` in their places.

        None if one stood inside lines that became fewer or more.
        """
        if not any(self.starts):
            return after
        old, new = _LINE.findall(before), _LINE.findall(after)
        lines: list[str] = []
        matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
        for _, i, j, m, n in matcher.get_opcodes():
            starts = list(self.starts[i:j])
            if j - i != n - m and any(starts[1:]):
                return None
            starts += [""] * (n - m - len(starts))
            lines += [start + line for start, line in zip(starts, new[m:n], strict=False)]
        return "".join(lines)

    def _width(self, line: int) -> int:
        return len(self.starts[line - 1]) if line <= len(self.starts) else 0


def taken_out(text: str) -> tuple[str, Feeds]:
    """Return a text without the form feeds in its indentation, and what they were."""
    if "\f" not in text:
        return text, Feeds(())
    lines = _LINE.findall(text)
    starts = [m.group() if (m := _LEADING.match(line)) else "" for line in lines]
    rest = [line[len(start) :] for start, line in zip(starts, lines, strict=True)]
    return "".join(rest), Feeds(tuple(starts))
