"""aliaslint: finds stale captures of mx.array cache attributes and fixes them."""

__version__ = "0.1.0"
