"""AL301: batch or heads folded into dimension 0 before RoPE."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from aliaslint.findings import Finding, Repair, Step
from aliaslint.program.dependencies import project_folders
from aliaslint.program.mlx_versions import below_rope_fix
from aliaslint.rules import Project, Rule

if TYPE_CHECKING:
    from aliaslint.rules.ropes.flow import Flow, Reach

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
`reshape(B * H, …)`, `flatten(0, 1)`, `x[0]` and the like) and that reach `mx.fast.rope` or a
module like `nn.RoPE` with a scalar offset, on a path where the sequence length may be 1.

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
pass the offset as an array of shape `(B,)`.

A test of the sequence length counts where it stands around the call or in the same function, not
in a caller. Heads that a `transpose` of an array with a batch brings to the front are not seen.
`x[0]` of something whose rank nothing tells may be an item of a list, and is silent; `x[0, ...]`
is reported unless other rows of `x` are named by numbers too, as those of packed projections are.
Input that is not row-contiguous, a slice of the features for instance, is right and reported all
the same: whether it stays so is for the next operation to say.""",
    fix="""\
Calls at native rank and drops the pair of reshapes, where both are visible and inverse and no
comment stands at one of them. Unsafe: a wrapper around the call may depend on the rank.""",
)


_UNSAFE = "a caller may depend on the folded shape, and MLX below 0.32.0 needs more for a batch"


def find_project(project: Project) -> Iterator[Finding]:
    """Find folded arrays that reach RoPE, where a declared floor admits MLX without the fix."""
    from aliaslint.rules.ropes import evidence
    from aliaslint.rules.ropes.flow import Flow

    if not any(evidence.rotates(source.data) for source in project.files):
        return
    if not below_rope_fix(project_folders(project.targets)):
        return
    flow = Flow(project.files)
    seen = set()
    for reach in evidence.reaches(flow, project.files, evidence.may_fold):
        if is_wrong(reach) and (key := (reach.path, id(reach.node))) not in seen:
            seen.add(key)
            yield _finding(flow, reach)


def is_wrong(reach: Reach) -> bool:
    """Whether a call is wrong on Metal for one token: an offset of zero turns nothing."""
    folded = reach.value.fold is not None
    return folded and reach.offset in ("scalar", "unknown", "one") and reach.may_be_one_token()


def _finding(flow: Flow, reach: Reach) -> Finding:
    from aliaslint.rules.ropes.pairs import pair_of

    fold = reach.value.fold
    assert fold is not None
    span = flow.span(reach.path, reach.node)
    inside = "" if reach.direct else ", inside what is called,"
    steps = (
        Step("call", fold.path, fold.span, f"`{fold.text}` folds batch or heads into dimension 0"),
        Step("read", reach.path, span, f"`{reach.name}`{inside} rotates by a scalar offset"),
    )
    pair = pair_of(flow, reach) if reach.direct else None
    # The fix leaves a pair alone whose comment it would lose.
    kept = pair is None or pair.loses_comment(flow.text(reach.path))
    repair = None if kept else Repair("native-rank", span, "unsafe", _UNSAFE)
    return RULE.finding(reach.path, span, trace=steps, repair=repair, call=reach.name)
