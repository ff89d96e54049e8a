"""Kinds of values, as sets of atoms: what a handle or an object may be.

A type is a frozenset of atoms; the empty set means "nothing known yet", `UNKNOWN` means that
anything is possible. Only `ARRAY` in the set makes an in-place update of a handle count.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Inst:
    """An instance of a class of the program, or (key with a dot) of an outside library."""

    key: str


@dataclass(frozen=True, slots=True)
class ExtInst:
    dotted: str


@dataclass(frozen=True, slots=True)
class Seq:
    """A list, tuple or set of elements of one type."""

    kind: str
    element: Type


@dataclass(frozen=True, slots=True)
class Tup:
    """A tuple display with a type for each position."""

    elements: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class Map:
    element: Type


@dataclass(frozen=True, slots=True)
class FuncOf:
    key: str


@dataclass(frozen=True, slots=True)
class GenOf:
    """A generator or coroutine object of a function of the program, not yet entered."""

    key: str


@dataclass(frozen=True, slots=True)
class PartialOf:
    """What `functools.partial` gives back, or `kind` of `operator`; its parts are locations of
    the object, and `names` those of them that are constants. An attribute that is "bound" holds
    the function of which the key is given, bound to the object that has the attribute."""

    kind: str = "partial"
    names: tuple[int | str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClassOf:
    key: str


@dataclass(frozen=True, slots=True)
class Ext:
    """A name of an outside library, or a builtin: `mlx.core.array`, `builtins.len`."""

    dotted: str


@dataclass(frozen=True, slots=True)
class Mod:
    key: str


Atom = str | Inst | ExtInst | Seq | Tup | Map | FuncOf | GenOf | PartialOf | ClassOf | Ext | Mod
Type = frozenset[Atom]

NOTHING: Type = frozenset()
ARRAY: Type = frozenset({"array"})
SCALAR: Type = frozenset({"scalar"})
NONE: Type = frozenset({"none"})
OTHER: Type = frozenset({"other"})
STR: Type = frozenset({"str"})
UNKNOWN: Type = frozenset({"unknown"})

PLAIN = frozenset({"scalar", "none", "str", "other"})


def may_be_array(type_: Type) -> bool:
    return "array" in type_


def never_array(type_: Type) -> bool:
    """True where every atom is known and none of them is an array or unknown."""
    return bool(type_) and "array" not in type_ and "unknown" not in type_


def is_plain(type_: Type) -> bool:
    """True for values that are immutable and hold no handle: numbers, text, None."""
    return bool(type_) and all(atom in PLAIN for atom in type_)


_ORDERED: dict[Type, tuple[Atom, ...]] = {}


def ordered(type_: Type) -> tuple[Atom, ...]:
    """Return the atoms in one order whatever the hash seed, so that results are stable."""
    atoms = _ORDERED.get(type_)
    if atoms is None:
        atoms = _ORDERED[type_] = tuple(sorted(type_, key=repr))
    return atoms


def known_atoms(type_: Type) -> Type:
    """Return the atoms to act on: what may be an array is taken for one, not for anything."""
    if "array" in type_ and "unknown" in type_:
        return type_ - UNKNOWN
    return type_
