from .common import Args, Attention, Base

ModelArgs = Args


class Scalar(Attention):
    """Takes the offset for a Python int, which fails in a batch."""

    def positions(self, queries, keys, values, cache):
        if int(cache.offset) < 0:
            raise ValueError
        return super().positions(queries, keys, values, cache)


class Model(Base):
    attention = Scalar
