"""AL304: an offset array of one element for a batch."""

from __future__ import annotations

from aliaslint.rules import Rule

RULE = Rule(
    code="AL304",
    name="one-element-rope-offset",
    summary="offset array of shape (1,) given to RoPE for a batch",
    message=(
        "`{call}` gets an offset of shape (1,) for a batch: on CUDA the rows after the first "
        "are wrong"
    ),
    severity="error",
    default=False,
    what="""\
Finds an offset array of shape `(1,)` that is given to `mx.fast.rope` or a module like `nn.RoPE`
together with a batch of more than one sequence.""",
    why="""\
On CUDA, up to MLX 0.32.4 at least, the offset is not broadcast: rows after the first are rotated
by something else. A 0-d array, an int, and an array of shape `(B,)` are right everywhere.""",
    example="queries = self.rope(queries, offset=mx.array([cache.offset]))",
    instead="queries = self.rope(queries, offset=mx.array(cache.offset))",
)
