from .common import Args, Base

ModelArgs = Args


class Model(Base):
    """Reads every offset before the update."""
