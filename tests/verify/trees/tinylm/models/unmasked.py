from .cache import _causal
from .common import Args, Attention, Base

ModelArgs = Args


class Unmasked(Attention):
    """Lets every row see the padding: wrong in a batch, and not by aliasing."""

    def positions(self, queries, keys, values, cache):
        queries, keys, values, _ = super().positions(queries, keys, values, cache)
        length = queries.shape[2]
        return queries, keys, values, _causal(length, keys.shape[2] - length)


class Model(Base):
    attention = Unmasked
