"""Caches with the interface of mlx-lm, made for these tests: the batched one updates in place."""

import mlx.core as mx


def make_prompt_cache(model):
    if hasattr(model, "make_cache"):
        return model.make_cache()
    return [KVCache() for _ in model.layers]


class KVCache:
    def __init__(self):
        self.keys = self.values = None
        self.offset = 0

    def update_and_fetch(self, keys, values):
        if self.keys is not None:
            keys = mx.concatenate([self.keys, keys], axis=2)
            values = mx.concatenate([self.values, values], axis=2)
        self.keys, self.values = keys, values
        self.offset = keys.shape[2]
        return keys, values

    def make_mask(self, length):
        return _causal(length, self.offset)

    @property
    def state(self):
        return [] if self.keys is None else [self.keys, self.values]

    @classmethod
    def merge(cls, caches):
        return BatchKVCache.merge(caches)


class BatchKVCache:
    def __init__(self, left_padding):
        self.keys = self.values = None
        self.left_padding = mx.array(left_padding)
        self.offset = mx.array([-p for p in left_padding])
        self._right_padding = None

    def update_and_fetch(self, keys, values):
        self.offset += keys.shape[2]
        if self.keys is not None:
            keys = mx.concatenate([self.keys, keys], axis=2)
            values = mx.concatenate([self.values, values], axis=2)
        self.keys, self.values = keys, values
        return keys, values

    def make_mask(self, length):
        held = 0 if self.keys is None else self.keys.shape[2]
        seen = mx.arange(held + length) >= self.left_padding[:, None, None, None]
        return _causal(length, held) & seen

    def prepare(self, *, lengths=None, right_padding=None):
        if right_padding is not None and max(right_padding) > 0:
            self._right_padding = mx.array(right_padding)

    def finalize(self):
        if self._right_padding is None:
            return
        shift = self._right_padding
        self.keys, self.values = _rolled(self.keys, shift), _rolled(self.values, shift)
        self.offset -= shift
        self.left_padding += shift
        self._right_padding = None

    def is_trimmable(self):
        return True

    def trim(self, n):
        self.keys, self.values = self.keys[:, :, :-n], self.values[:, :, :-n]
        self.offset -= n

    def filter(self, indices):
        indices = mx.array(indices)
        self.keys, self.values = self.keys[indices], self.values[indices]
        self.offset = self.offset[indices]
        self.left_padding = self.left_padding[indices]

    def extend(self, other):
        width = max(self.keys.shape[2], other.keys.shape[2])
        parts = [cache._padded(width) for cache in (self, other)]
        self.keys, self.values, self.offset, self.left_padding = map(
            mx.concatenate, zip(*parts, strict=True)
        )

    def _padded(self, width):
        more = width - self.keys.shape[2]
        grow = [(0, 0), (0, 0), (more, 0), (0, 0)]
        keys, values = mx.pad(self.keys, grow), mx.pad(self.values, grow)
        return keys, values, self.offset, self.left_padding + more

    @property
    def state(self):
        return [] if self.keys is None else [self.keys, self.values]

    @state.setter
    def state(self, value):
        self.keys, self.values = value

    @classmethod
    def merge(cls, caches):
        if all(cache.keys is None for cache in caches):
            return cls([0] * len(caches))
        width = max(cache.offset for cache in caches)
        padding = [width - cache.offset for cache in caches]
        merged = cls(padding)
        grow = [[(0, 0), (0, 0), (p, 0), (0, 0)] for p in padding]
        pairs = list(zip(caches, grow, strict=True))
        merged.keys = mx.concatenate([mx.pad(c.keys, g) for c, g in pairs])
        merged.values = mx.concatenate([mx.pad(c.values, g) for c, g in pairs])
        merged.offset = mx.array([cache.offset for cache in caches])
        return merged


def _causal(length, held):
    return mx.arange(held, held + length)[:, None] >= mx.arange(held + length)[None]


def _rolled(x, shift):
    places = (mx.arange(x.shape[2])[None, :] - shift[:, None]) % x.shape[2]
    return mx.take_along_axis(x, places[:, None, :, None], axis=2)
