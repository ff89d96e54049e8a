"""Where the generator takes its decisions from, what is in scope, and expressions over it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, TypeVar

T = TypeVar("T")
Kind = Literal[
    "cache", "array", "number", "caches", "arrays", "dict", "box", "call", "steps", "model"
]


class Choices(Protocol):
    """Where the generator takes its decisions from."""

    def below(self, bound: int) -> int:
        """Return a number from 0 up to, not including, `bound`."""


class RandomChoices:
    """Decisions from the pseudo-random generator of a seed."""

    def __init__(self, seed: int | str) -> None:
        self._random = random.Random(seed)

    def below(self, bound: int) -> int:
        return self._random.randrange(bound)


@dataclass(slots=True)
class Variable:
    """A name in scope. `lent` marks an array that came in through a parameter."""

    name: str
    kind: Kind
    lent: bool = False
    scalar: bool = False  # a cache that may count in ints


@dataclass(slots=True)
class Helper:
    """A generated function: the kinds of its parameters and of what it returns."""

    name: str
    parameters: tuple[Kind, ...]
    returns: str
    called: bool = False


@dataclass(slots=True)
class Scope:
    """The names that are surely bound here, and where we are."""

    names: list[Variable] = field(default_factory=list)
    function: str = "main"
    returns: str = ""
    loops: int = 0
    depth: int = 0

    def inner(self, loops: int = 0) -> Scope:
        deeper, around = self.depth + 1, self.loops + loops
        return replace(self, names=list(self.names), depth=deeper, loops=around)

    def of(self, *kinds: Kind) -> list[Variable]:
        return [v for v in self.names if v.kind in kinds]


class Expressions:
    """Decisions, names in scope, and expressions over them."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.counter = 0
        self.helpers: list[Helper] = []
        self.classes: list[str] = []
        self.scalar_class = False
        self.protocol = "update_and_fetch" if self.chance(10) else "store"

    # Decisions

    def pick(self, items: Sequence[T]) -> T:
        return items[self.choices.below(len(items))]

    def chance(self, percent: int) -> bool:
        return self.choices.below(100) < percent

    def fresh(self, stem: str) -> str:
        self.counter += 1
        return f"{stem}{self.counter}"

    def number(self) -> str:
        """Return a literal that no other literal or sum of a few others is likely to equal."""
        self.counter += 1
        return str(self.counter * 7919 + self.choices.below(5) * 104729 + 13)

    # Names

    def bind(self, scope: Scope, kind: Kind, lent: bool = False) -> str:
        """Return a name to assign a value of `kind` to: mostly a new one, else one in scope."""
        old = [v for v in scope.of(kind) if v.name[0] not in "ps"]
        if old and self.chance(25):
            variable = self.pick(old)
            variable.lent |= lent
            return variable.name
        stem = {"array": "a", "number": "n", "cache": "c"}.get(kind, kind)
        name = self.fresh(stem)
        scope.names.append(Variable(name, kind, lent))
        return name

    def cache(self, scope: Scope, arrays_only: bool = True) -> str | None:
        """Return an expression for some cache: a name, or an element of a list of caches."""
        names = [v.name for v in scope.of("cache") if not (arrays_only and v.scalar)]
        names += [f"{v.name}[0]" for v in scope.of("caches")]
        return self.pick(names) if names else None

    def live(self, scope: Scope) -> tuple[str, bool] | None:
        """Return an expression that yields a live handle, and whether a parameter lent it."""
        options: list[tuple[str, bool]] = [(v.name, v.lent) for v in scope.of("array")]
        options += [(f'{v.name}["o"]', v.lent) for v in scope.of("dict")]
        options += [(f"{v.name}.item", v.lent) for v in scope.of("box")]
        options += [(f"{v.name}[0]", v.lent) for v in scope.of("arrays")]
        cache = self.cache(scope)
        if cache is not None:
            attribute = self.pick(("offset", "offset", "lengths", "saved"))
            options += [(f"{cache}.{attribute}", False)] * max(2, len(options))
            options += [(f"{cache}.peek", False), (f"{cache}.state", False)]
            options += [(f'getattr({cache}, "offset")', False), (f"{cache}.hand()", False)]
        return self.pick(options) if options else None

    def frozen(self, scope: Scope) -> str | None:
        """Return an expression that yields a new handle."""
        live = self.live(scope)
        if live is None:
            return None
        text = live[0]
        forms = ("mx.array({})", "{} + 0", "-{}", "{}[:]", "copy.copy({})", "copy.deepcopy({})")
        return self.pick(forms).format(text)

    def plain(self, scope: Scope) -> tuple[str, bool] | None:
        """Return an expression for an array, live mostly."""
        if self.chance(15):
            text = self.frozen(scope)
            return (text, False) if text else None
        first = self.live(scope)
        if first is not None and self.chance(8):
            second = self.live(scope)
            if second is not None:
                return f"{first[0]} if coin() else {second[0]}", first[1] or second[1]
        return first

    def operand(self, scope: Scope) -> str:
        live = self.live(scope) if self.chance(20) else None
        return live[0] if live else self.number()

    def result(self, scope: Scope) -> str | None:
        """Return what a function of this scope may return, by what it promises to."""
        if scope.returns == "cache":
            return self.cache(scope)
        one, two = self.plain(scope), self.plain(scope)
        if scope.returns == "array":
            return one[0] if one else None
        return f"{one[0]}, {two[0]}" if one and two else None
