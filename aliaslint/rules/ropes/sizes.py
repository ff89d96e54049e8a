"""Sizes as source text: "B", "4", "B * H", "?"; what can be said of them without their values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

Dims = tuple[str, ...]
ANY = "?"
_TIMES = " * "


def product(parts: Iterable[str]) -> str:
    """Return the text of a product; factors of 1 are left out.

    >>> product(["B", "1", "H"])
    'B * H'
    """
    factors = [factor for part in parts for factor in factors_of(part)]
    return _TIMES.join(factors) or "1"


def factors_of(text: str) -> list[str]:
    """Return the factors of a size, none for 1."""
    return [part for part in text.split(_TIMES) if part != "1"]


def is_product(text: str) -> bool:
    return len(factors_of(text)) > 1


def same(first: str, second: str) -> bool:
    """Whether two sizes are known to be equal: `B * H` is `H * B`."""
    return ANY not in (first, second) and sorted(factors_of(first)) == sorted(factors_of(second))


def without(old: Sequence[str], rest: Sequence[str]) -> list[str] | None:
    """Return the factors that are left of `old` for a -1 beside `rest`.

    None if some size of either is unknown or does not come out even.
    """
    left = [factor for size in old for factor in factors_of(size)]
    if ANY in left:
        return None
    for factor in (factor for size in rest for factor in factors_of(size)):
        if factor not in left:
            return None
        left.remove(factor)
    return left


def one(text: str) -> str:
    """Return the text of the fact that a size is 1."""
    return f"= {text}"


def above_one(text: str, many: frozenset[str]) -> bool:
    """Whether a size is not 1, given those that are known not to be; no size is below 1.

    >>> above_one("2 * L", frozenset()), above_one("L + 1", frozenset())
    (True, True)
    """
    if text in many or (text.isdigit() and int(text) > 1):
        return True
    if is_product(text):
        return any(above_one(factor, many) for factor in factors_of(text))
    largest = re.fullmatch(r"max\((.*)\)", text)
    if largest:
        return any(above_one(part.strip(), many) for part in largest[1].split(","))
    first, plus, number = text.rpartition(" + ")
    return bool(plus and first and number.isdigit() and int(number) > 0)
