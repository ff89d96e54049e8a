"""A line of code as tokens, with what formatters know about where it can be broken."""

from __future__ import annotations

import io
import itertools
import keyword
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

COMPREHENSION, COMMA, TERNARY, LOGIC, STRING, COMPARISON = 20, 18, 16, 14, 12, 10
DOT = 1
_ARITHMETIC = {"|": 9, "^": 8, "&": 7, "<<": 6, ">>": 6, "+": 5, "-": 5} | dict.fromkeys(
    ("*", "/", "//", "%", "@"), 4
)
_POWER = {"**": 2}
_COMPARATORS = frozenset({"<", ">", "==", "!=", "<=", ">="})
_OPEN, _CLOSE = frozenset("([{"), frozenset(")]}")
_LAYOUT = frozenset(
    {tokenize.NEWLINE, tokenize.NL, tokenize.ENDMARKER, tokenize.INDENT, tokenize.DEDENT}
)
_KEYWORDS = frozenset(keyword.kwlist) - {"None", "True", "False"}


@dataclass(frozen=True, slots=True)
class Token:
    """One token. `depth` counts the brackets around it; `delimiter` is how strong a place for a
    break is before it (after it, for a comma), 0 if there is none; `is_display` tells the bracket
    of a list, a tuple or a group from that of a call or an index.
    """

    text: str
    space: str
    depth: int
    delimiter: int = 0
    is_display: bool = False


def read(code: str) -> list[Token] | None:
    """Return the tokens of a statement, joined to one line.

    None if it holds a comment, or a formatted string over several lines.
    """
    result: list[Token] = []
    scope = [_Brackets(False)]
    row, column, lines = 1, 0, code.split("\n")
    for item in _whole_strings(tokenize.generate_tokens(io.StringIO(code + "\n").readline), lines):
        if item.type == tokenize.COMMENT:
            return None
        if item.type in _LAYOUT:
            continue
        if item.start[0] == row:
            space = lines[row - 1][column : item.start[1]]
        else:
            space = _joint(result[-1], item.string)
        row, column = item.end
        result.append(_token(item, space, result, scope))
    return result


def _whole_strings(
    items: Iterator[tokenize.TokenInfo], lines: list[str]
) -> Iterator[tokenize.TokenInfo]:
    """Give formatted strings as one token, which they are up to Python 3.11."""
    start: tuple[int, int] | None = None
    depth = 0
    for item in items:
        kind = tokenize.tok_name[item.type]
        if kind.endswith("STRING_START"):
            start = start or item.start
            depth += 1
        if start is None:
            yield item
        if kind.endswith("STRING_END"):
            depth -= 1
            if depth == 0 and start is not None:
                text = lines[start[0] - 1][start[1] : item.end[1]]
                one_line = start[0] == item.end[0]
                kind_given = tokenize.STRING if one_line else tokenize.COMMENT
                yield tokenize.TokenInfo(kind_given, text, start, item.end, item.line)
                start = None


def _joint(last: Token, text: str) -> str:
    """Return what stands between two tokens where a line break is taken out."""
    return "" if is_opening(last) or text in _CLOSE or text == "." else " "


@dataclass(slots=True)
class _Brackets:
    """What is known inside one pair of brackets."""

    is_display: bool
    in_comprehension: bool = False
    after_for: bool = False
    lambdas: int = 0


def _token(
    item: tokenize.TokenInfo, space: str, before: list[Token], scope: list[_Brackets]
) -> Token:
    text = item.string
    here = scope[-1]
    if text in _CLOSE:
        scope.pop()
        return Token(text, space, len(scope) - 1, 0, here.is_display)
    if text in _OPEN:
        display = not before or not _ends_value(before[-1])
        token = Token(text, space, len(scope) - 1, 0, display)
        scope.append(_Brackets(display))
        return token
    delimiter = 0
    if here.lambdas:
        here.lambdas += (text == "lambda") - (text == ":")
    elif text == "lambda":
        here.lambdas += 1
    else:
        delimiter = _delimiter(item, before, here)
    return Token(text, space, len(scope) - 1, delimiter)


def _delimiter(item: tokenize.TokenInfo, before: list[Token], here: _Brackets) -> int:
    text, last = item.string, before[-1] if before else None
    if text == ",":
        return COMMA
    if text == "for":
        here.in_comprehension = here.after_for = True
        return COMPREHENSION if last is None or last.text != "async" else 0
    if text == "in" and here.after_for:
        here.after_for = False
        return 0
    if text in ("if", "else"):
        return COMPREHENSION if text == "if" and here.in_comprehension else TERNARY
    if text in ("and", "or"):
        return LOGIC
    if item.type == tokenize.STRING and last is not None and last.text[-1:] in "\"'":
        return STRING
    if last is None or not _ends_value(last):
        return 0
    if text == "." and last.text in _CLOSE:
        return DOT
    if text in _COMPARATORS or text in ("in", "is", "not"):
        return COMPARISON
    return (_ARITHMETIC | _POWER).get(text, 0)


def _ends_value(token: Token) -> bool:
    """Whether a value ends here, so that an operator after it is binary, a bracket a trailer."""
    text = token.text
    if text in _CLOSE or text[-1:] in "\"'" or text == "...":
        return True
    return (text[0].isalnum() or text[0] == "_") and text not in _KEYWORDS


def text(line: list[Token]) -> str:
    """Return the code of a line, without space at its start."""
    return "".join(t.space + t.text for t in line).lstrip()


def has_magic_comma(line: list[Token]) -> bool:
    """Whether some brackets end in a comma that asks for one line an element."""
    return any(
        is_closing(token) and before.text == "," and not _is_singleton(line, index)
        for index, (before, token) in enumerate(itertools.pairwise(line), 1)
    )


def _is_singleton(line: list[Token], index: int) -> bool:
    """Whether the brackets closed at `index` are a tuple or an index of one element."""
    start = opening(line, index) if any(is_opening(t) for t in line[:index]) else 0
    depth = line[start].depth + 1
    commas = [t for t in line[start + 1 : index] if t.text == "," and t.depth == depth]
    if len(commas) != 1:
        return False
    return line[start].text == "[" or line[start].is_display


def strongest(line: list[Token]) -> tuple[int, int]:
    """Return the strongest delimiter outside the line's own brackets, and how many there are."""
    outermost = min((token.depth for token in line), default=0)
    inner = line[: -1 if line[-1].text == "," else None]
    found = [
        token.delimiter
        for index, token in enumerate(inner)
        if token.delimiter and token.depth == outermost and (index or token.text == ",")
    ]
    top = max(found, default=0)
    return top, found.count(top)


def split(line: list[Token], priority: int) -> Iterator[list[Token]]:
    """Split at the delimiters of one strength; commas stay behind and one is added at the end."""
    outermost = min(token.depth for token in line)
    piece: list[Token] = []
    for token in line:
        breaks = token.delimiter == priority and token.depth == outermost
        if breaks and priority != COMMA and piece:
            yield piece
            piece = []
        piece.append(token)
        if breaks and priority == COMMA:
            yield piece
            piece = []
    if piece:
        comma = [Token(",", "", outermost)] if priority == COMMA else []
        yield [*piece, *comma]


def is_opening(token: Token) -> bool:
    return token.text in _OPEN


def is_closing(token: Token) -> bool:
    return token.text in _CLOSE


def opening(line: list[Token], index: int) -> int:
    """Return the index of the bracket that is closed at `index`."""
    depth = line[index].depth
    return next(i for i in reversed(range(index)) if is_opening(line[i]) and line[i].depth == depth)


def closing(line: list[Token], index: int) -> int:
    """Return the index of the bracket that closes the one at `index`."""
    depth = line[index].depth
    return next(
        i for i in range(index + 1, len(line)) if is_closing(line[i]) and line[i].depth == depth
    )


def without_parentheses(line: list[Token]) -> list[Token]:
    """Take away parentheses around all of a value, where formatters find them redundant."""
    while line[0].text == "(" and closing(line, 0) == len(line) - 1 and len(line) > 2:
        inner = line[1:-1]
        outermost = [t for t in inner if t.depth == inner[0].depth]
        if any(t.text in (",", ":=", "for", "yield", "await", "lambda") for t in outermost):
            break
        first = Token(inner[0].text, " ", inner[0].depth, 0, inner[0].is_display)
        line = [first, *inner[1:]]
    return line


def value_start(line: list[Token]) -> int | None:
    """Return where the value of an assignment or a `return` begins, None if it is neither."""
    if line[0].text == "return":
        return 1
    equals = [i for i, t in enumerate(line) if t.depth == 0 and t.text.endswith("=")]
    signs = [i for i in equals if line[i].text not in _COMPARATORS]
    return signs[-1] + 1 if signs else None
