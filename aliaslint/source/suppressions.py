"""Suppression comments: what they hide, and which of them hide nothing.

    self.offset += n  # aliaslint: ignore[AL001] the reason
    self.offset += n  # noqa: AL001,E501
    # aliaslint: skip-file

`ignore[...]` takes codes and rule names; on a line of its own it speaks of the next statement.
A comment covers all lines of the statement (the logical line) that it stands on. A bare `# noqa`
belongs to other tools and is not read.
"""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import StringIO
from typing import Literal

from aliaslint.findings import Finding, Span

Kind = Literal["ignore", "noqa", "skip-file"]

_NOQA_AL = re.compile(rb"noqa\s*:[^\r\n]*al\d")
_REASON = r".*?(?=\s*#\s*(?:aliaslint|noqa|type|pragma|pyright|fmt|nosec)\b|$)"
_OURS = re.compile(
    r"#\s*aliaslint\s*:\s*"
    r"(?:(?P<skip>skip-file)\b|ignore\b\s*(?:\[(?P<codes>[^\]#]*)\])?)" + _REASON,
    re.IGNORECASE,
)
_NOQA = re.compile(
    r"#\s*noqa\s*:\s*(?P<codes>[A-Z]+[0-9]+(?:\s*[,\s]\s*[A-Z]+[0-9]+)*)\b" + _REASON,
    re.IGNORECASE,
)
_CODE = re.compile(r"[^\s,]+")


@dataclass(frozen=True, slots=True)
class Named:
    """One code or rule name in a suppression comment, as written, and where it stands."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Suppression:
    """One suppression comment. `span` is all of it, its reason included.

    It covers the lines `first` to `last`, both included. `named` is empty for a skip-file and
    for an `ignore` without codes, which hides nothing.
    """

    kind: Kind
    span: Span
    named: tuple[Named, ...]
    first: int
    last: int


def suppressions(data: bytes, text: str) -> tuple[Suppression, ...]:
    """Return the suppression comments of a file in the order in which they stand.

    `data` are its bytes, `text` its decoded text. A file that Python cannot tokenise has those
    that stand before the error.
    """
    lowered = data.lower()
    if b"aliaslint" not in lowered and (b"noqa" not in lowered or not _NOQA_AL.search(lowered)):
        return ()  # Tokenising costs more than everything else that is done to a healthy file.
    return tuple(_read(text))


def _read(text: str) -> Iterator[Suppression]:
    """Collect comments until the end of their logical line is known."""
    waiting: list[tuple[tokenize.TokenInfo, bool]] = []
    first = 0
    try:
        for token in tokenize.generate_tokens(StringIO(text, newline=None).readline):
            if token.type == tokenize.COMMENT:
                waiting.append((token, not first))
            elif token.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
                yield from _flush(waiting, first, token.start[0])
                first = 0
            elif token.type not in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
                first = first or token.start[0]
    except (tokenize.TokenError, SyntaxError):
        pass
    yield from _flush(waiting, first, 0)


def _flush(
    waiting: list[tuple[tokenize.TokenInfo, bool]], first: int, last: int
) -> Iterator[Suppression]:
    """Yield what the collected comments say about the logical line from `first` to `last`."""
    for token, before in waiting:
        line = token.start[0]
        for found in _parse(token):
            if not first or (before and found.kind != "ignore"):
                yield Suppression(found.kind, found.span, found.named, line, line)
            else:
                yield Suppression(found.kind, found.span, found.named, first, max(last, line))
    waiting.clear()


def _parse(token: tokenize.TokenInfo) -> Iterator[Suppression]:
    """Yield the directives in one comment; their lines are filled in by the caller."""
    for pattern in (_OURS, _NOQA):
        for match in pattern.finditer(token.string):
            groups = match.groupdict()
            kind: Kind = "noqa" if pattern is _NOQA else "ignore"
            if groups.get("skip"):
                kind = "skip-file"
            named = tuple(_named(token, match)) if groups.get("codes") else ()
            end = match.start() + len(match.group().rstrip())
            yield Suppression(kind, _span(token, match.start(), end), named, 0, 0)


def _named(token: tokenize.TokenInfo, match: re.Match[str]) -> Iterator[Named]:
    offset = match.start("codes")
    for code in _CODE.finditer(match["codes"]):
        yield Named(code.group(), _span(token, offset + code.start(), offset + code.end()))


def _span(token: tokenize.TokenInfo, start: int, end: int) -> Span:
    line, column = token.start
    return Span(line, column + start + 1, line, column + end + 1)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What became of a file's findings, and the names in its comments that hid one."""

    shown: tuple[Finding, ...]
    hidden: tuple[Finding, ...]
    used: frozenset[Span]


def judge(comments: Iterable[Suppression], findings: Iterable[Finding]) -> Judgement:
    """Split the findings of one file into those shown and those hidden by its comments."""
    comments = tuple(comments)
    shown: list[Finding] = []
    hidden: list[Finding] = []
    used: set[Span] = set()
    skipped = any(comment.kind == "skip-file" for comment in comments)
    for finding in findings:
        spans = [span for comment in comments for span in _hiding(comment, finding)]
        used.update(spans)
        (hidden if spans or skipped else shown).append(finding)
    return Judgement(tuple(shown), tuple(hidden), frozenset(used))


def _hiding(comment: Suppression, finding: Finding) -> Iterator[Span]:
    """Yield where `comment` names the rule of `finding`, if it covers the finding's line."""
    if not comment.first <= finding.span.line <= comment.last:
        return
    for named in comment.named:
        by_name = comment.kind == "ignore" and named.text.lower() == finding.name
        if by_name or named.text.upper() == finding.code:
            yield named.span
