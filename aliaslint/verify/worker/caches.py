"""Plain and batched caches, made the way mlx-lm makes them, for any tree that has its classes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

import mlx.core as mx

from aliaslint.verify.worker.build import Unsupported

Caches = list[Any]


class CacheMaker:
    """The cache constructors of one cache module, bound to one model."""

    def __init__(self, module: ModuleType, model: Any) -> None:
        self.module = module
        self.model = model

    def plain(self) -> Caches:
        """Caches for one sequence."""
        return list(self.module.make_prompt_cache(self.model))

    def rotating(self, size: int) -> Caches:
        """Caches for one sequence where each plain one is bounded, as under `max_kv_size`."""
        made = self.plain()
        plain = [type(cache) is self.module.KVCache for cache in made]
        bounded = getattr(self.module, "RotatingKVCache", None)
        if bounded is None:
            raise Unsupported("the package has no cache that rotates")
        if any(plain):
            return [bounded(max_size=size) if p else c for p, c in zip(plain, made, strict=True)]
        if any(isinstance(c, bounded) for c in walk(made)):
            return made
        raise Unsupported("has no cache that rotates")

    def left_padded(self, padding: Sequence[int]) -> Caches:
        """Batched caches for prompts that are padded on the left from the start."""
        return [self._padded(cache, list(padding)) for cache in self.plain()]

    def _padded(self, cache: Any, padding: list[int]) -> Any:
        module = self.module
        if type(cache) is module.KVCache:
            return module.BatchKVCache(padding)
        if self._is(cache, "ArraysCache"):
            cache.left_padding = mx.array(padding)
            return cache
        if self._is(cache, "RotatingKVCache"):
            if cache.keep > 0:
                raise Unsupported("keeps first tokens in a rotating cache: no batching in mlx-lm")
            return module.BatchRotatingKVCache(cache.max_size, padding)
        if self._is(cache, "CacheList"):
            return module.CacheList(*(self._padded(inner, padding) for inner in cache.caches))
        raise Unsupported(f"{type(cache).__name__} has no batched form in mlx-lm")

    def _is(self, cache: Any, name: str) -> bool:
        kind = getattr(self.module, name, None)
        return kind is not None and isinstance(cache, kind)


def merge(rows: Sequence[Caches]) -> Caches:
    """One batched cache a layer from the plain caches of each row, which stay untouched."""
    rows = copy.deepcopy(list(rows))
    for cache in rows[0]:
        if not hasattr(cache, "merge"):
            raise Unsupported(f"{type(cache).__name__} cannot be merged into a batch in mlx-lm")
    return [layer[0].merge(list(layer)) for layer in zip(*rows, strict=True)]


def walk(caches: Sequence[Any]) -> Iterator[Any]:
    """Each cache object, those inside lists of caches too."""
    for cache in caches:
        inner = getattr(cache, "caches", None)
        if isinstance(inner, (list, tuple)):
            yield from walk(inner)
        else:
            yield cache


def shift_offsets(caches: Caches, by: int) -> None:
    """Move every array offset: the deliberate error of the control run."""
    for cache in walk(caches):
        if isinstance(getattr(cache, "offset", None), mx.array):
            cache.offset = cache.offset + by


def each(caches: Caches, method: str, call: Callable[[Any], Any]) -> None:
    """Call a method of every cache, or say which cache lacks it."""
    for cache in caches:
        if not hasattr(cache, method):
            raise Unsupported(f"{type(cache).__name__} has no {method} in mlx-lm")
        call(getattr(cache, method))
