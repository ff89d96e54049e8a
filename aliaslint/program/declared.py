"""A declaration of the versions of a package that a project wants, and what several admit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

Tier = Literal["required", "pin", "lock", "optional", "constraint"]

# In this order declarations decide what is admitted.
_TIERS: tuple[Tier, ...] = ("required", "pin", "lock", "optional", "constraint")
_TAG = re.compile(r"@v?(\d+(?:\.\d+)+)(?:$|[#&])")


@dataclass(frozen=True, slots=True)
class Declared:
    """One place in which a project says which versions of a package it wants.

    `specifier` is a PEP 440 specifier set, or several between `||` of which one has to admit a
    version; empty if every version is admitted and None if the place names a source without a
    version (a git branch, a folder). `text` is the requirement as messages quote it. `tier`:
    "required" of whoever installs the project, "pin" in a requirements file, "lock" in a lock
    file, "optional" in an extra or a development group, "constraint" if it only limits what
    another package brings along.
    """

    name: str
    specifier: str | None
    path: Path
    line: int
    text: str
    tier: Tier
    marker: str = ""

    @property
    def pinned(self) -> str | None:
        """The one version that the specifier admits, None if it is not of the form `==X`."""
        match = re.fullmatch(r"={2,3}\s*([^,*|\s]+)", self.specifier or "")
        return match[1] if match else None


def canonical(name: str) -> str:
    """Return the normalised name of a distribution (PEP 503): `mlx_lm` gives `mlx-lm`."""
    return re.sub(r"[-_.]+", "-", name).lower()


def spelled(wanted: str) -> str:
    """Return a pattern for the ways to write a normalised name."""
    return "[-_.]+".join(map(re.escape, wanted.split("-")))


def parsed(text: str, path: Path, line: int, tier: Tier) -> list[Declared]:
    """Return the requirement in `text` (PEP 508, or a bare URL with an egg name), if it is one."""
    from packaging.requirements import InvalidRequirement, Requirement

    text = text.strip()
    egg = re.search(r"[#&]egg=([\w.-]+)", text)
    try:
        wanted = Requirement(f"{egg[1]} @ {text}" if egg and "@ " not in text else text)
    except InvalidRequirement:
        return []
    specifier: str | None = str(wanted.specifier)
    if wanted.url:
        tag = _TAG.search(wanted.url)
        specifier = f"=={tag[1]}" if tag else None
    quoted = text.partition(";")[0].strip()
    marker = str(wanted.marker or "")
    return [Declared(canonical(wanted.name), specifier, path, line, quoted, tier, marker)]


def admitted(declared: Sequence[Declared], releases: Iterable[str]) -> list[str]:
    """Return the `releases` that the declarations admit, lowest first.

    What is required decides; pins, then locks, then extras, then constraints only where nothing
    is required. Declarations of one tier with the same environment marker hold together; those
    with different markers stand for different environments, and each admits its own versions.
    """
    from packaging.specifiers import InvalidSpecifier

    for tier in _TIERS:
        groups: dict[str, list[list[SpecifierSet]]] = {}
        for item in declared:
            if item.tier == tier and item.specifier is not None:
                try:
                    groups.setdefault(item.marker, []).append(_alternatives(item))
                except InvalidSpecifier:
                    return []
        if groups:
            return [r for r in in_order(releases) if any(_hold(g, r) for g in groups.values())]
    return []


def _alternatives(item: Declared) -> list[SpecifierSet]:
    from packaging.specifiers import SpecifierSet

    return [SpecifierSet(part.strip()) for part in (item.specifier or "").split("||")]


def _hold(together: Iterable[Sequence[SpecifierSet]], release: str) -> bool:
    # A release candidate is among the releases only if a declaration names it.
    return all(
        any(s.contains(release, prereleases=True) for s in alternatives)
        for alternatives in together
    )


def named(declared: Iterable[Declared]) -> set[str]:
    """Return the versions that the specifiers name, of `==0.31.*` its first one."""
    from packaging.specifiers import InvalidSpecifier
    from packaging.version import InvalidVersion, Version

    found = set()
    for item in declared:
        try:
            specifiers = [one for alternative in _alternatives(item) for one in alternative]
            versions = [one.version.removesuffix(".*") for one in specifiers]
            found |= {version for version in versions if Version(version)}
        except (InvalidSpecifier, InvalidVersion):
            continue
    return found


def in_order(versions: Iterable[str]) -> list[str]:
    """Return versions sorted, lowest first."""
    from packaging.version import Version

    return sorted(versions, key=Version)


def narrowed(item: Declared, constraints: Iterable[Declared]) -> list[Declared]:
    """Return what is left of a requirement under the constraints of its package.

    Each result stands where the versions are decided, in the requirement or in a constraint.
    Constraints with markers stand for the environments that the project is installed in, so a
    requirement without one has a result for each.
    """
    fitting = [c for c in constraints if c.specifier is not None]
    if item.marker:
        fitting = [c for c in fitting if c.marker in ("", item.marker)]
    if not fitting or item.specifier is None:
        return [item]
    markers = dict.fromkeys(c.marker for c in fitting if c.marker) or [item.marker]
    return [_joint(item, [c for c in fitting if c.marker in ("", m)], m) for m in markers]


def _joint(item: Declared, constraints: Sequence[Declared], marker: str) -> Declared:
    from packaging.specifiers import InvalidSpecifier

    parts = [item, *constraints]
    try:
        decides = _deciding(parts)
        pins = [decides.pinned] if decides.pinned else []
        specifier = ",".join(filter(None, (part.specifier for part in parts)))
        if admitted([replace(item, specifier=specifier)], pins):
            specifier = decides.specifier or ""
    except InvalidSpecifier:
        return item
    return replace(decides, specifier=specifier, tier=item.tier, marker=marker)


def _deciding(parts: Sequence[Declared]) -> Declared:
    """Return the part that a reader would change first: a pin, the highest floor, the lowest cap.

    Of equal ones it is the requirement itself, the first of the parts.
    """
    pins = [part for part in parts if part.pinned]
    if pins:
        return pins[0]
    if floors := _limits(parts, (">=", ">", "~=", "==")):
        return max(floors, key=lambda floor: floor[0])[1]
    caps = _limits(parts, ("<=", "<"))
    return min(caps, key=lambda cap: cap[0])[1] if caps else parts[0]


def _limits(
    parts: Iterable[Declared], operators: tuple[str, ...]
) -> list[tuple[Version, Declared]]:
    from packaging.version import Version

    return [
        (Version(one.version.removesuffix(".*")), part)
        for part in parts
        for alternative in _alternatives(part)
        for one in alternative
        if one.operator in operators
    ]
