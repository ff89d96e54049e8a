import os

from .common import Args, Base

ModelArgs = Args


class Model(Base):
    """Gives other logits in every process, whenever it sees a batch."""

    def __call__(self, inputs, cache=None):
        logits = super().__call__(inputs, cache)
        return logits + (os.getpid() % 1009 if inputs.shape[0] > 1 else 0)
