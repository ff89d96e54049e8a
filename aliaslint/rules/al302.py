"""AL302: a declared dependency that admits MLX with the RoPE kernel bug."""

from __future__ import annotations

from collections.abc import Iterator

from aliaslint.findings import Finding
from aliaslint.program.dependencies import project_folders
from aliaslint.program.mlx_versions import below_rope_fix
from aliaslint.rules import Project, Rule
from aliaslint.source.files import SourceFile

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
lock files) that admit MLX below 0.32.0, directly or through the floor that mlx-lm sets, in a
project that decodes batches with a scalar RoPE offset: code names caches, generators or steps of
a batch, and some RoPE call may get one offset for all rows and a single token. Files that the
metadata name as lists of dependencies are read (setuptools, hatch), and constraints of a
requirements file (`-c`) narrow what it requires; the finding stands where that is decided.""",
    why="""\
See AL301. The source may be right at every rank and still be wrong with such a version when more
than one sequence is decoded.""",
    example='dependencies = ["mlx>=0.30"]',
    instead='dependencies = ["mlx>=0.32"]',
    language="toml",
)


def find_project(project: Project) -> Iterator[Finding]:
    """Find declarations that admit MLX without the fix, in a project that it concerns."""
    from aliaslint.rules.ropes import evidence

    if not project.roots or not evidence.decodes_batches(project.files):
        return
    declared = below_rope_fix(project_folders(project.targets))
    declared = [d for d in declared if d.path.name != "METADATA"]
    if declared and rotates_by_a_scalar(project.files):
        for item in declared:
            yield RULE.finding(item.path, evidence.place_of(item), requirement=item.text)


def rotates_by_a_scalar(files: tuple[SourceFile, ...]) -> bool:
    """Whether some RoPE call may get one offset for the whole batch, and for one token."""
    from aliaslint.rules.ropes import evidence
    from aliaslint.rules.ropes.flow import Flow

    for source in evidence.with_rope(files):
        for reach in Flow([source]).reaches([source.path]):
            if reach.offset in ("scalar", "unknown", "one") and reach.may_be_one_token():
                return True
    return False
