"""Breaks a rewritten statement the way black does.

Only what black decides for an assignment or a `return` is done here: whether the value goes into
parentheses of its own or is broken at its last brackets, and where what stands inside brackets is
broken. A statement whose lines were not black's before keeps its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from aliaslint.codemods import tokens
from aliaslint.codemods.tokens import Token

_STEP = "    "
_NO_FORMATTER = re.compile(r"\t|\\\n|'''|\"\"\"")


@dataclass(frozen=True, slots=True)
class Page:
    """Where a statement stands: its module, its indentation, and how long a line may be."""

    module: cst.Module
    indent: str
    length: int

    def fit(
        self, before: cst.SimpleStatementLine, line: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine:
        """Return `line` with black's breaks if `before`, which stood there, had black's."""
        code = self._code(line)
        if "\n" not in code and self._fits(code + self._comment(line)):
            return line
        old = self._broken(before)
        if old is None or old != self._code(before):
            return line
        new = self._broken(line)
        if new is None or new == code:
            return line
        parsed = cst.parse_statement(new, self.module.config_for_parsing)
        assert isinstance(parsed, cst.SimpleStatementLine)
        return line.with_changes(body=parsed.body)

    def _broken(self, line: cst.SimpleStatementLine) -> str | None:
        """Return the code of a statement as black breaks it, None if that is not known."""
        code, comment = self._code(line), self._comment(line)
        if len(line.body) != 1 or _NO_FORMATTER.search(code + self.indent):
            return None
        pieces = tokens.read(code)
        if pieces is None:
            return None
        lines = _Breaker(self.length - len(self.indent), comment).statement(pieces)
        return None if lines is None else "\n".join(lines)

    def _code(self, line: cst.SimpleStatementLine) -> str:
        """Return the statements of a line, with `\\n` as line end and without the indentation."""
        code = "; ".join(self.module.code_for_node(part) for part in line.body)
        return re.sub(r"\r\n?", "\n", code)

    def _comment(self, line: cst.SimpleStatementLine) -> str:
        behind = line.trailing_whitespace
        return behind.whitespace.value + behind.comment.value if behind.comment else ""

    def _fits(self, text: str) -> bool:
        return len(self.indent) + len(text) <= self.length


@dataclass(frozen=True, slots=True)
class _Breaker:
    """Breaks a statement into lines of at most `length` columns where it can.

    `comment` stands behind the statement, with the space before it.
    """

    length: int
    comment: str

    def statement(self, line: list[Token]) -> list[str] | None:
        """Return the lines of a statement; None if it is none that is known here."""
        start = tokens.value_start(line)
        if start is None or start == len(line):
            return None
        head, value = line[:start], tokens.without_parentheses(line[start:])
        whole = tokens.text([*head, *value])
        if self._fits(whole + self.comment):
            return [whole]
        wrapped = [tokens.text(head) + " (", *self._inside(value, _STEP), ")"]
        hugged = self._hugged(head, value, wrapped)
        if hugged is None:
            useful = len(value) > 1 or self._fits(_STEP + tokens.text(value))
            return wrapped if useful else [whole]
        all_fit = all(map(self._fits, [*wrapped[:-1], wrapped[-1] + self.comment]))
        return wrapped if all_fit and not self._fits(hugged[0]) else hugged

    def _hugged(
        self, head: list[Token], value: list[Token], wrapped: list[str]
    ) -> list[str] | None:
        """Break at brackets of the statement itself, the last that leave a short first line.

        Returns `wrapped` where parentheses around the value read better, None if there are no
        brackets to break at.
        """
        if not self._may_hug(value):
            return wrapped
        line = [*head, *value]
        pairs = list(self._brackets(line))
        for start, end in pairs[:1] if self.comment else pairs:
            lines = self._at(line, start, end, "")
            if not self._prefers_hugging(head, lines[0]):
                lines = wrapped
            if self._fits(lines[0]):
                return lines
        return self._at(line, *pairs[0], "", in_head_too=True) if pairs else None

    def _may_hug(self, value: list[Token]) -> bool:
        """Whether the value reads well without parentheses around all of it."""
        priority, count = tokens.strongest(value)
        if not priority:
            return True
        if count > 1:
            return False
        if priority == tokens.DOT or self._starts_with_brackets(value):
            return True
        last = value[-1]
        if last.text not in (")", "}") and not (last.text == "]" and last.is_display):
            return False
        start = tokens.opening(value, len(value) - 1)
        if start == len(value) - 2:
            return False
        if any(tokens.is_opening(token) for token in value[:start]):
            return True
        return self._fits(_STEP + tokens.text(value[: start + 1]))

    def _starts_with_brackets(self, value: list[Token]) -> bool:
        """Whether a break in the brackets at the start leaves a short rest."""
        if not tokens.is_opening(value[0]) or tokens.is_closing(value[1]):
            return False
        end = tokens.closing(value, 0)
        rest = value[end:]
        further = next((i for i, token in enumerate(rest) if tokens.is_opening(token)), None)
        if further is None:
            return self._fits(_STEP + tokens.text(rest))
        return False

    def _prefers_hugging(self, head: list[Token], first_line: str) -> bool:
        """Where brackets stand before the `=`, breaking the value must leave a first line."""
        if head[-1].text != "=" or not any(map(tokens.is_opening, head)):
            return True
        begin = tokens.text(head)
        if len(begin) + 2 > self.length:
            return True
        if head.count(head[-1]) > 1 and not first_line.startswith(begin):
            return False
        if not first_line.startswith(begin):
            return False
        return bool(re.search(r"[)\]}]", first_line[len(begin) :])) or self._fits(first_line)

    def _inside(self, line: list[Token], indent: str, one_a_line: bool = False) -> list[str]:
        """Break what stands inside brackets: at its strongest delimiters, else at its brackets.

        The elements of a list or tuple that does not fit get one line each, even if they fit.
        """
        whole = indent + tokens.text(line)
        if self._fits(whole) and not one_a_line and not tokens.has_magic_comma(line):
            return [whole]
        priority, count = tokens.strongest(line)
        if priority and not (priority == tokens.DOT and count == 1):
            pieces = tokens.split(line, priority)
            return [text for piece in pieces for text in self._inside(piece, indent)]
        pairs = list(self._brackets(line))
        for start, end in pairs:
            lines = self._at(line, start, end, indent)
            if self._fits(lines[0]):
                return lines
        return self._at(line, *pairs[0], indent, in_head_too=True) if pairs else [whole]

    def _brackets(self, line: list[Token]) -> Iterator[tuple[int, int]]:
        """Yield the outermost pairs of brackets that hold something, the last first.

        What comes behind an earlier pair stays on one line with its end, so it has to fit.
        """
        index = len(line) - 1
        found = False
        while index >= 0:
            if tokens.is_closing(line[index]):
                start = tokens.opening(line, index)
                if found and not self._fits(tokens.text(line[index:])):
                    return
                if start + 1 < index:
                    yield start, index
                    found = True
                index = start
            index -= 1

    def _at(
        self, line: list[Token], start: int, end: int, indent: str, in_head_too: bool = False
    ) -> list[str]:
        """Break at one pair of brackets, and `in_head_too` at those before it."""
        body = line[start + 1 : end]
        one_a_line = line[start].is_display and tokens.strongest(body)[0] == tokens.COMMA
        middle = self._inside(body, indent + _STEP, one_a_line)
        head = line[: start + 1]
        first = [indent + tokens.text(head)]
        pairs = list(self._brackets(head[:-1])) if in_head_too else []
        if pairs and not self._fits(first[0]):
            first = self._at(head, *pairs[0], indent, in_head_too=True)
        return [*first, *middle, indent + tokens.text(line[end:])]

    def _fits(self, text: str) -> bool:
        return len(text) <= self.length
