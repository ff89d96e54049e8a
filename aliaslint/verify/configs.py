"""The table of tiny configurations, and what it says for one model type."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLE = Path(__file__).with_name("tiny.toml")


@dataclass(frozen=True, slots=True)
class Plan:
    """One configuration to run: what is given; the rest comes from names and types."""

    model_type: str
    variant: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)


@cache
def table() -> Mapping[str, Any]:
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


def names() -> Mapping[str, Any]:
    """Small values for public hyper-parameter names."""
    found: Mapping[str, Any] = table()["names"]
    return found


def plans(model_type: str, own: Mapping[str, Any] | None = None) -> list[Plan]:
    """The configurations of a model type: the user's own, or those of the table."""
    if own is not None:
        return [Plan(model_type, "", own)]
    entry = dict(table()["models"].get(model_type, {}))
    variants = entry.pop("variants", {})
    return [
        Plan(model_type, "", entry),
        *(Plan(model_type, name, merged(entry, values)) for name, values in variants.items()),
    ]


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with the values of `over`, table by table."""
    result = dict(base)
    for key, value in over.items():
        inner = result.get(key)
        both = isinstance(inner, dict) and isinstance(value, dict)
        result[key] = merged(inner, value) if both else value  # type: ignore[arg-type]
    return result
