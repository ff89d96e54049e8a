"""Which versions of MLX a project admits, directly or through mlx-lm."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from aliaslint.program import effect_tables
from aliaslint.program.declared import Declared, admitted, named
from aliaslint.program.dependencies import nearest_declared, nearest_locked

ROPE_FIX = "0.32.0"  # ml-explore/mlx#3498
# What the package index had for Linux in late 2026; later releases have the fix. Versions that a
# project names itself are looked at too.
RELEASES = (
    *("0.2.0", "0.21.1", "0.25.2", "0.26.1", "0.26.2", "0.26.3", "0.26.5", "0.27.1", "0.28.0"),
    *("0.29.0", "0.29.1", "0.29.2", "0.29.3", "0.29.4", "0.30.0", "0.30.1", "0.30.3", "0.30.4"),
    *("0.30.5", "0.30.6", "0.31.0", "0.31.1", "0.31.2", "0.32.0", "0.32.1", "0.32.2", "0.32.3"),
    "0.32.4",
)
_DISTRIBUTIONS = ("mlx", "mlx-metal")


def below_rope_fix(folders: Sequence[Path]) -> list[Declared]:
    """Return the declarations by which a project admits MLX without the RoPE fix.

    `folders` are those that may declare something, nearest first. A floor that mlx-lm sets for
    all its admitted releases counts; empty if nothing is declared at all.
    """
    found: list[Declared] = []
    through = nearest_declared(folders, "mlx-lm")
    lm_admits = not through or bool(_through_mlx_lm(through))
    for name in _DISTRIBUTIONS:
        direct = nearest_declared(folders, name)
        if lm_admits and _below(_admitted(direct)):
            found += [d for d in direct if _below(_admitted([d]))]
        found += [d for d in nearest_locked(folders, name) if _locked_below(d)]
    direct = nearest_declared(folders, "mlx")
    if not direct and through and lm_admits:
        found += [d for d in through if _through_mlx_lm([d])]
    return list(dict.fromkeys(found))


def _through_mlx_lm(declared: Sequence[Declared]) -> list[str]:
    """Return the admitted releases of mlx-lm that do with MLX below the fix."""
    found = []
    for release in admitted(declared, {*effect_tables.releases("mlx_lm"), *named(declared)}):
        needs = effect_tables.requirement("mlx_lm", release)
        if _below(_admitted([Declared("mlx", needs, Path(), 1, "", "required")])):
            found.append(release)
    return found


def _admitted(declared: Sequence[Declared]) -> list[str]:
    return admitted(declared, {*RELEASES, *named(declared)})


def _below(versions: Iterable[str]) -> list[str]:
    from packaging.version import Version

    fixed = Version(ROPE_FIX)  # Its release candidates have the fix.
    return [version for version in versions if Version(Version(version).base_version) < fixed]


def _locked_below(declared: Declared) -> bool:
    from packaging.version import InvalidVersion

    try:
        return declared.pinned is not None and bool(_below([declared.pinned]))
    except InvalidVersion:
        return False
