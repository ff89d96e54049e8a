"""Judges what the cache contract of both trees found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aliaslint.verify.model import CacheResult


def contract_results(
    disk: Sequence[Mapping[str, Any]], rewritten: Sequence[Mapping[str, Any]]
) -> list[CacheResult]:
    """One result a cache class, from what each tree's worker found for it."""
    return []
