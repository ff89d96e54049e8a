"""Which suppressions hide nothing, whatever release of a dependency the code runs with.

A suppression that is of no use with the installed mlx-lm may be needed with the oldest one that
the project admits. So before a comment is called unused, the files are analysed again with each
admitted release that has other effects. That happens only if a comment looks unused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from aliaslint.findings import Finding, Result, Span
from aliaslint.rules import al901
from aliaslint.source.suppressions import Suppression, judge
from aliaslint.targets import resting_on

if TYPE_CHECKING:
    from aliaslint.analysis import AnalysisOptions
    from aliaslint.engine import Run


class Unused:
    """Judges the suppression comments of a run."""

    def __init__(self, run: Run, result: Result) -> None:
        self._run = run
        self._complete = not result.errors

    @cached_property
    def possible(self) -> bool:
        """Whether silence means something: every file was analysed, every dependency is known."""
        run = self._run
        on = resting_on(run.dependencies, run.files, run.options.cache_protocol)
        return self._complete and not any(dependency.kind == "none" for dependency in on)

    def find(
        self,
        path: Path,
        comments: Sequence[Suppression],
        used: frozenset[Span],
        codes: frozenset[str],
    ) -> list[Finding]:
        """Return the findings of AL901 in one file; `used` hid something in this run."""
        if "AL901" not in codes or not self.possible:
            return []
        found = list(al901.find(path, comments, used, codes))
        if not found:
            return []
        for result in self._other_results:
            others = [finding for finding in result.findings if finding.path == path]
            used |= judge(comments, others).used
        return list(al901.find(path, comments, used, codes))

    @cached_property
    def _other_results(self) -> list[Result]:
        from aliaslint.analysis import analyse

        return [analyse(self._run.files, options) for options in self._other_options()]

    def _other_options(self) -> Iterator[AnalysisOptions]:
        """Yield the options for each other release of a dependency that the project admits."""
        from aliaslint.program.dependencies import admitted_versions

        run = self._run
        for dependency in resting_on(run.dependencies, run.files, run.options.cache_protocol):
            if dependency.kind == "shadowed":
                continue
            roots = {n: r for n, r in run.options.dependency_roots.items() if n != dependency.name}
            for version in admitted_versions(run.targets, dependency.name):
                if dependency.kind == "source" or version != dependency.version:
                    versions = {**run.options.dependency_versions, dependency.name: version}
                    yield replace(run.options, dependency_roots=roots, dependency_versions=versions)
