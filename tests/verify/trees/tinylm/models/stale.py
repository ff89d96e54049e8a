from .common import Args, Attention, Base

ModelArgs = Args


class LateAttention(Attention):
    def positions(self, queries, keys, values, cache):
        mask = cache.make_mask(queries.shape[2])
        offset = cache.offset
        keys = self.rope(keys, offset=offset)
        keys, values = cache.update_and_fetch(keys, values)
        queries = self.rope(queries, offset=offset)
        return queries, keys, values, mask


class Model(Base):
    attention = LateAttention
