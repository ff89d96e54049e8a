"""The rules: one module a rule, found by their names, each with a module-level `RULE`.

A rule module is `alNNN.py`. It holds `RULE = Rule(...)`, which is the rule's metadata and its
documentation page, and may hold

- `find_in_program(evidence)`: the detection on the program, called by `aliaslint.analysis`;
- `find_project(project: Project) -> Iterable[Finding]`: a check of the whole project rather than
  of a program (configuration, declared dependencies), called by `aliaslint.engine` once a run.

Both make their findings with `RULE.finding(...)`, so that name, severity and wording live in
one place.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING

from aliaslint.errors import UserError
from aliaslint.findings import Finding, Repair, Severity, Span, Step

if TYPE_CHECKING:
    from aliaslint.analysis import AnalysisOptions
    from aliaslint.source.config import Config
    from aliaslint.source.files import SourceFile


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: what it is called, what it says, and its documentation page.

    `message` is a template for `str.format`; the fields it takes are named in it. The sections
    from `what` on are Markdown; `fix` says when the fix is safe, and is empty without a fix.
    `language` is what the examples are written in.
    """

    code: str
    name: str
    summary: str
    message: str
    severity: Severity
    default: bool
    what: str
    why: str
    example: str = ""
    instead: str = ""
    known_problems: str = ""
    fix: str = ""
    language: str = "python"

    def finding(
        self,
        path: Path,
        span: Span,
        *,
        trace: tuple[Step, ...] = (),
        repair: Repair | None = None,
        severity: Severity | None = None,
        obstacle: str = "",
        **fields: object,
    ) -> Finding:
        """Return a finding of this rule; `fields` fill the message's template."""
        message = self.message.format(**fields)
        level = severity or self.severity
        why = "" if repair else obstacle
        return Finding(self.code, self.name, message, level, path, span, trace, repair, why)


@dataclass(frozen=True, slots=True)
class Project:
    """What a rule about the whole project sees.

    `roots`: the folders that hold the project metadata of the targets (pyproject.toml, setup.py,
    setup.cfg, requirements*.txt), nearest above each target, absolute and without repetition;
    empty for an installed package. `targets`: the files and folders that were asked for.
    `files`: the source files of the run. `options`: what the analysis was given, with the
    dependencies that were located. `config`: `[tool.aliaslint]`.
    """

    roots: tuple[Path, ...]
    targets: tuple[Path, ...]
    files: tuple[SourceFile, ...]
    options: AnalysisOptions
    config: Config


class UnknownRule(UserError):
    """A selector that no rule matches; the message suggests what may have been meant."""


@cache
def modules() -> tuple[ModuleType, ...]:
    """Return the rule modules in the order of their codes."""
    names = sorted(m.name for m in iter_modules(__path__) if m.name.startswith("al"))
    return tuple(importlib.import_module(f"{__name__}.{name}") for name in names)


@cache
def rules() -> tuple[Rule, ...]:
    """Return all rules in the order of their codes."""
    return tuple(module.RULE for module in modules())


@cache
def by_code() -> dict[str, Rule]:
    return {rule.code: rule for rule in rules()}


def lookup(text: str) -> Rule:
    """Return the rule of a code or name, in any case. Raises UnknownRule."""
    for rule in rules():
        if text.upper() == rule.code or text.lower() == rule.name:
            return rule
    raise UnknownRule(f"unknown rule {text!r}{_suggest(text)}")


def matching(selector: str) -> frozenset[str]:
    """Return the codes that a selector stands for: a code, a prefix, a name, or ALL.

    Raises UnknownRule if there is none.
    """
    wanted = selector.strip()
    if wanted.upper() == "ALL":
        return frozenset(by_code())
    codes = frozenset(
        rule.code
        for rule in rules()
        if wanted.lower() == rule.name
        or (rule.code.startswith(wanted.upper()) and len(wanted) >= len("AL"))
    )
    if not codes:
        raise UnknownRule(f"unknown rule selector {selector!r}{_suggest(wanted)}")
    return codes


@dataclass(frozen=True, slots=True)
class Selection:
    """One layer of selection options: those of the configuration or of the command line."""

    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()


def select(layers: Sequence[Selection]) -> frozenset[str]:
    """Return the selected codes: the default ones, changed by each layer in turn.

    As in ruff: in a layer a longer selector beats a shorter one and `ignore` beats `select` of
    the same length; `select` of a later layer replaces everything before it, except that an
    `ignore` of a layer without `select` still holds. Raises UnknownRule.
    """
    chosen = {rule.code for rule in rules() if rule.default}
    carried: tuple[str, ...] = ()
    for layer in layers:
        on = [*(layer.select or ()), *layer.extend_select]
        updates = _updates(on, [*layer.ignore, *carried])
        if layer.select is not None:
            chosen.clear()
        chosen |= {code for code, wanted in updates.items() if wanted}
        chosen -= {code for code, wanted in updates.items() if not wanted}
        carried = () if layer.select is not None else layer.ignore
    return frozenset(chosen)


def _updates(on: Iterable[str], off: Iterable[str]) -> dict[str, bool]:
    """Return what each code is set to, by the most specific selector that matches it."""
    wanted = [(selector, True) for selector in on] + [(selector, False) for selector in off]
    updates: dict[str, bool] = {}
    for selector, value in sorted(wanted, key=lambda pair: (_specificity(pair[0]), not pair[1])):
        updates.update(dict.fromkeys(matching(selector), value))
    return updates


def _specificity(selector: str) -> int:
    """ALL is the least specific, then prefixes by length; a code and a name are alike."""
    if selector.strip().upper() == "ALL":
        return 0
    return min(len(selector.strip()), len("AL000"))


def _suggest(text: str) -> str:
    from difflib import get_close_matches

    words = [word for rule in rules() for word in (rule.code, rule.name)]
    close = get_close_matches(text.upper(), words, n=1) or get_close_matches(
        text.lower(), words, n=1
    )
    return f"; did you mean {close[0]}?" if close else " (`aliaslint rules` lists them)"
