"""Leaving out functions that do not matter loses no finding that rests on a read."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from aliaslint.analysis import AnalysisOptions, analyse
from aliaslint.findings import Finding
from aliaslint.source.files import SourceFile, read

sys.path.insert(0, str(Path(__file__).parents[1] / "fixtures"))
from fixture_loader import Fixture, collect

PROGRAMS = [f for kind in ("flag", "clean", "fix") for f in collect(kind)]


def both(files: list[SourceFile], options: AnalysisOptions) -> tuple[list[Finding], list[Finding]]:
    """Return the findings with everything interpreted, and with what matters."""
    everything = analyse(files, options, all_roots=True).findings
    return everything, analyse(files, options, all_roots=False).findings


@pytest.mark.parametrize("fixture", PROGRAMS, ids=lambda f: f.name)
def test_findings_of_fixtures_stay_the_same(fixture: Fixture) -> None:
    files = [read(path) for path in fixture.files]
    options = AnalysisOptions(dependency_roots=fixture.dependencies)
    everything, relevant = both([f for f in files if isinstance(f, SourceFile)], options)
    assert places(relevant) <= places(everything)
    assert {place for place in places(everything) if place[0] != "AL102"} <= places(relevant)


def places(findings: list[Finding]) -> set[tuple[str, Path, int, int]]:
    """Callers that are left out may add reads to a trace, and what no read is proven of."""
    return {(f.code, f.path, f.span.line, f.span.column) for f in findings}
