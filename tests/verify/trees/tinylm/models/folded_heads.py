from .common import Args, Attention, Base

ModelArgs = Args


class Folded(Attention):
    """Folds batch and heads into dimension 0 and rotates by one offset where all rows agree."""

    def positions(self, queries, keys, values, cache):
        mask = cache.make_mask(queries.shape[2])
        queries, keys = self.turned(queries, cache), self.turned(keys, cache)
        keys, values = cache.update_and_fetch(keys, values)
        return queries, keys, values, mask

    def turned(self, x, cache):
        if not isinstance(cache.offset, int) and cache.offset.size > 1:
            return self.rope(x, offset=cache.offset)
        offset = cache.offset if isinstance(cache.offset, int) else cache.offset.item()
        flat = x.reshape(-1, *x.shape[2:])
        return self.rope(flat, offset=offset).reshape(x.shape)


class Model(Base):
    attention = Folded
