"""The part of `verify` that imports MLX: it runs in processes of its own, one tree each."""
