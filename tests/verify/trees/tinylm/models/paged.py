"""A model with a cache class of its own, which mlx-lm cannot merge."""

import mlx.core as mx

from .cache import KVCache
from .common import Args, Base

ModelArgs = Args


class PagedCache:
    def __init__(self, batch_size):
        self.offset = mx.zeros((batch_size,), dtype=mx.int32)
        self.keys = None

    def update_and_fetch(self, keys, values):
        self.offset = self.offset + keys.shape[2]
        return keys, values


class Model(Base):
    def make_cache(self):
        return [OwnCache() for _ in self.layers]


class OwnCache:
    def __init__(self):
        self._inner = KVCache()

    def __getattr__(self, name):
        if name in ("merge", "_inner") or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._inner, name)
