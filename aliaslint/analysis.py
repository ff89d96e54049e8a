"""The analysis as one call: source files in, findings of every rule out.

`engine` (discovery, suppression, selection) and `fix` (re-analysis of edited text) call this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from aliaslint.depth import room
from aliaslint.findings import FileError, Finding, Result

if TYPE_CHECKING:
    from aliaslint.flow.context import Analysis
    from aliaslint.source.files import SourceFile


@dataclass(frozen=True, slots=True)
class AnalysisOptions:
    """What the analysis needs to know beside the files.

    `dependency_roots` maps a top-level package name ("mlx_lm") to the folder that holds its
    source (".../site-packages/mlx_lm"); an empty mapping means that none is known.
    `dependency_versions` maps the same names to a version for the built-in effect table,
    for packages whose source is not at hand. `thorough` follows what a cache of unknown class may
    write into its own buffers, which is told as AL102 at most.
    """

    exposed_attributes: tuple[str, ...] = ("offset",)
    shared_attributes: tuple[str, ...] = ()
    cache_protocol: tuple[str, ...] = ("update_and_fetch",)
    dependency_roots: Mapping[str, Path] = field(default_factory=dict)
    dependency_versions: Mapping[str, str] = field(default_factory=dict)
    thorough: bool = True


def analyse(
    files: Sequence[SourceFile],
    options: AnalysisOptions,
    *,
    all_roots: bool = False,
    jobs: int = 1,
) -> Result:
    """Return the findings of all rules in `files`, unselected and unsuppressed, sorted.

    They are the same for any number of processes.
    """
    with room():
        try:
            return _analyse(files, options, all_roots, jobs)
        except RecursionError:
            shallow, errors = set_apart(files, options)
            if not errors:
                raise
    result = analyse(shallow, options, all_roots=all_roots, jobs=jobs)
    result.errors.extend(errors)
    return result


def _analyse(
    files: Sequence[SourceFile], options: AnalysisOptions, all_roots: bool, jobs: int
) -> Result:
    run = examine(files, options, all_roots=all_roots, jobs=jobs)
    result = Result(errors=run.errors)
    if run.analysis is not None:
        result.findings.extend(conclude(run.analysis, options))
        result.summary["unresolved"] = len(run.analysis.unresolved)
        result.summary["passed_over"] = run.analysis.passed_over
        result.summary["abandoned"] = run.analysis.abandoned
    result.summary["files"] = len(files)
    return result


def set_apart(
    files: Sequence[SourceFile], options: AnalysisOptions
) -> tuple[list[SourceFile], list[FileError]]:
    """Tell the files that are nested too deeply from those that can be analysed without them.

    Where several are deep, those that cannot be analysed alone are too deep, or else all.
    """
    from aliaslint.source.parsing import TOO_DEEP, is_deep

    deep = [source for source in files if is_deep(source)]
    alone = [source for source in deep if len(deep) > 1 and _overflows(source, options)]
    errors = [FileError(source.path, None, None, TOO_DEEP) for source in alone or deep]
    apart = {error.path for error in errors}
    return [source for source in files if source.path not in apart], errors


def _overflows(source: SourceFile, options: AnalysisOptions) -> bool:
    try:
        examine([source], options)
    except RecursionError:
        return True
    return False


def conclude(analysis: Analysis, options: AnalysisOptions) -> list[Finding]:
    """Return what the rules find in an analysis that has run, sorted."""
    from aliaslint.rules import modules
    from aliaslint.rules.evidence import gather

    exposed = frozenset(options.exposed_attributes)
    evidence = gather(analysis, exposed, frozenset(options.shared_attributes))
    finders = [getattr(module, "find_in_program", None) for module in modules()]
    found = [finding for find in finders if find for finding in find(evidence)]
    return sorted(found, key=lambda finding: finding.sort_key())


@dataclass(slots=True)
class Run:
    """An analysis that has run, and the files that could not be parsed."""

    analysis: Analysis | None
    errors: list[FileError]


def examine(
    files: Sequence[SourceFile],
    options: AnalysisOptions,
    *,
    all_roots: bool = False,
    jobs: int = 1,
) -> Run:
    """Parse and analyse `files`; nothing in them is imported or executed.

    With `all_roots` each function is interpreted on its own, those included that can yield no
    finding: slow, for tests.
    """
    from aliaslint.flow.driver import run

    analysis, errors = assemble(files, options)
    run(analysis, all_roots, options.thorough, jobs)
    return Run(analysis, errors)


def assemble(
    files: Sequence[SourceFile], options: AnalysisOptions
) -> tuple[Analysis, list[FileError]]:
    """Parse `files` and return an analysis of them that has not run yet."""
    from aliaslint.flow import library_calls, statements
    from aliaslint.flow.context import Analysis
    from aliaslint.program.modules import ModuleTable
    from aliaslint.source.parsing import parse

    _ = library_calls, statements  # they register their transfer functions
    table = ModuleTable(options.dependency_roots, skeletons(options))
    errors: list[FileError] = []
    for source in files:
        tree = parse(source)
        if isinstance(tree, FileError):
            errors.append(tree)
        else:
            table.add(source.path, tree, source.text, in_target=True)
    protocol = frozenset(options.cache_protocol)
    for path in protocol_files(options, [module.path for module in table.targets()]):
        table.load(path)
    return Analysis(table, protocol, frozenset(options.exposed_attributes)), errors


def protocol_files(options: AnalysisOptions, targets: Sequence[Path]) -> Iterator[Path]:
    """Yield the other files of the targets' own packages that define a method of the protocol.

    A call on a cache of unknown class may run any of them, imported or not: a file that is checked
    alone must be told the same as when its package is checked.
    """
    given = frozenset(targets)
    needles = [f"def {name}(".encode() for name in options.cache_protocol]
    for root in options.dependency_roots.values():
        if not any(path.is_relative_to(root) for path in targets):
            continue
        for path in sorted(root.rglob("*.py")):
            if path not in given and _holds(path, needles):
                yield path


def _holds(path: Path, needles: Sequence[bytes]) -> bool:
    try:
        data = path.read_bytes()
    except OSError:
        return False
    return any(needle in data for needle in needles)


def skeletons(options: AnalysisOptions) -> dict[str, str]:
    """Source-free stand-ins for the caches of dependencies whose source is not at hand."""
    from aliaslint.program.effect_tables import skeleton

    texts: dict[str, str] = {}
    for name, version in options.dependency_versions.items():
        if name not in options.dependency_roots:
            texts[f"{name}.models.cache"] = skeleton(name, version)
    return texts
