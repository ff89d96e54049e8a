import numpy as np

from .common import Args, Base

ModelArgs = Args


class Model(Base):
    def __init__(self, args):
        super().__init__(args)
        self._ballast = np.ones((1 << 33,), dtype=np.uint8)
