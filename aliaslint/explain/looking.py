"""Runs as much of the analysis as one line needs, and looks on.

The program is the package that the file belongs to (or the file and those beside it that imports
connect it with). What is read of it are the file, the classes that define the cache protocol, and
the files that may call the function that holds the line; imports bring in the rest as they are
followed. What is interpreted are the functions that hold the line, as any `check` would, and then
the most telling of their callers, up to a number. If the findings of a `check` of the same
program are stored, or are asked for, they are the verdict.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from aliaslint.depth import room
from aliaslint.errors import UserError
from aliaslint.explain.where import Spot, locate
from aliaslint.findings import FileError, Finding
from aliaslint.source.files import SourceFile, read, split_lines
from aliaslint.source.parsing import TOO_DEEP, parse

if TYPE_CHECKING:
    from aliaslint.engine import Run
    from aliaslint.explain.recorder import Recorder
    from aliaslint.flow.context import Analysis
    from aliaslint.lower import ir
    from aliaslint.program.modules import Module

MAX_FILES = 12  # that are read because they may call the function
MAX_CALLERS = 16  # functions that are interpreted for the same reason
CALLER_FUEL = 1_000  # statements that are interpreted for each of them
CALLERS_FUEL = 3_000  # and for all of them
METADATA = frozenset("shape dtype ndim size nbytes itemsize".split())
MAX_BESIDE = 500  # files of one folder that are searched for imports
IMPORT = re.compile(rb"^[ \t]*(?:from[ \t]+\.*|import[ \t]+)(\w+)", re.MULTILINE)
DUNDER = re.compile(r"__\w+__$")


@dataclass(slots=True)
class Look:
    """A line, the analysis that ran for it, and what it saw and found.

    `holders` counts the functions that hold the line and were interpreted, `callers` those that
    may call it, of `candidates` in the files that were read; `unread` counts further files that
    mention it. `abandoned` is True if interpreting one that holds the line was given up; then
    calls in it were not followed.
    `complete`: the findings are those of a whole check.
    """

    source: SourceFile
    spot: Spot
    run: Run
    recorder: Recorder
    findings: list[Finding] = field(default_factory=list)
    holders: int = 0
    callers: int = 0
    candidates: int = 0
    unread: int = 0
    abandoned: bool = False
    complete: bool = False


def look(path: Path, line: int, python: Path | None, complete: bool) -> Look:
    """Analyse what a line needs. Raises UserError where there is nothing to explain.

    `complete`: check the whole program as well, unless that has been done.
    """
    with room():
        return _look(path, line, python, complete)


def _look(path: Path, line: int, python: Path | None, complete: bool) -> Look:
    source = read(path)
    if isinstance(source, FileError):
        place = path if source.line is None else f"{path}:{source.line}"
        raise UserError(f"{place}: {source.message}")
    spot = spot_of(path, source, line)
    run, source = program(source, python)
    try:
        result = analyse(run, source, spot)
    except RecursionError:
        raise UserError(f"{path}: {TOO_DEEP}") from None
    whole = checked(run, complete)
    if whole is not None:
        result.findings, result.complete = whole, True
    return result


def spot_of(path: Path, source: SourceFile, line: int) -> Spot:
    lines = split_lines(source.text)
    if lines and not lines[-1]:
        lines.pop()
    if not 0 < line <= len(lines):
        raise UserError(f"{path}: has no line {line}")
    tree = parse(source)
    if isinstance(tree, FileError):
        place = path if tree.line is None else f"{path}:{tree.line}"
        raise UserError(f"{place}: {tree.message}")
    try:
        return locate(tree, lines, line)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


# --- which files


def program(source: SourceFile, python: Path | None) -> tuple[Run, SourceFile]:
    """Return the run of the package that a file belongs to, and the file as the run has it."""
    from aliaslint.engine import Request, prepare
    from aliaslint.targets import own_packages

    folders = tuple(own_packages((source.path,), (source,)).values())
    around = folders or (source.path, *connected(source))
    run = prepare(Request(paths=around, python=python))
    known = found_in(run, source)
    if known is None:  # the file is excluded
        run = prepare(Request(paths=(*around, source.path), python=python))
        known = found_in(run, source)
    return run, known or source


def found_in(run: Run, source: SourceFile) -> SourceFile | None:
    """Return the file as the run has it: under another name if there are links."""
    real = source.path.resolve()
    same = (f for f in run.files if f.path == source.path or f.path.resolve() == real)
    return next(same, None)


def connected(source: SourceFile) -> tuple[Path, ...]:
    """Return the files beside a file outside of packages that imports connect it with."""
    imports: dict[Path, set[str]] = {}
    for path in sorted(source.path.parent.glob("*.py"))[:MAX_BESIDE]:
        other = source if path == source.path else read(path)
        if isinstance(other, SourceFile):
            imports[path] = {name.decode() for name in IMPORT.findall(other.data)}
    found = {source.path: source.path.stem}
    while True:
        stems = set(found.values())
        wanted = {name for path in found for name in imports.get(path, ())}
        more = {p: p.stem for p, names in imports.items() if p.stem in wanted or names & stems}
        if more.keys() <= found.keys():
            return tuple(sorted(found.keys() - {source.path}))
        found |= more


def telling_files(run: Run, source: SourceFile, spot: Spot) -> tuple[list[SourceFile], int]:
    """Return the files to parse: this one, the protocol's classes, and likely callers; and how
    many of the last were left out.
    """
    protocol = "|".join(map(re.escape, run.options.cache_protocol))
    defines = re.compile(rf"\bdef\s+(?:{protocol})\b".encode())
    words = [re.compile(rf"\b{re.escape(word)}\b".encode()) for word in needles(source, spot)]
    captures = capture_pattern(source, spot)
    chosen = [source]
    likely: list[tuple[int, int, SourceFile]] = []
    for number, other in enumerate(run.files):
        if other is source:
            continue
        if defines.search(other.data):
            chosen.append(other)
        elif words and all(word.search(other.data) for word in words):
            likely.append((-len(captures.findall(other.text)), number, other))
    likely.sort(key=lambda entry: entry[:2])
    chosen += [other for _, _, other in likely[:MAX_FILES]]
    return chosen, max(0, len(likely) - MAX_FILES)


def needles(source: SourceFile, spot: Spot) -> list[str]:
    """Return the words that another file has to mention to call the function around the line.

    A method is called by its name, on whatever object. What runs by an operator or by calling an
    object needs its class, and that, as any function, its module.
    """
    function = spot.function
    if function is None:
        return []
    module = source.path.parent.name if is_package(source) else source.path.stem
    if not spot.owner:
        return [function.name, module]
    return [spot.owner, module] if DUNDER.match(function.name) else [function.name]


def is_package(source: SourceFile) -> bool:
    return source.path.name == "__init__.py"


def capture_pattern(source: SourceFile, spot: Spot) -> re.Pattern[str]:
    """Match bindings of the attributes that the line mentions: callers with one tell most."""
    text = split_lines(source.text)[spot.line - 1]
    names = sorted(set(re.findall(r"\.(\w+)\b(?!\()", text)) - METADATA) or ["offset"]
    place = rf"[\w.\[\]]*\.(?:{'|'.join(names)})\b(?!\s*[(\[])"
    return re.compile(rf"^\s*[\w.]+\s*(?::[^=\n]+)?=\s*{place}", re.MULTILINE)


# --- which functions


def analyse(run: Run, source: SourceFile, spot: Spot) -> Look:
    from aliaslint.analysis import assemble
    from aliaslint.explain.recorder import Recorder
    from aliaslint.flow.context import FUEL
    from aliaslint.flow.driver import analyse_root

    files, unread = telling_files(run, source, spot)
    analysis, _ = assemble(files, run.options)
    module = analysis.modules.by_path[source.path]
    assert module is not None
    header = spot.header.lineno if spot.header is not None else 0
    recorder = Recorder(analysis, module.id, spot.line, header, spot.parameters)
    analysis.observer = recorder
    result = Look(source, spot, run, recorder, unread=unread)
    around = holders(analysis, module, spot)
    finished = [analyse_root(analysis, function, cls, FUEL[0]) for function, cls in around]
    result.holders = len(around)
    result.abandoned = not all(finished)
    others = []
    if recorder.may_share:
        others = callers(analysis, source, spot, capture_pattern(source, spot))
    result.candidates = len(others)
    budget = CALLERS_FUEL
    for function, cls in others[:MAX_CALLERS]:
        if budget <= 0:
            break
        analyse_root(analysis, function, cls, CALLER_FUEL)
        budget -= CALLER_FUEL - analysis.fuel
        result.callers += 1
    leftovers(analysis, module, spot)
    result.findings = findings(run, analysis, source, files)
    if result.abandoned and not recorder.reached:
        for function, cls in around:  # once more, for what can be seen without following calls
            analyse_root(analysis, function, cls, 0)
    analysis.observer = None
    return result


Root = tuple["ir.Function", "str | None"]


def holders(analysis: Analysis, module: Module, spot: Spot) -> list[Root]:
    """Return the functions that hold the line, for each class that has them; or the module."""
    from aliaslint.flow.driver import roots

    if spot.function is None:
        return [(analysis.kinds.module_function(module), None)]
    found: list[Root] = []
    for other in list(analysis.modules.targets()):
        for function, cls in roots(analysis, other):
            if function.module == module.id and function.at[0] == spot.function.lineno:
                found.append((function, cls))
    return found


def callers(
    analysis: Analysis, source: SourceFile, spot: Spot, captures: re.Pattern[str]
) -> list[Root]:
    """Return the functions that may call the one around the line, the most telling first.

    What is called by an operator or by calling an object may be called from anywhere in the same
    file, and from where its class is mentioned.
    """
    from aliaslint.flow.driver import roots

    if spot.function is None:
        return []
    module = analysis.modules.by_path[source.path]
    special = bool(DUNDER.match(spot.function.name) and spot.owner)
    words = [re.compile(rf"\b{re.escape(word)}\b") for word in needles(source, spot)]
    ranked: list[tuple[tuple[bool, bool, int], int, Root]] = []
    for other in list(analysis.modules.targets()):
        whole = "\n".join(other.lines)
        if other is not module and not all(word.search(whole) for word in words):
            continue
        for function, cls in roots(analysis, other):
            if other is module and function.at[0] == spot.function.lineno:
                continue
            text = text_of(other, function)
            if special or words[0].search(text):
                rank = (other.is_test, other is not module, -len(captures.findall(text)))
                ranked.append((rank, len(ranked), (function, cls)))
    ranked.sort(key=lambda entry: entry[:2])
    return [root for _, _, root in ranked]


def text_of(module: Module, function: ir.Function) -> str:
    return "\n".join(module.lines[max(function.at[0] - 1, 0) : function.at[2]])


def leftovers(analysis: Analysis, module: Module, spot: Spot) -> None:
    """Interpret the nested functions around the line that nothing was seen to call."""
    from aliaslint.flow.context import FUEL
    from aliaslint.flow.driver import analyse_root

    called = analysis.called()
    for key, function in list(analysis.classes.registered.items()):
        around = function.module == module.id and function.at[0] <= spot.line <= function.at[2]
        if around and key not in called:
            analyse_root(analysis, function, analysis.closure_class.get(key), FUEL[-1])


# --- what is found


def findings(
    run: Run, analysis: Analysis, source: SourceFile, files: Sequence[SourceFile]
) -> list[Finding]:
    """Return the findings of all rules in what was looked at, unselected and unsuppressed.

    Modules that imports brought in belong to the target if the run has them.
    """
    from dataclasses import replace

    from aliaslint import rules
    from aliaslint.analysis import conclude
    from aliaslint.engine import project_findings

    own = {file.path for file in run.files}
    for module in analysis.modules.by_id.values():
        module.in_target = module.in_target or module.path in own
    found = conclude(analysis, run.options)
    if b"rope" in source.data.lower():
        found += project_findings(replace(run, files=tuple(files)), rules.by_code())
    return found


def checked(run: Run, complete: bool) -> list[Finding] | None:
    """Return the findings of a whole check of the program, if it was done or is asked for."""
    from aliaslint.engine import Request, examine, stored

    result = examine(run, Request()) if complete else stored(run)
    return result.findings if result is not None else None


def on_line(path: Path, line: int, found: Iterable[Finding]) -> Iterator[tuple[Finding, list[str]]]:
    """Yield the findings that a line takes part in, with its roles in each."""
    for finding in found:
        roles: list[str] = []
        if finding.path == path and finding.span.line <= line <= finding.span.end_line:
            roles.append("place")
        for step in finding.trace:
            if step.path == path and step.span.line <= line <= step.span.end_line:
                roles.append(step.role)
        if roles:
            yield finding, list(dict.fromkeys(roles))
