"""What must be known of MLX here before a verdict means anything."""

from __future__ import annotations

import platform
from typing import Any

import mlx.core as mx


def run_preflight() -> dict[str, Any]:
    """Versions, device, whether `+=` mutates, and what the RoPE probe says."""
    return {
        "status": "ok",
        "mlx": getattr(mx, "__version__", "unknown"),
        "device": device_name(),
        "python": platform.python_version(),
        "inplace_mutates": inplace_mutates(),
        "rope": probed_rope(),
    }


def device_name() -> str:
    """ "cpu", "metal" or "cuda": what the default device of MLX is."""
    if mx.default_device().type != mx.gpu:
        return "cpu"
    return "metal" if mx.metal.is_available() else "cuda"


def inplace_mutates() -> bool:
    """Whether another name for an array sees `+=`, the premise of this whole tool."""
    first = mx.array([1, 2])
    second = first
    second += 1
    return bool(first.tolist() == [2, 3])


def probed_rope() -> dict[str, Any]:
    """The outcome of the RoPE kernel probe: {"ok": bool, "message": str}."""
    from aliaslint.verify import rope_probe

    return dict(rope_probe.summary())
