"""The data that every part of aliaslint speaks: spans, traces, findings, results.

This module imports nothing of the package, so that every folder may import it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

Role = Literal["capture", "hand-over", "call", "mutation", "read"]
Safety = Literal["safe", "unsafe"]
Severity = Literal["error", "warning"]
Form = Literal["array", "keep-int", "keep-any"]
KEEPS: tuple[Form, ...] = ("array", "keep-int", "keep-any")  # the more, the later
Action = Literal[
    "rebind",  # `x op= e` becomes `x = x op e`; span: the augmented assignment
    "snapshot",  # the live handle is copied where it is captured; span: the expression
    "copy-in-callee",  # the same, in the function that gives it back in a container
    "copy-after",  # `o = mx.array(o)` after `o, p = f(c)`; span: the statement, or its header
    "copy-first",  # `self.a = mx.array(self.a)` before `self.a[i] = v`; span: the statement
    "store-back",  # `o += n` becomes `self.a = o = o + n`; span: the statement
    "native-rank",  # drop an inverse pair of reshapes around a RoPE call; span: the call
    "remove-suppression",  # span: the comment, or the code inside it, that hides nothing
]


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A stretch of source text. Lines and columns start at 1; columns count characters.

    The end column is exclusive: `ab` at the start of a file is `Span(1, 1, 1, 3)`.
    """

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a trace, in the order in which it happens when the program runs."""

    role: Role
    path: Path
    span: Span
    message: str


@dataclass(frozen=True, slots=True)
class Named:
    """A target that holds a live array: `text` names it, `form` is that of its copy.

    `many`: it is a starred one, a list of values.
    """

    text: str
    form: Form
    many: bool = False


@dataclass(frozen=True, slots=True)
class Repair:
    """What a fix of a finding would do, decided by the analysis and carried out by `fix`.

    `form` of a snapshot: "array" where every value is an mx.array or every use takes one
    (`mx.array(...)`), "keep-int" where the value may be an int that must stay one
    (`copy.copy(...)` or `... + 0`), "keep-any" where it may be None (`copy.copy(...)`).
    `owner` of a store-back: the source text of the owner's attribute (`self.offset`).
    `repeatable` of a rebind: what is written to may be evaluated a second time, after the
    right-hand side; where that is not known, a variable holds its owner.
    `names` of a copy after a statement: what is copied. `also` are further spans of the repair,
    `path` the file of all of them where it is not that of the finding.
    """

    action: Action
    span: Span
    safety: Safety
    reason: str = ""
    form: Form = "array"
    owner: str = ""
    repeatable: bool = False
    names: tuple[Named, ...] = ()
    also: tuple[Span, ...] = ()
    path: Path | None = None

    @property
    def spans(self) -> tuple[Span, ...]:
        return (self.span, *self.also)


def joined(repairs: Iterable[Repair]) -> dict[Span, Repair]:
    """Return one repair a statement, which makes the copies of all of them: of two forms of one
    copy, that which keeps more."""
    found: dict[Span, Repair] = {}
    for repair in repairs:
        known = found.setdefault(repair.span, repair)
        names: dict[str, Named] = {}
        for name in (*known.names, *repair.names):
            held = names.setdefault(name.text, name)
            names[name.text] = max(held, name, key=lambda n: KEEPS.index(n.form))
        found[repair.span] = replace(known, names=tuple(names.values()))
    return found


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault, with the evidence for it. `path` is absolute; reports make it relative.

    `obstacle` says why it has no repair, where findings of its rule have one as a rule.
    """

    code: str
    name: str
    message: str
    severity: Severity
    path: Path
    span: Span
    trace: tuple[Step, ...] = ()
    repair: Repair | None = None
    obstacle: str = ""

    @property
    def fixable(self) -> Safety | None:
        return self.repair.safety if self.repair else None

    def sort_key(self) -> tuple[str, Span, str]:
        return (str(self.path), self.span, self.code)


@dataclass(frozen=True, slots=True)
class FileError:
    """A file that could not be read or parsed; the other files are still handled."""

    path: Path
    line: int | None
    column: int | None
    message: str


@dataclass(slots=True)
class Result:
    """What one run found: findings in stable order, errors, and counts for the summary.

    `summary` holds at least `files`, `unresolved` (calls that did not resolve) and
    `dependencies` (a list of {"name", "version", "origin"}: what stood for each dependency).
    """

    findings: list[Finding] = field(default_factory=list)
    errors: list[FileError] = field(default_factory=list)
    summary: dict[str, object] = field(default_factory=dict)
