"""A small array in pure Python that behaves as `mx.array` does, and tells of its reads.

Each read is an event. The run with value semantics records the values read, one after the other.
The run of the program as written meets the same events in the same order, since no branch depends
on a value; where its value differs, the read is stale. It then goes on with the recorded value, so
that what is computed from a stale read is not taken for stale as well.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Value = tuple[int, ...]


@dataclass(slots=True)
class Stale:
    """A stale read: its line, the lines that updated the handle, and what explains it instead.

    `through` holds lines of updates whose target was stale already: a report that names one of
    them instead of the line itself tells of the same fault.
    """

    line: int
    updates: frozenset[int]
    through: frozenset[int]


@dataclass(slots=True)
class Tape:
    """The events of one pair of runs."""

    recorded: list[Value] = field(default_factory=list)
    position: int = -1
    stale: list[Stale] = field(default_factory=list)
    used: list[Value] = field(default_factory=list)
    owners: list[Any] = field(default_factory=list)
    behind: set[int] = field(default_factory=set)
    stale_targets: set[int] = field(default_factory=set)
    lines: set[int] = field(default_factory=set)

    @property
    def recording(self) -> bool:
        return self.position < 0

    def replay(self) -> None:
        """Start the second run of the pair."""
        self.position = 0
        self.used, self.owners = [], []

    def expected(self, value: Value) -> Value:
        """Record `value`, or return what the first run recorded at this event."""
        if self.position < 0:
            self.recorded.append(value)
            return value
        value = self.recorded[self.position]
        self.position += 1
        return value


tape = Tape()


def start() -> Tape:
    """Begin a new pair of runs and return its tape."""
    global tape
    tape = Tape()
    return tape


class Array:
    """A mutable handle on a short vector of ints. All operators but the in-place ones copy."""

    __slots__ = ("tainted", "updates", "value")
    shape = (2,)

    def __init__(self, value: Any) -> None:
        if isinstance(value, Array):
            value = read(value, sys._getframe(1).f_lineno)
        self.value: Value = (value,) * 2 if isinstance(value, int) else tuple(value)
        self.updates: set[int] = set()
        self.tainted: set[int] = set()

    def __add__(self, other: Any) -> Array:
        line = sys._getframe(1).f_lineno
        return Array([a + b for a, b in zip(read(self, line), operand(other, line), strict=True)])

    def __sub__(self, other: Any) -> Array:
        line = sys._getframe(1).f_lineno
        return Array([a - b for a, b in zip(read(self, line), operand(other, line), strict=True)])

    def __radd__(self, other: int) -> Array:
        return Array([other + a for a in read(self, sys._getframe(1).f_lineno)])

    def __rsub__(self, other: int) -> Array:
        return Array([other - a for a in read(self, sys._getframe(1).f_lineno)])

    def __neg__(self) -> Array:
        return Array([-a for a in read(self, sys._getframe(1).f_lineno)])

    def __getitem__(self, index: Any) -> Array:
        value = read(self, sys._getframe(1).f_lineno)
        return Array(value[index])

    def __copy__(self) -> Array:
        return Array(read(self, sys._getframe(2).f_lineno))

    def __deepcopy__(self, memo: Any) -> Array:
        return Array(read(self, sys._getframe(2).f_lineno))

    def __iadd__(self, other: Any) -> Array:
        line = sys._getframe(1).f_lineno
        change(self, line)
        self.value = tuple(a + b for a, b in zip(self.value, operand(other, line), strict=True))
        return self

    def __isub__(self, other: Any) -> Array:
        line = sys._getframe(1).f_lineno
        change(self, line)
        self.value = tuple(a - b for a, b in zip(self.value, operand(other, line), strict=True))
        return self

    def __setitem__(self, index: int, item: Any) -> None:
        line = sys._getframe(1).f_lineno
        change(self, line)
        new = list(self.value)
        new[index] = operand(item, line)[index]
        self.value = tuple(new)

    def __iter__(self) -> Iterator[Array]:
        raise TypeError("generated programs do not iterate over an array")


def put(array: Array, index: int, item: Any) -> Array:
    """Return what `array[index] = item` leaves, as a new array: the event order is the same."""
    line = sys._getframe(1).f_lineno
    new = list(tape.expected(array.value))
    new[index] = operand(item, line)[index]
    return Array(new)


def operand(other: Any, line: int) -> Value:
    """Return the value of an operand, which is an event if it is an array."""
    return read(other, line) if isinstance(other, Array) else (other, other)


def read(array: Array, line: int) -> Value:
    """Return the value of `array` with value semantics, noting whether its own differs."""
    value = tape.expected(array.value)
    tape.lines.add(line)
    if value != array.value:
        tape.stale.append(Stale(line, frozenset(array.updates), frozenset(array.tainted)))
    return value


def change(array: Array, line: int) -> None:
    """Note an update in place at `line`: a stale target, and owners that it changes."""
    tape.lines.add(line)
    if tape.expected(array.value) != array.value:
        array.tainted.add(line)
        tape.stale_targets.add(line)
    array.updates.add(line)
    if any(v is array for owner in tape.owners for v in vars(owner).values()):
        tape.behind.add(line)


def use(*values: Any) -> None:
    """A function outside the program: it reads each array that it is given."""
    line = sys._getframe(1).f_lineno
    for value in values:
        if isinstance(value, Array):
            tape.used.append(read(value, line))
        else:
            tape.used.append((value, value))
