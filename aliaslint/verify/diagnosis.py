"""The doctor's examination: versions, device, semantics, caches, RoPE; and what it concludes."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from typing import Any

import mlx.core as mx

from aliaslint.errors import why_not_imported
from aliaslint.verify import cache_probe, rope_probe
from aliaslint.verify.cache_probe import Held
from aliaslint.verify.rope_probe import Pattern, ProbeResult


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was found here. `problems` make results wrong; `warnings` only may."""

    environment: dict[str, str]
    inplace_mutates: bool
    caches: tuple[Held, ...]
    rope: ProbeResult
    problems: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.problems


def examine() -> Diagnosis:
    """Examine the running environment on MLX's default device."""
    mutates = inplace_mutates()
    warnings: list[str] = []
    try:
        caches = cache_probe.probe_installed()
    except Exception as error:  # their code runs, and may raise anything
        caches = []
        reason = why_not_imported(error)
        warnings.append(f"the caches of the installed mlx-lm cannot be imported: {reason}")
    rope = rope_probe.probe()
    installed = cache_probe.mlx_lm_version()
    problems = [_rope_problem(pattern) for pattern in rope.patterns]
    if any(held.changed and held.attribute == "offset" for held in caches):
        captures = stale_captures(installed)
        text = f"mlx-lm {installed} moves captured offsets in place"
        if captures:
            problems.append(f"{text}, and reads stale ones itself: {', '.join(captures)}")
        else:
            warnings.append(
                f"{text}: any model that reads one after the update is wrong in a batch"
            )
    return Diagnosis(
        environment(installed), mutates, tuple(caches), rope, tuple(problems), tuple(warnings)
    )


def environment(mlx_lm: str | None) -> dict[str, str]:
    """Return versions and device in the order in which they are shown."""
    from aliaslint import __version__

    return {
        "aliaslint": __version__,
        "python": f"{platform.python_version()} ({sys.platform}, {platform.machine()})",
        "mlx": mlx_version(),
        "mlx-lm": mlx_lm or "not installed",
        "device": device(),
    }


def mlx_version() -> str:
    return str(getattr(mx, "__version__", "unknown"))


def device() -> str:
    """Return the backend of MLX's default device and, where MLX tells it, the chip's name."""
    name = "cpu"
    if mx.default_device().type == mx.gpu:
        name = "metal" if mx.metal.is_available() else "cuda"
    info: dict[str, Any] = mx.device_info() if hasattr(mx, "device_info") else {}
    chip = info.get("device_name") or info.get("architecture")
    return f"{name} ({chip})" if chip else name


def inplace_mutates() -> bool:
    """Whether another name for an array sees `+=`, the premise of the alias rules."""
    held = mx.array([1, 2])
    other = held
    other += 1
    return bool(held.tolist() == [2, 3])


def stale_captures(version: str | None) -> tuple[str, ...]:
    """Return the places in which this release of mlx-lm reads stale captures of its own."""
    from aliaslint.program import stale_captures as table

    return table.places("mlx_lm", version) if version else ()


def _rope_problem(pattern: Pattern) -> str:
    kind = "known RoPE defect" if pattern.known else "unknown RoPE defect"
    return f"{kind}, {pattern.name}: {pattern.explanation}; {pattern.cure}"
