"""AL301: batch or heads folded into dimension 0 before RoPE."""

from __future__ import annotations

from aliaslint.rules import Rule

RULE = Rule(
    code="AL301",
    name="rope-collapsed-batch",
    summary="batch or heads folded into dimension 0 before RoPE with a scalar offset",
    message=(
        "`{call}` gets batch or heads folded into dimension 0: with one token, MLX below 0.32.0 "
        "rotates only the first matrix on Metal"
    ),
    severity="error",
    default=True,
    what="""\
Finds values whose batch or heads were folded into dimension 0 (`reshape(-1, L, D)`,
`reshape(B * H, …)`, `flatten(0, 1)` and the like) and that reach `mx.fast.rope` or a module like
`nn.RoPE` with a scalar offset, on a path where the sequence length may be 1.

The rule runs where the declared dependency on MLX admits versions below 0.32.0.""",
    why="""\
For a sequence length of 1, row-contiguous input and a scalar offset, the Metal kernel of MLX
below 0.32.0 ignores dimension 0 (ml-explore/mlx#3498): `[B * H, 1, D]` rotates only the first
matrix. Every decode step is then wrong for all heads but one, silently. Prefill is right.""",
    example="""\
q = q.reshape(B * H, L, D)
q = mx.fast.rope(q, D, traditional=False, base=1e4, scale=1.0, offset=offset)
q = q.reshape(B, H, L, D)""",
    instead="""\
q = mx.fast.rope(q, D, traditional=False, base=1e4, scale=1.0, offset=offset)""",
    known_problems="""\
With more than one sequence, `[B, H, 1, D]` is wrong on those versions too. Require MLX 0.32.0 or
pass the offset as an array of shape `(B,)`.""",
    fix="""\
Calls at native rank and drops the pair of reshapes, where both are visible and inverse. Unsafe:
a wrapper around the call may depend on the rank.""",
)
