"""AL303: a declared dependency that admits a release with stale captures of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from aliaslint.findings import Finding
from aliaslint.program import stale_captures
from aliaslint.program.declared import Declared, admitted, canonical
from aliaslint.program.dependencies import nearest_declared, nearest_locked, project_folders
from aliaslint.rules import Project, Rule

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
named with their lines.

Batches are decoded through a package where a file imports it and names its caches, generators or
steps of a batch, or its server. A locked release is judged alone; where its source is installed
and is not that of the release, it is analysed instead.""",
    why="""\
The project has no stale capture and serves the output of one.""",
    known_problems="""\
Which releases have stale captures is a table, made by running `aliaslint check` on each of them
(`python -m benchmarks.stale_captures`). A release that is not in it is not judged.""",
    example='dependencies = ["mlx-lm<0.32"]',
    instead='dependencies = ["mlx-lm>=0.32"]',
    language="toml",
)


_SHOWN = 3


def find_project(project: Project) -> Iterator[Finding]:
    """Find declarations that admit a release with stale captures of its own."""
    from aliaslint.rules.ropes import evidence

    for name in stale_captures.packages() if project.roots else ():
        if _is_own(project, name) or not evidence.decodes_batches(project.files, through=name):
            continue
        folders = project_folders(project.targets)
        declared = nearest_declared(folders, canonical(name))
        for item in dict.fromkeys([*declared, *nearest_locked(folders, canonical(name))]):
            yield from _judge(project, name, item, declared)


def _is_own(project: Project, name: str) -> bool:
    """Whether the package is the target itself, which the other rules look at.

    One that is installed in an environment inside the target is not.
    """
    root = project.options.dependency_roots.get(name)
    if root is None or root.parent.name in ("site-packages", "dist-packages"):
        return False
    return any(
        root == target or target in root.parents or root in target.parents
        for target in project.targets
    )


def _judge(
    project: Project, name: str, item: Declared, declared: Sequence[Declared]
) -> Iterator[Finding]:
    """Yield the finding about one declaration, if what it admits is broken."""
    from aliaslint.rules.ropes import evidence

    if item.path.name == "METADATA":
        return
    root = project.options.dependency_roots.get(name)
    if item.pinned and root and _version(root) == item.pinned:
        broken = {item.pinned: _captures(name, item.pinned, root)}
    else:
        together = declared if item in declared and not item.pinned else [item]
        checked = stale_captures.releases(name)
        own = admitted([item], checked)
        broken = {
            v: stale_captures.places(name, v) for v in admitted(together, checked) if v in own
        }
    broken = {version: places for version, places in broken.items() if places}
    if broken:
        yield RULE.finding(
            item.path,
            evidence.place_of(item),
            requirement=item.text,
            package=canonical(name),
            versions=_range(list(broken)),
            captures=_listed(list(broken.values())[-1]),
        )


def _version(root: Path) -> str | None:
    from aliaslint.program.environments import installed_version, source_version

    return source_version(root) or installed_version(root.parent, root.name)


def _captures(name: str, version: str, root: Path) -> tuple[str, ...]:
    """Return the captures of source at hand: as the release's, or analysed if it differs."""
    if stale_captures.is_release(name, version, root):
        return stale_captures.places(name, version)
    from aliaslint.analysis import AnalysisOptions, analyse
    from aliaslint.source.files import SourceFile, read

    files = [s for s in map(read, sorted(root.rglob("*.py"))) if isinstance(s, SourceFile)]
    found = analyse(files, AnalysisOptions(dependency_roots={name: root}, thorough=False)).findings
    return tuple(
        f"{f.path.relative_to(root).as_posix()}:{f.span.line}" for f in found if f.code == "AL101"
    )


def _range(versions: Sequence[str]) -> str:
    return versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"


def _listed(places: Sequence[str]) -> str:
    more = len(places) - _SHOWN
    return ", ".join(places[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
