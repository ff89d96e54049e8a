"""Runs a program twice on the same coins, and says which lines read a changed value."""

from __future__ import annotations

import contextlib
import copy
import random
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from benchmarks.fuzz import arrays
from benchmarks.fuzz.tree import HEADER, Program, as_written, with_value_semantics

IMPORTS = len(HEADER)
STEPS = 4000
EMPTY: Mapping[str, Any] = types.MappingProxyType({})


class Endless(Exception):
    """A run asked for too many coins."""


@dataclass(slots=True)
class Truth:
    """What the runs of one program showed.

    `stale` maps a line that read a changed value to the reads observed there; `behind` holds the
    lines that updated in place an array which some object held; `stale_targets` those that
    updated a binding which was stale; `executed` all that read or updated an array.
    """

    stale: dict[int, list[arrays.Stale]] = field(default_factory=dict)
    behind: set[int] = field(default_factory=set)
    stale_targets: set[int] = field(default_factory=set)
    executed: set[int] = field(default_factory=set)
    runs: int = 0

    @property
    def lines(self) -> set[int]:
        """All lines that used a changed value: those that read it, and those that updated it."""
        return set(self.stale) | self.stale_targets


class Coins:
    """The same decisions for both runs of a pair."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)
        self.left = STEPS

    def _count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Endless

    def coin(self) -> bool:
        self._count()
        return self.random.random() < 0.5

    def few(self) -> int:
        self._count()
        return self.random.choice((0, 1, 1, 2, 2, 2, 3, 3))

    def some(self) -> int:
        self._count()
        return self.random.choice((0, 1, 2, 2))


def _box(cls: type) -> type:
    """Do what `@dataclass` does to the one record class, without its cost."""

    def init(self: Any, item: Any) -> None:
        self.item = item

    cls.__init__ = init  # type: ignore[misc]
    return cls


def _partial(function: Callable[..., Any], *bound: Any) -> Callable[[], Any]:
    return lambda: function(*bound)


class FakeMlx(types.SimpleNamespace):
    """What generated programs use of `mlx.core`, over the array of `arrays`."""

    array = arrays.Array

    @staticmethod
    def eval(*_: Any) -> None:
        return None


def load(code: Any, coins: Coins, instead: Mapping[str, Any] = EMPTY) -> dict[str, Any]:
    """Run the definitions of a compiled program and return its namespace.

    `instead` replaces what the program would be given under these names.
    """
    names: dict[str, Any] = {
        "__name__": "generated",
        "copy": copy,
        "dataclass": _box,
        "partial": _partial,
        "mx": FakeMlx,
        "coin": coins.coin,
        "few": coins.few,
        "some": coins.some,
        "use": arrays.use,
        "put": arrays.put,
        **instead,
    }
    exec(code, names)
    for value in list(names.values()):
        if isinstance(value, type) and "Cache" in value.__name__ and "__init__" in vars(value):
            _register(value)
    if "Kept" in names:
        arrays.tape.owners.append(names["Kept"])
    return names


def _register(cls: type) -> None:
    plain = cls.__init__  # type: ignore[misc]

    def init(self: Any, *values: Any) -> None:
        arrays.tape.owners.append(self)
        plain(self, *values)

    cls.__init__ = init  # type: ignore[misc]


def without_imports(source: str) -> str:
    """Return the source with blank lines in place of its imports: the line numbers stay."""
    return "\n" * IMPORTS + "\n".join(source.split("\n")[IMPORTS:])


def run_pair(written: Any, valued: Any, seed: str) -> arrays.Tape:
    """Run both writings of a program on the coins of `seed`."""
    tape = arrays.start()
    for code in (valued, written):
        coins = Coins(seed)
        names = load(code, coins)
        with contextlib.suppress(ValueError, IndexError, Endless):
            names["main"]()
        if tape.recording:
            tape.replay()
    if tape.position != len(tape.recorded):
        raise AssertionError("the two writings do not read alike")
    return tape


def values_used(source: str, seed: str, real: bool) -> list[arrays.Value]:
    """Return what `use` was given in one run of `source`, by MLX itself if `real`.

    No read is corrected: this is to show that `arrays` behaves as MLX does.
    """
    tape = arrays.start()
    coins = Coins(seed)
    instead: dict[str, Any] = {}
    if real:
        import mlx.core as mx

        instead = {"mx": mx, "use": partial(_use_real, tape.used), "put": _put_real}
    code = compile(without_imports(source), "<generated>", "exec")
    names = load(code, coins, instead)
    with contextlib.suppress(ValueError, IndexError, Endless):
        names["main"]()
    return tape.used


def _use_real(used: list[arrays.Value], *values: Any) -> None:
    for value in values:
        plain = value.tolist() if hasattr(value, "tolist") else value
        used.append(tuple(plain) if isinstance(plain, list) else (plain, plain))


def _put_real(array: Any, index: int, item: Any) -> Any:
    new = copy.copy(array)
    new[index] = item
    return new


def observe(program: Program, runs: int, seed: str = "0") -> Truth:
    """Run `program` on the coins of `runs` seeds and collect what they show."""
    written = compile(without_imports(as_written(program)), "<generated>", "exec")
    valued = compile(without_imports(with_value_semantics(program)), "<generated>", "exec")
    truth = Truth()
    for number in range(runs):
        add(truth, run_pair(written, valued, f"{seed}/{number}"))
    return truth


def add(truth: Truth, tape: arrays.Tape) -> None:
    """Add to `truth` what one pair of runs showed."""
    truth.runs += 1
    truth.behind |= tape.behind
    truth.stale_targets |= tape.stale_targets
    truth.executed |= tape.lines
    for read in tape.stale:
        known = truth.stale.setdefault(read.line, [])
        if read not in known:
            known.append(read)
