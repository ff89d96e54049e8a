from dataclasses import dataclass

import mlx.nn as nn

from .common import Args, Base


@dataclass
class ModelArgs(Args):
    unheard_of_width: int = 1 << 20


class Model(Base):
    """Its width has a name that no table knows: far too big, and made small before it is built."""

    def __init__(self, args):
        super().__init__(args)
        self.wide = nn.Linear(args.unheard_of_width, args.unheard_of_width)
