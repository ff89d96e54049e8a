"""AL303: a declared dependency that admits a release with stale captures of its own."""

from __future__ import annotations

from aliaslint.rules import Rule

RULE = Rule(
    code="AL303",
    name="alias-broken-dependency",
    summary="declared dependency admits a release with stale captures of its own",
    message=(
        "`{requirement}` admits {package} {versions}, which reads stale cache offsets when it "
        "decodes a batch: {captures}"
    ),
    severity="warning",
    default=True,
    what="""\
Finds declared dependencies that admit a release with stale captures of its own, in a project that
decodes batches through it: mlx-lm before 0.32 pinned by a server, for instance. The captures are
named with their lines.""",
    why="""\
The project has no stale capture and serves the output of one.""",
    example='dependencies = ["mlx-lm<0.32"]',
    instead='dependencies = ["mlx-lm>=0.32"]',
    language="toml",
)
