import os

from .common import Args, Base

ModelArgs = Args


class Model(Base):
    def __call__(self, inputs, cache=None):
        os.abort()
