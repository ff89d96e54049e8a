"""Proof by execution: batched decoding compared with decoding one by one, in three trees.

`run` takes a `VerifyRequest` and gives a `VerifyReport`; nothing here imports MLX, the worker
processes do.
"""

from __future__ import annotations

from aliaslint.verify.model import Edit, VerifyReport, VerifyRequest
from aliaslint.verify.session import run
from aliaslint.verify.sweep import Progress, VerifyError
from aliaslint.verify.target import TargetError

__all__ = [
    "Edit",
    "Progress",
    "TargetError",
    "VerifyError",
    "VerifyReport",
    "VerifyRequest",
    "run",
]
