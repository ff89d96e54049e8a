"""RoPE by plain trigonometry, and kernels with the defects that were seen in releases of MLX.

The reference uses no `fast` operation. The defective kernels have the signature of
`mx.fast.rope`; put in its place, they show that a probe can fail and what a defect does.
Facts: ml-explore/mlx#3498 for the single-token defect of Metal; measurements on CUDA with MLX
0.30.6, 0.31.1 and 0.32.4 for the one-element offset.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import mlx.core as mx

Kernel = Callable[..., mx.array]
Offset = int | mx.array


def rope(
    x: mx.array,
    dims: int,
    *,
    traditional: bool,
    base: float | None,
    scale: float,
    offset: Offset,
    freqs: mx.array | None = None,
    stream: Any = None,
) -> mx.array:
    """Return `x` of shape (B, ..., L, D) rotated by its positions, in the precision of `x`.

    The position of step `l` of row `b` is `(offset[b] + l) * scale`. Pair `i` of the first
    `dims` features turns by `position / freqs[i]`, or `position * base ** (-i / (dims / 2))`.
    Pairs are neighbours if `traditional`, else halves. Computed in float32.
    """
    half = dims // 2
    if freqs is None:
        assert base is not None
        rates = mx.exp(mx.arange(half, dtype=mx.float32) * (-mx.log(mx.array(base)) / half))
    else:
        rates = 1.0 / freqs.astype(mx.float32)
    angles = _positions(x, offset)[..., None] * scale * rates
    cosine, sine = mx.cos(angles), mx.sin(angles)
    turned, rest = x[..., :dims].astype(mx.float32), x[..., dims:]
    if traditional:
        first, second = turned[..., 0::2], turned[..., 1::2]
    else:
        first, second = turned[..., :half], turned[..., half:]
    parts = [first * cosine - second * sine, first * sine + second * cosine]
    if traditional:
        result = mx.stack(parts, axis=-1).reshape(*x.shape[:-1], dims)
    else:
        result = mx.concatenate(parts, axis=-1)
    return mx.concatenate([result.astype(x.dtype), rest], axis=-1)


def _positions(x: mx.array, offset: Offset) -> mx.array:
    """Return the positions in a shape that broadcasts over (B, ..., L)."""
    steps = mx.arange(x.shape[-2], dtype=mx.float32)
    start = mx.array(offset).astype(mx.float32).reshape(-1)
    return start.reshape(-1, *[1] * (x.ndim - 2)) + steps


def single_token_defect(x: mx.array, dims: int, **options: Any) -> mx.array:
    """Do what Metal did before MLX 0.32.0.

    For one token, row-contiguous input and a scalar offset, dimension 0 is ignored: only the
    first `prod(shape[1:-2])` matrices are rotated, the others are left as they are.
    """
    result = rope(x, dims, **options)
    offset = options["offset"]
    scalar = isinstance(offset, int) or offset.size == 1
    if x.shape[-2] != 1 or not scalar or not is_row_contiguous(x):
        return result
    matrices = x.reshape(-1, *x.shape[-2:])
    rotated = result.reshape(matrices.shape)
    reached = prod(x.shape[1:-2])
    return mx.concatenate([rotated[:reached], matrices[reached:]]).reshape(x.shape)


def one_element_offset_defect(x: mx.array, dims: int, **options: Any) -> mx.array:
    """Do what CUDA does up to MLX 0.32.4: read an offset of shape (1,) past its one element."""
    offset = options["offset"]
    if not isinstance(offset, int) and offset.shape == (1,) and x.shape[0] > 1:
        beyond = mx.array([7 + 13 * row for row in range(1, x.shape[0])], dtype=offset.dtype)
        options = {**options, "offset": mx.concatenate([offset, beyond])}
    return rope(x, dims, **options)


def is_row_contiguous(x: mx.array) -> bool:
    """Whether the elements lie in the order of the indices; dimensions of size 1 do not count."""
    return memoryview(x).c_contiguous  # type: ignore[arg-type]


def right_and_defective(run: Callable[[], Any], defect: Kernel) -> tuple[Any, Any]:
    """Return what `run()` gives with the right kernel, and with a defective one, in MLX's place."""
    installed = mx.fast.rope
    results = []
    try:
        for kernel in (rope, defect):
            mx.fast.rope = kernel  # type: ignore[assignment]
            results.append(run())
            mx.eval(results[-1])
    finally:
        mx.fast.rope = installed
    return results[0], results[1]
