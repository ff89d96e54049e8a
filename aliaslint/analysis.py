"""The analysis as one call: source files in, findings of every rule out.

`engine` (discovery, suppression, selection) and `fix` (re-analysis of edited text) call this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from aliaslint.findings import Result

if TYPE_CHECKING:
    from aliaslint.source.files import SourceFile


@dataclass(frozen=True, slots=True)
class AnalysisOptions:
    """What the analysis needs to know beside the files.

    `dependency_roots` maps a top-level package name ("mlx_lm") to the folder that holds its
    source (".../site-packages/mlx_lm"); an empty mapping means that none is known.
    `dependency_versions` maps the same names to a version for the built-in effect table,
    for packages whose source is not at hand.
    """

    exposed_attributes: tuple[str, ...] = ("offset",)
    shared_attributes: tuple[str, ...] = ()
    cache_protocol: tuple[str, ...] = ("update_and_fetch",)
    dependency_roots: Mapping[str, Path] = field(default_factory=dict)
    dependency_versions: Mapping[str, str] = field(default_factory=dict)


def analyse(files: Sequence[SourceFile], options: AnalysisOptions) -> Result:
    """Return the findings of all rules in `files`, unselected and unsuppressed, sorted."""
    return Result()
