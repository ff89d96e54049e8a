from dataclasses import dataclass

from .common import Args, Attention, Base


@dataclass
class ModelArgs(Args):
    """Needs what no type tells: kinds of layers, a nested table, enough elements, a divisor."""

    layer_types: list[str] | None = None
    rotation: dict | None = None
    widths: list[int] | None = None
    unheard_of_groups: int = 3

    def __post_init__(self):
        if self.layer_types.index("full_attention") is None:
            raise ValueError
        if self.hidden_size % self.unheard_of_groups:
            raise ValueError("hidden_size must be divisible by unheard_of_groups")


class Model(Base):
    attention = Attention

    def __init__(self, args):
        super().__init__(args)
        self._base = args.rotation["rope_theta"]
        self._widths = [args.widths[i] for i, _ in enumerate(self.layers)]
