"""A suppression that hides nothing goes, and what stands beside it stays."""

from __future__ import annotations

import pytest

from aliaslint.findings import Span
from aliaslint.fix.comments import remove
from aliaslint.source.files import position

# The comment or code to remove stands in « ».
CASES = {
    "behind code": ("x = 1  «# aliaslint: ignore[AL001]»\n", "x = 1\n"),
    "with its reason": ("x = 1  «# aliaslint: ignore[AL001] checked»\n", "x = 1\n"),
    "on a line of its own": ("«# aliaslint: ignore[AL001]»\nx = 1\n", "x = 1\n"),
    "on a line of its own, indented": (
        "if a:\n    «# aliaslint: ignore[AL001]»\n    x = 1\n",
        "if a:\n    x = 1\n",
    ),
    "between blank lines": (
        "def f():\n    a\n\n    «# noqa: AL001»\n\n    b\n",
        "def f():\n    a\n\n    b\n",
    ),
    "before another comment": (
        "x = 1  «# aliaslint: ignore[AL001]»  # type: ignore\n",
        "x = 1  # type: ignore\n",
    ),
    "after another comment": ("x = 1  # why «# noqa: AL001»\n", "x = 1  # why\n"),
    "at the end of a file": ("x = 1  «# noqa: AL001»", "x = 1"),
    "with windows line ends": ("x = 1  «# noqa: AL001»\r\ny = 2\r\n", "x = 1\r\ny = 2\r\n"),
    "the first code of a list": ("x  # noqa: «AL001»,E501\n", "x  # noqa: E501\n"),
    "the first code, spaced": ("x  # noqa: «AL001», E501\n", "x  # noqa: E501\n"),
    "the last code of a list": ("x  # noqa: E501, «AL001»\n", "x  # noqa: E501\n"),
    "the last code before a reason": (
        "x  # noqa: E501,«AL001» too long\n",
        "x  # noqa: E501 too long\n",
    ),
    "a code in the middle": ("x  # noqa: E1,«AL001»,E2\n", "x  # noqa: E1,E2\n"),
    "codes with spaces between": ("x  # noqa: «AL001» E501\n", "x  # noqa: E501\n"),
    "a code in brackets": (
        "x  # aliaslint: ignore[AL001, «AL002»] why\n",
        "x  # aliaslint: ignore[AL001] why\n",
    ),
    "the first in brackets": (
        "x  # aliaslint: ignore[«AL002» stale-capture] why\n",
        "x  # aliaslint: ignore[stale-capture] why\n",
    ),
    "two codes of three": (
        "x  # aliaslint: ignore[AL001, «AL002», «AL003»]\n",
        "x  # aliaslint: ignore[AL001]\n",
    ),
    "the first two of three": (
        "x  # aliaslint: ignore[«AL001», «AL002», AL003]\n",
        "x  # aliaslint: ignore[AL003]\n",
    ),
    "two comments": (
        "x  «# noqa: AL001»\ny  «# noqa: AL001»\n",
        "x\ny\n",
    ),
    "two comments of one line": (
        "x  «# aliaslint: ignore[AL001]»  «# noqa: AL004»\n",
        "x\n",
    ),
}


@pytest.mark.parametrize(("marked", "after"), CASES.values(), ids=CASES)
def test_removing(marked: str, after: str) -> None:
    text, spans = "", []
    for index, piece in enumerate(marked.replace("»", "«").split("«")):
        if index % 2:
            end = position(text + piece, len(text + piece))
            spans.append(Span(*position(text, len(text)), *end))
        text += piece

    assert remove(text, spans) == after
