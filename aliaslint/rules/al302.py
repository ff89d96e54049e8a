"""AL302: a declared dependency that admits MLX with the RoPE kernel bug."""

from __future__ import annotations

from aliaslint.rules import Rule

RULE = Rule(
    code="AL302",
    name="mlx-below-rope-fix",
    summary="declared dependency admits MLX below 0.32.0 in a project that decodes batches",
    message=(
        "`{requirement}` admits MLX below 0.32.0, whose Metal kernel leaves all rows but the "
        "first unrotated when a batch is decoded"
    ),
    severity="warning",
    default=True,
    what="""\
Finds declared dependencies (pyproject.toml, setup.cfg, a literal setup.py, requirements files,
lock files) that admit MLX below 0.32.0, in a project that decodes batches with a scalar RoPE
offset.""",
    why="""\
See AL301. The source may be right at every rank and still be wrong with such a version when more
than one sequence is decoded.""",
    example='dependencies = ["mlx>=0.30"]',
    instead='dependencies = ["mlx>=0.32"]',
    language="toml",
)
