import numpy as np

from .common import Args, Base

ModelArgs = Args


class Model(Base):
    """Reads memory that it never wrote, whenever it sees a batch."""

    def __call__(self, inputs, cache=None):
        logits = super().__call__(inputs, cache)
        unwritten = np.empty(1 << 16, np.uint8)
        return logits + (float((unwritten == 0x41).mean()) if inputs.shape[0] > 1 else 0)
