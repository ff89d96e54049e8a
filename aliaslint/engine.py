"""One run of check: from paths to a report, without printing.

`prepare` finds and reads what a run is about, the analysis looks at it, `judge` decides what of
its findings is shown: selection, per-file ignores, suppressions, baseline. `fix` uses the parts.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from aliaslint import rules
from aliaslint.analysis import AnalysisOptions
from aliaslint.errors import UserError
from aliaslint.findings import FileError, Finding, Result
from aliaslint.parallel import processors
from aliaslint.report import Lines, Report
from aliaslint.rules import Project, Selection
from aliaslint.source import config as configuration
from aliaslint.source import suppressions
from aliaslint.source.config import Config
from aliaslint.source.discovery import DEFAULT_EXCLUDES, Excludes, discover
from aliaslint.source.files import SourceFile, read
from aliaslint.targets import (
    common_folder,
    dependencies,
    installed_package,
    own_packages,
    project_roots,
    resting_on,
)
from aliaslint.unused import Unused

if TYPE_CHECKING:
    from aliaslint.program.dependencies import Dependency

_PROTOCOL = ("update_and_fetch",)


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked for.

    `paths` are files and folders; `package` is an installed package to look at instead; `stdin`
    is a file whose text was given on standard input, in place of what is on disk. `baseline`
    lists findings that are known. `force_exclude` excludes named files too.
    """

    paths: tuple[Path, ...] = ()
    package: str | None = None
    python: Path | None = None
    selection: Selection = field(default_factory=Selection)
    stdin: SourceFile | None = None
    baseline: Path | None = None
    force_exclude: bool = False
    cache: bool = True
    jobs: int = field(default_factory=processors)


@dataclass(frozen=True, slots=True)
class Run:
    """A request that was made concrete: the files, the options, the codes that are selected.

    `roots` are the folders with the project's metadata, empty for an installed package.
    `dependencies` says what stands for each dependency. `unread` counts the files that could not
    be read or decoded.
    """

    config: Config
    targets: tuple[Path, ...]
    roots: tuple[Path, ...]
    files: tuple[SourceFile, ...]
    errors: tuple[FileError, ...]
    options: AnalysisOptions
    codes: frozenset[str]
    dependencies: tuple[Dependency, ...] = ()
    unread: int = 0

    @property
    def count(self) -> int:
        """How many files the run is about, those that could not be read among them."""
        return len(self.files) + self.unread


def check(request: Request) -> Report:
    """Run the analysis and return what is to be reported.

    Raises UserError for a request that cannot be carried out.
    """
    run = prepare(request)
    return judge(run, examine(run, request), request.baseline)


def prepare(request: Request) -> Run:
    """Find the configuration, the files and the dependencies. Raises as `check` does."""
    config, targets = _aim(request)
    layers = [
        Selection(config.select, config.ignore, config.extend_select),
        request.selection,
    ]
    codes = rules.select(layers)
    if not codes:
        raise UserError("no rule is selected, so nothing would be checked")
    files, missing, unread = _load(targets, request, config)
    roots = () if request.package else tuple(dict.fromkeys(project_roots(targets)))
    found = tuple(dependencies(targets, files, request.python, config))
    options = _options(config, found, own_packages(targets, files), "AL102" in codes)
    errors = (*missing, *unread)
    return Run(config, targets, roots, files, errors, options, codes, found, len(unread))


def examine(run: Run, request: Request) -> Result:
    """Return the findings of a run, unsuppressed, whether they are selected or not.

    Those of rules about the whole project that are off by default are there only if selected:
    what they look at takes a good part of a run.
    """
    result = _kept(run, request.jobs) if request.cache else _examine(run, request.jobs)
    found = [m.RULE for m in rules.modules() if hasattr(m, "find_project")]
    asked = {rule.code for rule in found if not rule.default and rule.code in run.codes}
    return replace(result, findings=[*result.findings, *project_findings(run, asked)])


def _kept(run: Run, jobs: int) -> Result:
    """Return what `_examine` gives, from the cache where it is there."""
    from aliaslint import cache

    key = _key(run)
    result = cache.load(key)
    if result is None:
        result = _examine(run, jobs)
        cache.store(key, result)
    return result


def stored(run: Run) -> Result | None:
    """Return the findings of an equal run that are kept in the cache, if there are any."""
    from aliaslint import cache

    return cache.load(_key(run))


def _key(run: Run) -> str:
    from aliaslint import cache
    from aliaslint.program.dependencies import declarations_state

    declared = declarations_state(run.targets)
    return cache.key(run.files, run.options, run.roots, run.config, run.targets, declared)


def _examine(run: Run, jobs: int) -> Result:
    from aliaslint.analysis import analyse

    result = analyse(run.files, run.options, jobs=jobs)
    usual = {rule.code for rule in rules.rules() if rule.default}
    result.findings.extend(project_findings(run, usual))
    return result


def project_findings(run: Run, codes: Container[str]) -> list[Finding]:
    """Return what the rules about the whole project find, those with these codes."""
    project = Project(run.roots, run.targets, run.files, run.options, run.config)
    modules = [module for module in rules.modules() if module.RULE.code in codes]
    finders = [getattr(module, "find_project", None) for module in modules]
    return [finding for find in finders if find for finding in find(project)]


def judge(run: Run, result: Result, baseline: Path | None = None) -> Report:
    """Decide what of a result is shown, and summarise."""
    sources = {source.path: source for source in run.files}
    report = Report(
        errors=sorted({*run.errors, *result.errors}, key=lambda e: (str(e.path), e.line or 0)),
        summary=dict(result.summary),
        sources=sources,
        codes=run.codes,
    )
    findings = sorted(result.findings, key=Finding.sort_key)
    by_path = {path: list(group) for path, group in groupby(findings, lambda f: f.path)}
    unused = Unused(run, result)
    for path in sorted({*sources, *by_path}):
        codes = run.codes - ignored_codes(run.config, path)
        found = by_path.get(path, [])
        shown, hidden = _split(path, sources.get(path), found, codes, unused)
        report.findings += [finding for finding in shown if finding.code in codes]
        report.hidden += [finding for finding in hidden if finding.code in codes]
    report.findings.sort(key=Finding.sort_key)
    report.hidden.sort(key=Finding.sort_key)
    if baseline is not None:
        _apply_baseline(report, baseline)
    _summarise(report, run)
    return report


def _split(
    path: Path,
    source: SourceFile | None,
    findings: Sequence[Finding],
    codes: frozenset[str],
    unused: Unused,
) -> tuple[Sequence[Finding], Sequence[Finding]]:
    """Return the findings of one file that are shown and those that comments hide."""
    comments = suppressions.suppressions(source.data, source.text) if source else ()
    if not comments:
        return findings, ()
    judged = suppressions.judge(comments, findings)
    idle = suppressions.judge(comments, unused.find(path, comments, judged.used, codes))
    return [*judged.shown, *idle.shown], [*judged.hidden, *idle.hidden]


def _apply_baseline(report: Report, path: Path) -> None:
    from aliaslint.report import baseline

    lines = Lines(report.sources)
    new, known, stale = baseline.split(report.findings, baseline.load(path), path, lines)
    report.findings, report.known, report.stale = new, known, stale
    report.has_baseline = True


def _summarise(report: Report, run: Run) -> None:
    summary = report.summary
    summary["files"] = run.count
    summary.setdefault("unresolved", 0)
    on = resting_on(run.dependencies, run.files, run.options.cache_protocol)
    summary["dependencies"] = [_dependency_object(d) for d in on]
    summary["findings"] = len(report.findings)
    summary["errors"] = len(report.errors)
    summary["safe_fixes"] = sum(f.fixable == "safe" for f in report.findings)
    summary["unsafe_fixes"] = sum(f.fixable == "unsafe" for f in report.findings)
    summary["suppressed"] = len(report.hidden)
    summary["baselined"] = len(report.known)


def _dependency_object(dependency: Dependency) -> dict[str, str | None]:
    return {
        "name": dependency.name,
        "version": dependency.version,
        "kind": dependency.kind,
        "origin": dependency.origin,
        "hint": dependency.hint,
    }


def _aim(request: Request) -> tuple[Config, tuple[Path, ...]]:
    """Return the configuration and the absolute targets.

    An installed package is looked at with the configuration of the working directory.
    """
    if request.package:
        config = configuration.find(Path.cwd())
        python = request.python or config.python
        return config, (installed_package(request.package, python),)
    named = (request.stdin.path,) if request.stdin else request.paths or (Path(),)
    targets = tuple(Path(os.path.abspath(path)) for path in named)
    return configuration.find(common_folder(targets)), targets


def _load(
    targets: Sequence[Path], request: Request, config: Config
) -> tuple[tuple[SourceFile, ...], tuple[FileError, ...], tuple[FileError, ...]]:
    """Return the files, an error for each path that gave none, and for each that is not read."""
    if request.stdin:
        return (request.stdin,), (), ()
    patterns = DEFAULT_EXCLUDES if config.exclude is None else config.exclude
    excludes = Excludes(config.root, (*patterns, *config.extend_exclude), request.force_exclude)
    discovery = discover(targets, excludes)
    loaded = [read(path) for path in discovery.files]
    files = tuple(source for source in loaded if isinstance(source, SourceFile))
    failed = tuple(error for error in loaded if isinstance(error, FileError))
    return files, discovery.errors, failed


def _options(
    config: Config, dependencies: Iterable[Dependency], own: Mapping[str, Path], thorough: bool
) -> AnalysisOptions:
    """Return the options of the analysis: the source of a dependency, or else its version.

    `own` are packages that the files belong to: what of them is not in the run stands beside
    the dependencies.
    """
    return AnalysisOptions(
        exposed_attributes=config.exposed_attributes,
        shared_attributes=config.shared_attributes,
        cache_protocol=(*_PROTOCOL, *config.cache_protocol),
        dependency_roots={**own, **{d.name: d.root for d in dependencies if d.root}},
        dependency_versions={
            d.name: d.version for d in dependencies if d.kind == "table" and d.version
        },
        thorough=thorough,
    )


def ignored_codes(config: Config, path: Path) -> frozenset[str]:
    """Return the codes that `per-file-ignores` switches off in a file."""
    ignored: set[str] = set()
    for pattern, selectors in config.per_file_ignores.items():
        if _matches(pattern, path, config.root):
            ignored.update(*map(rules.matching, selectors))
    return frozenset(ignored)


def _matches(pattern: str, path: Path, root: Path) -> bool:
    """Match like a line of a `.gitignore` in `root`; `!` in front negates the whole pattern."""
    from pathspec import GitIgnoreSpec

    relative = os.path.relpath(path, root).replace(os.sep, "/")
    wanted = not pattern.startswith("!")
    return GitIgnoreSpec.from_lines([pattern.removeprefix("!")]).match_file(relative) is wanted
