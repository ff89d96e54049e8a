"""What is known about a line, as data. The reports in `text` and `json` only read it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from aliaslint.findings import Finding

Resolution = Literal["function", "class", "protocol", "library", "unresolved", "unseen"]
Status = Literal["reported", "unselected", "suppressed"]
How = Literal["in-place", "rebinds"]


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A line of a file; `text` is the source that stands there, on one line."""

    path: Path
    line: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind that a value may have.

    `name` is "array", "int", "bool", "number", "text", "none", "object", "container", "function",
    "class", "module", "other" or "unknown". `detail` says which class, container or function;
    `place` is where that class or function is defined.
    """

    name: str
    detail: str = ""
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """A statement that changes an attribute: in place, or by binding a new value to it."""

    how: How
    place: Place


@dataclass(frozen=True, slots=True)
class InClass:
    """What an attribute is in one class that the object may be of, and what updates it."""

    name: str
    place: Place
    kinds: tuple[Kind, ...]
    updates: tuple[Update, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """An in-place update that hit a value after it was bound; `through` are the calls to it."""

    place: Place
    through: tuple[Place, ...] = ()
    certain: bool = True  # False: a call that may update, or an update of one of many


@dataclass(frozen=True, slots=True)
class Mention:
    """A name, attribute or element that the line mentions.

    `bound` is True for what the line binds: then it is what holds behind the line, else what
    holds in front of it. `same_as` are the other names and fields that hold the same array or
    object; `made` is where a new one was made, `captured` where a live one was taken. `classes`
    says more of an attribute whose object may be of several classes; `guessed` if only the cache
    protocol says which. `stale` lists the updates that changed it behind its back.
    """

    text: str
    column: int
    bound: bool
    kinds: tuple[Kind, ...]
    same_as: tuple[str, ...] = ()
    made: tuple[Place, ...] = ()
    captured: tuple[Place, ...] = ()
    parameter: bool = False
    classes: tuple[InClass, ...] = ()
    guessed: bool = False
    stale: tuple[Change, ...] = ()

    def has(self, name: str) -> bool:
        return any(kind.name == name for kind in self.kinds)

    @property
    def plain(self) -> bool:
        """True for what nobody can change behind its name: numbers, text, None."""
        names = {"int", "bool", "number", "text", "none"}
        return bool(self.kinds) and all(kind.name in names for kind in self.kinds)


@dataclass(frozen=True, slots=True)
class Callee:
    """Something that a call may run: a function or class of the program."""

    name: str
    place: Place | None


@dataclass(frozen=True, slots=True)
class Call:
    """A call on the line: what it resolved to, and what it does with handles.

    `callees` are what it may run of the program, `outside` the name of what lies outside of it.
    `effect` is a clause in words; `updates` are the in-place updates that were seen to happen
    through the call.
    """

    text: str
    column: int
    resolution: Resolution
    callees: tuple[Callee, ...] = ()
    outside: str = ""
    effect: str = ""
    updates: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """A finding that this line takes part in.

    `roles` are what the line is in it: "place", or the roles of its steps. `status` says whether
    `check` shows it; `comment` is the place of the comment that hides it.
    """

    finding: Finding
    roles: tuple[str, ...]
    status: Status
    comment: Place | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """All that is known about a line.

    `unit` is the function, class or module that holds it. `reached` is False where no analysed
    path leads to the line. `reasons` say why there is no finding, or none that is shown; `notes`
    say what the answer rests on.
    """

    path: Path
    line: int
    source: str
    unit: str
    reached: bool
    mentions: tuple[Mention, ...] = ()
    calls: tuple[Call, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def reported(self) -> bool:
        """True if `check` reports something on this very line."""
        return any(v.status == "reported" and "place" in v.roles for v in self.verdicts)
