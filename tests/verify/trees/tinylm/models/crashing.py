import os

from .common import Args, Base

ModelArgs = Args


class Model(Base):
    def __call__(self, inputs, cache=None):
        os.write(2, b"first\nthe reason of the crash\n")
        os.abort()
