"""AL304: an offset array of one element for a batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from aliaslint.findings import Finding, Step
from aliaslint.rules import Project, Rule

if TYPE_CHECKING:
    from aliaslint.rules.ropes.flow import Reach

RULE = Rule(
    code="AL304",
    name="one-element-rope-offset",
    summary="offset array of shape (1,) given to RoPE for a batch",
    message=(
        "`{call}` gets an offset of shape (1,) for a batch: on CUDA the rows after the first "
        "are wrong"
    ),
    severity="warning",
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


def find_project(project: Project) -> Iterator[Finding]:
    """Find RoPE calls whose offset has shape (1,) and whose batch may be larger."""
    from aliaslint.rules.ropes import evidence
    from aliaslint.rules.ropes.flow import Flow

    flow = Flow(project.files)
    seen = set()
    for reach in evidence.reaches(flow, project.files, evidence.may_make_one):
        if is_wrong(reach) and (key := (reach.path, id(reach.node))) not in seen:
            seen.add(key)
            span = flow.span(reach.path, reach.node)
            step = Step("read", reach.path, span, f"`{reach.name}` rotates a batch by one offset")
            yield RULE.finding(reach.path, span, trace=(step,), call=reach.name)


def is_wrong(reach: Reach) -> bool:
    """Whether a call is wrong on CUDA: a batch of one row gets the one element that is there."""
    return reach.offset == "one" and not reach.value.is_single(reach.facts)
