"""Whether the batched caches of the installed mlx-lm change an offset that somebody holds.

The caches are executed, not read: what counts is what this environment does.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any

import mlx.core as mx


@dataclass(frozen=True, slots=True)
class Held:
    """What became of an attribute that was captured before an operation of a cache."""

    cache: str
    attribute: str
    operation: str
    changed: bool


_WINDOW = 16
_MAKERS: dict[str, Callable[[Any], Any]] = {
    "BatchKVCache": lambda cls: cls([1, 0]),
    "BatchRotatingKVCache": lambda cls: cls(_WINDOW, [1, 0]),
}


def mlx_lm_version() -> str | None:
    """Return the version of the installed mlx-lm, None if there is none."""
    try:
        return version("mlx-lm")
    except PackageNotFoundError:
        return None


def probe_installed() -> list[Held]:
    """Probe the caches of the installed mlx-lm; empty if it is missing or has no batched caches.

    Raises ImportError if its cache module cannot be imported.
    """
    spec = importlib.util.find_spec("mlx_lm")
    if spec is None or not spec.submodule_search_locations:
        return []
    with _without_package_code("mlx_lm", Path(spec.submodule_search_locations[0])):
        return probe(importlib.import_module("mlx_lm.models.cache"))


def probe(module: ModuleType) -> list[Held]:
    """Probe the batched caches of a cache module."""
    found: list[Held] = []
    for name, make in _MAKERS.items():
        if hasattr(module, name):
            found += _probe_class(name, lambda m=make, n=name: m(getattr(module, n)))  # type: ignore[misc]
    return found


def _probe_class(name: str, make: Callable[[], Any]) -> Iterator[Held]:
    """Hold each attribute over each operation, on a cache of its own."""
    for operation, before, run in _OPERATIONS:
        for attribute in ("offset", "left_padding"):
            cache = make()
            if before:
                _update(cache, before)
            held = getattr(cache, attribute, None)
            if isinstance(held, mx.array):
                value = held.tolist()
                run(cache)
                yield Held(name, attribute, operation, held.tolist() != value)


def _update(cache: Any, length: int) -> None:
    cache.update_and_fetch(mx.zeros((2, 1, length, 4)), mx.zeros((2, 1, length, 4)))


# Each with the number of tokens in the cache before, since a full window rotates.
_OPERATIONS: tuple[tuple[str, int, Callable[[Any], Any]], ...] = (
    ("prefill", 0, lambda cache: _update(cache, 4)),
    ("decode", 4, lambda cache: _update(cache, 1)),
    ("decode of a full window", _WINDOW, lambda cache: _update(cache, 1)),
    ("trim", 4, lambda cache: cache.trim(1)),
)


@contextmanager
def _without_package_code(name: str, folder: Path) -> Iterator[None]:
    """Import modules of a package without what its `__init__` imports (tokenizers, hubs, …)."""
    before = {key: module for key, module in sys.modules.items() if key.split(".")[0] == name}
    for key in before:
        del sys.modules[key]
    stub = ModuleType(name)
    stub.__path__ = [str(folder)]
    sys.modules[name] = stub
    try:
        yield
    finally:
        for key in [key for key in sys.modules if key.split(".")[0] == name]:
            del sys.modules[key]
        sys.modules.update(before)
