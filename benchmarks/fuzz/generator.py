"""Makes random programs over caches and captures from a source of choices."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, TypeVar

from benchmarks.fuzz.tree import Block, Line, Node, Program, block, put, update

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


Maker = Callable[[Scope], "list[Node] | None"]


class Generator:
    """One program in the making."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.counter = 0
        self.helpers: list[Helper] = []
        self.classes: list[str] = []
        self.scalar_class = False
        self.statements = self._weighted()

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

    # Statements

    def _weighted(self) -> list[Maker]:
        table: list[tuple[int, Maker]] = [
            (9, self.capture),
            (2, self.capture_many),
            (2, self.capture_number),
            (1, self.walrus),
            (8, self.advance),
            (3, self.update_attribute),
            (2, self.update_local),
            (1, self.update_member),
            (2, self.put_item),
            (2, self.rebind),
            (2, self.share),
            (12, self.read),
            (2, self.metadata),
            (4, self.branch),
            (2, self.repeat),
            (3, self.walk),
            (2, self.walk_together),
            (1, self.attempt),
            (1, self.within),
            (2, self.member),
            (1, self.append),
            (2, self.gather),
            (1, self.put_member),
            (2, self.closure),
            (3, self.call_closure),
            (3, self.call_helper),
            (1, self.start_steps),
            (2, self.next_step),
            (1, self.new_cache),
            (1, self.copy_cache),
            (1, self.scale),
            (1, self.nonlocal_update),
            (1, self.keep),
            (1, self.model),
            (1, self.early_return),
            (1, self.leave_loop),
        ]
        return [maker for weight, maker in table for _ in range(weight)]

    def body(self, scope: Scope, least: int, most: int) -> list[Node]:
        nodes: list[Node] = []
        wanted = least + self.choices.below(most - least + 1)
        for _ in range(wanted * 3):
            if len(nodes) >= wanted:
                break
            made = self.pick(self.statements)(scope)
            nodes += made or []
            if made and isinstance(made[-1], Line) and made[-1].text in {"break", "continue"}:
                break
        return nodes

    def capture(self, scope: Scope) -> list[Node] | None:
        live = self.plain(scope)
        if live is None:
            return None
        name = self.bind(scope, "array", live[1])
        form = self.pick(("{0} = {1}",) * 5 + ("{0}: mx.array = {1}", "{0} = (lambda: {1})()"))
        return [Line(form.format(name, live[0]))]

    def capture_many(self, scope: Scope) -> list[Node] | None:
        one, two = self.live(scope), self.live(scope)
        if one is None or two is None:
            return None
        left, right = self.fresh("a"), self.fresh("a")
        scope.names += [Variable(left, "array", one[1]), Variable(right, "array", two[1])]
        if self.chance(30):
            scope.names[-1].lent = one[1]
            return [Line(f"{left} = {right} = {one[0]}")]
        if self.chance(30):
            rest = self.fresh("arrays")
            scope.names[-1] = Variable(rest, "arrays", two[1])
            return [Line(f"{left}, *{rest} = {one[0]}, {two[0]}")]
        return [Line(f"{left}, {right} = {one[0]}, {two[0]}")]

    def capture_number(self, scope: Scope) -> list[Node] | None:
        cache = self.cache(scope, arrays_only=False)
        if cache is None:
            return None
        name = self.bind(scope, "number")
        lines: list[Node] = [Line(f"{name} = {cache}.offset if coin() else 0")]
        if self.chance(30):
            form = self.pick(("mx.array({0})", "{0} + 0"))
            guard = f"{form} if isinstance({{0}}, mx.array) else {{0}}"
            lines.append(Line(f"{name} = {guard.format(name)}"))
        return lines

    def walrus(self, scope: Scope) -> list[Node] | None:
        live = self.live(scope)
        if live is None:
            return None
        name = self.bind(scope, "array", live[1])
        body = self.body(scope.inner(), 1, 2)
        return [block(f"if ({name} := {live[0]}) is not None:", body)]

    def advance(self, scope: Scope) -> list[Node] | None:
        cache = self.cache(scope, arrays_only=False)
        if cache is None:
            return None
        method = self.pick(("advance", "advance", "update_and_fetch", "trim", "mark"))
        return [Line(f"{cache}.{method}({self.number()})")]

    def update_attribute(self, scope: Scope) -> list[Node] | None:
        cache = self.cache(scope)
        if cache is None:
            return None
        place = f"{cache}.{self.pick(('offset', 'offset', 'lengths', 'saved'))}"
        return [update(place, self.pick("+-"), self.operand(scope))]

    def operand(self, scope: Scope) -> str:
        live = self.live(scope) if self.chance(20) else None
        return live[0] if live else self.number()

    def update_local(self, scope: Scope) -> list[Node] | None:
        own = [v.name for v in scope.of("array") if not v.lent]
        if not own:
            return None
        return [update(self.pick(own), self.pick("+-"), self.operand(scope))]

    def update_member(self, scope: Scope) -> list[Node] | None:
        places = [f'{v.name}["o"]' for v in scope.of("dict") if not v.lent]
        places += [f"{v.name}.item" for v in scope.of("box") if not v.lent]
        places += [f"{v.name}[0]" for v in scope.of("arrays") if not v.lent]
        if not places:
            return None
        return [update(self.pick(places), "+", self.number())]

    def put_item(self, scope: Scope) -> list[Node] | None:
        places = [v.name for v in scope.of("array") if not v.lent]
        cache = self.cache(scope)
        if cache is not None:
            places += [f"{cache}.offset", f"{cache}.offset"]
        return [put(self.pick(places), "0", self.number())] if places else None

    def rebind(self, scope: Scope) -> list[Node] | None:
        cache = self.cache(scope)
        if cache is None:
            return None
        place = f"{cache}.{self.pick(('offset', 'lengths'))}"
        form = self.pick(("{0} = {0} + {1}", "{0} = mx.array([{1}, {1}])", "{0} = mx.array({0})"))
        return [Line(form.format(place, self.number()))]

    def share(self, scope: Scope) -> list[Node] | None:
        cache, live = self.cache(scope), self.live(scope)
        if cache is None or live is None or live[1]:
            return None
        return [Line(f"{cache}.{self.pick(('offset', 'saved', 'state'))} = {live[0]}")]

    def read(self, scope: Scope) -> list[Node] | None:
        numbers = [v.name for v in scope.of("number")]
        if numbers and self.chance(25):
            return [Line(self.pick(("use({})", "use({} + 1)")).format(self.pick(numbers)))]
        live = self.live(scope)
        if live is None:
            return None
        cache = self.cache(scope) if self.chance(10) else None
        if cache is not None:  # The handle is taken, then updated, then read.
            forms = "use({}, {}.advance({}))", "use({} + {}.update_and_fetch({}))"
            return [Line(self.pick(forms).format(live[0], cache, self.number()))]
        forms = ("use({})",) * 4 + ("use({} + 1)", "use(-{})", "use({}[0])", "use(1 - {})")
        return [Line(self.pick(forms).format(live[0]))]

    def metadata(self, scope: Scope) -> list[Node] | None:
        live = self.live(scope)
        if live is None:
            return None
        form = self.pick(("use({}.shape)", "mx.eval({})", "use({} is None)"))
        return [Line(form.format(live[0]))]

    def branch(self, scope: Scope) -> list[Node] | None:
        if scope.depth > 2:
            return None
        body = self.body(scope.inner(), 1, 3)
        if self.chance(40):
            return [block("if coin():", body, ("else:", self.body(scope.inner(), 1, 3)))]
        return [block("if coin():", body)]

    def repeat(self, scope: Scope) -> list[Node] | None:
        if scope.depth > 2:
            return None
        inner = scope.inner(loops=1)
        header = self.pick((f"for {self.fresh('i')} in range(some()):", "while coin():"))
        body = self.body(inner, 1, 4)
        if header.startswith("for") and self.chance(15):
            return [block(header, body, ("else:", self.body(scope.inner(), 1, 2)))]
        return [block(header, body)]

    def walk(self, scope: Scope) -> list[Node] | None:
        lists = scope.of("caches", "arrays")
        if scope.depth > 2 or not lists:
            return None
        over, inner = self.pick(lists), scope.inner(loops=1)
        kind: Kind = "cache" if over.kind == "caches" else "array"
        name = self.fresh("p" + kind[0])
        inner.names.append(Variable(name, kind, over.lent))
        forms = ("for {0} in {1}:",) * 3 + ("for {2}, {0} in enumerate({1}):",)
        return [
            block(self.pick(forms).format(name, over.name, self.fresh("i")), self.body(inner, 1, 4))
        ]

    def walk_together(self, scope: Scope) -> list[Node] | None:
        caches, arrays = scope.of("caches"), scope.of("arrays")
        if scope.depth > 2 or not caches or not arrays:
            return None
        inner = scope.inner(loops=1)
        one, two, held = self.fresh("pc"), self.fresh("pa"), self.pick(arrays)
        inner.names += [Variable(one, "cache"), Variable(two, "array", held.lent)]
        header = f"for {one}, {two} in zip({self.pick(caches).name}, {held.name}):"
        return [block(header, self.body(inner, 2, 4))]

    def attempt(self, scope: Scope) -> list[Node] | None:
        if scope.depth > 2:
            return None
        body = self.body(scope.inner(), 1, 3)
        body.append(block("if coin():", [Line("raise ValueError")]))
        body += self.body(scope.inner(), 0, 2)
        handler = self.body(scope.inner(), 1, 2)
        if self.chance(30):
            clauses = ("except ValueError:", handler), ("finally:", self.body(scope.inner(), 1, 2))
            return [block("try:", body, *clauses)]
        return [block("try:", body, ("except ValueError:", handler))]

    def within(self, scope: Scope) -> list[Node] | None:
        if scope.depth > 2:
            return None
        if self.chance(50):
            return [block("with Quiet():", self.body(scope.inner(), 1, 3))]
        inner = [block("case 1:", self.body(scope.inner(), 1, 2))]
        inner.append(block("case _:", self.body(scope.inner(), 1, 2)))
        return [Block((("match few():", tuple(inner)),))]

    def member(self, scope: Scope) -> list[Node] | None:
        live = self.live(scope)
        if live is None:
            return None
        kind = self.pick(("dict", "box", "arrays"))
        text = {"dict": '{{"o": {0}}}', "box": "Box({0})", "arrays": "[{0}, {1}]"}[kind]
        other = self.live(scope) or live
        lent = live[1] or other[1]
        name = self.bind(scope, kind, lent)  # type: ignore[arg-type]
        return [Line(f"{name} = {text.format(live[0], other[0])}")]

    def append(self, scope: Scope) -> list[Node] | None:
        lists, live = scope.of("arrays"), self.live(scope)
        if not lists or live is None or scope.loops:  # It might be the list that is walked.
            return None
        target = self.pick(lists)
        target.lent |= live[1]
        return [Line(f"{target.name}.append({live[0]})")]

    def gather(self, scope: Scope) -> list[Node] | None:
        lists = scope.of("caches")
        if not lists:
            return None
        name = self.bind(scope, "arrays")
        form = self.pick(("c.offset", "c.offset", "c.peek", "c.state", "mx.array(c.offset)"))
        return [Line(f"{name} = [{form} for c in {self.pick(lists).name}]")]

    def put_member(self, scope: Scope) -> list[Node] | None:
        places = [(v, f'{v.name}["o"]') for v in scope.of("dict")]
        places += [(v, f"{v.name}.item") for v in scope.of("box")]
        places += [(v, f"{v.name}[0]") for v in scope.of("arrays")]
        live = self.live(scope)
        if not places or live is None:
            return None
        owner, text = self.pick(places)
        owner.lent |= live[1]
        return [Line(f"{text} = {live[0]}")]

    def closure(self, scope: Scope) -> list[Node] | None:
        live = self.live(scope)
        if live is None:
            return None
        name = self.fresh("call")
        scope.names.append(Variable(name, "call"))
        match self.choices.below(4):
            case 0:
                return [Line(f"{name} = lambda: use({live[0]})")]
            case 1:
                return [Line(f"{name} = lambda held={live[0]}: use(held)")]
            case 2:
                return [Line(f"{name} = partial(show, {live[0]})")]
        return [block(f"def {name}():", [Line(f"use({live[0]})")])]

    def call_closure(self, scope: Scope) -> list[Node] | None:
        calls = scope.of("call")
        return [Line(f"{self.pick(calls).name}()")] if calls else None

    def start_steps(self, scope: Scope) -> list[Node] | None:
        cache = self.cache(scope)
        if cache is None:
            return None
        return [Line(f"{self.bind(scope, 'steps')} = walk({cache})")]

    def next_step(self, scope: Scope) -> list[Node] | None:
        steps = scope.of("steps")
        return [Line(f"next({self.pick(steps).name}, None)")] if steps else None

    def new_cache(self, scope: Scope) -> list[Node] | None:
        if self.chance(30):
            name = self.bind(scope, "caches")
            made = f"{self.pick(self.classes)}({self.number()})"
            return [Line(f"{name} = [{made} for _ in range(few())]")]
        if self.scalar_class and self.chance(40):
            one, two = self.number(), self.number()
            made = f"Plain({one}) if coin() else {self.pick(self.classes)}({two})"
            name = self.fresh("s")  # No other cache may turn into one that counts in ints.
            scope.names.append(Variable(name, "cache", scalar=True))
            return [Line(f"{name} = {made}")]
        made = f"{self.pick(self.classes)}({self.operand(scope)})"
        return [Line(f"{self.bind(scope, 'cache')} = {made}")]

    def copy_cache(self, scope: Scope) -> list[Node] | None:
        cache = self.cache(scope)
        if cache is None:
            return None
        form = self.pick(("{}", "copy.copy({})"))
        return [Line(f"{self.bind(scope, 'cache')} = {form.format(cache)}")]

    def scale(self, scope: Scope) -> list[Node] | None:
        """Call a function that updates its argument and returns something made of it."""
        live = self.live(scope)
        if live is None or live[1]:
            return None
        function = self.pick(("scale", "process"))
        text = f"{function}({live[0]}, {self.number()})"
        if live[0].isidentifier() and self.chance(30):
            return [Line(f"{live[0]} = {text}")]
        return [Line(f"{self.bind(scope, 'array')} = {text}")]

    def nonlocal_update(self, scope: Scope) -> list[Node] | None:
        own = [v.name for v in scope.of("array") if not v.lent and v.name[0] == "a"]
        if not own:
            return None
        name, target = self.fresh("call"), self.pick(own)
        scope.names.append(Variable(name, "call"))
        changed = self.pick((update(target, "+", self.number()), Line(f"{target} = -{target}")))
        return [block(f"def {name}():", [Line(f"nonlocal {target}"), changed])]

    def keep(self, scope: Scope) -> list[Node] | None:
        live = self.live(scope)
        if live is None or self.chance(50):
            return [Line("see()")]
        return [Line(f"keep({live[0]})")]

    def model(self, scope: Scope) -> list[Node] | None:
        models, lists, live = scope.of("model"), scope.of("caches"), self.live(scope)
        if scope.function != "main" or live is None:
            return None
        if models and self.chance(70):
            return [Line(f"{self.pick(models).name}({live[0]})")]
        if not lists:
            return None
        return [Line(f"{self.bind(scope, 'model')} = Model({self.pick(lists).name})")]

    def early_return(self, scope: Scope) -> list[Node] | None:
        if not scope.returns:
            return None
        value = self.result(scope)
        return [block("if coin():", [Line(f"return {value}")])] if value else None

    def leave_loop(self, scope: Scope) -> list[Node] | None:
        if not scope.loops:
            return None
        return [block("if coin():", [Line(self.pick(("break", "continue")))])]

    def call_helper(self, scope: Scope) -> list[Node] | None:
        return self.call(scope, self.pick(self.helpers)) if self.helpers else None

    def call(self, scope: Scope, helper: Helper) -> list[Node] | None:
        arguments = []
        for kind in helper.parameters:
            live = self.live(scope)
            lists = [v.name for v in scope.of(kind)]
            text = self.cache(scope) if kind == "cache" else live and live[0]
            if kind == "caches":
                text = self.pick(lists) if lists else None
            if text is None:
                return None
            arguments.append(text)
        helper.called = True
        text = f"{helper.name}({', '.join(arguments)})"
        match helper.returns:
            case "array":
                return [Line(f"{self.bind(scope, 'array', lent=True)} = {text}")]
            case "pair":
                left, right = self.fresh("a"), self.fresh("a")
                scope.names += [Variable(left, "array", True), Variable(right, "array", True)]
                return [Line(f"{left}, {right} = {text}")]
            case "cache":
                return [Line(f"{self.bind(scope, 'cache')} = {text}")]
        return [Line(text)]

    # Functions and classes

    def result(self, scope: Scope) -> str | None:
        if scope.returns == "cache":
            return self.cache(scope)
        one, two = self.plain(scope), self.plain(scope)
        if scope.returns == "array":
            return one[0] if one else None
        return f"{one[0]}, {two[0]}" if one and two else None

    def helper(self) -> Node:
        kinds: tuple[tuple[Kind, ...], ...] = (
            ("cache",),
            ("cache", "array"),
            ("cache", "cache"),
            ("caches",),
            ("caches", "array"),
            ("array",),
        )
        parameters = self.pick(kinds)
        name = self.fresh("help")
        scope = Scope(function=name, returns=self.pick(("", "", "array", "pair", "cache")))
        if scope.returns == "cache" and "cache" not in parameters:
            scope.returns = "array"
        names = [self.fresh("p" + kind[0]) for kind in parameters]
        scope.names = [Variable(n, k, lent=True) for n, k in zip(names, parameters, strict=True)]
        body = self.body(scope, 2, 5)
        if self.chance(10):
            body.append(block("if coin():", [Line(f"{name}({', '.join(names)})")]))
        if scope.returns:
            body.append(Line(f"return {self.result(scope)}"))
        self.helpers.append(Helper(name, parameters, scope.returns))
        return block(f"def {name}({', '.join(names)}):", body)

    def method_body(self, base: str) -> list[Node]:
        plus, attribute = self.pick("+-"), self.pick(("offset", "offset", "lengths"))
        place = f"self.{attribute}"
        in_place = update(place, plus, "n")
        rebound = Line(f"{place} = {place} {plus} n")
        match self.choices.below(11 if base else 10):
            case 0 | 1 | 2:
                return [in_place]
            case 3:
                return [rebound]
            case 4:
                return [in_place, update("self.lengths", "+", "n + 1")]
            case 5:
                return [block("if coin():", [in_place], ("else:", [rebound]))]
            case 6:
                return [Line(f"{place} = mx.array({place})"), in_place]
            case 7:
                return [Line(f"o = {place}"), Line("o = o + n"), Line(f"{place} = o")]
            case 8:
                return [put(place, "0", "n")]
            case 9:
                return [Line("self.bump(n)"), Line("self.count += n")]
        return [Line("super().advance(n)"), Line("self.count += 1")]

    def class_(self, base: str) -> Node:
        name = self.fresh("Cache")
        self.classes.append(name)
        members: list[Node] = []
        if not base:
            start = self.pick(("value + mx.array([0, 0])", "mx.array([5, 6])"))
            lines: list[Node] = [
                Line("self.lengths = mx.array([3, 4])"),
                Line(f"self.offset = {start}"),
                Line("self.saved = mx.array([7, 8])"),
                Line("self.count = 0"),
            ]
            if self.chance(20):
                guard = "value if isinstance(value, mx.array) else self.lengths"
                lines[1] = Line(f"self.offset = {guard}")
            if self.chance(20):
                lines[2] = Line(
                    self.pick(("self.saved = self.offset", "self.saved = -self.offset"))
                )
            members.append(block("def __init__(self, value):", lines))
        if not base or self.chance(50):
            members.append(block("def advance(self, n):", self.method_body(base)))
        if not base or self.chance(30):
            members.append(
                block(
                    "def update_and_fetch(self, n):",
                    [*self.method_body(""), Line("return n")],
                )
            )
        if not base:
            members += self.first_members()
        return block(f"class {name}{f'({base})' if base else ''}:", members)

    def first_members(self) -> list[Node]:
        mark = self.pick(
            (
                [Line("self.saved = self.offset")],
                [Line("self.saved = mx.array(self.offset)")],
                [Line("use(self.saved)"), Line("self.saved = self.offset")],
                [Line("o = self.offset"), Line("self.advance(n)"), Line("use(o)")],
            )
        )
        peek = self.pick(("self.offset", "self.offset", "mx.array(self.offset)", "self.lengths"))
        hand = self.pick(("self.offset", "self.saved", "self.offset + 0"))
        setter = self.pick(("self.offset = value", "self.offset = mx.array(value)"))
        state: list[Node] = [
            Line("@property"),
            block("def state(self):", [Line("return self.offset")]),
            Line("@state.setter"),
            block("def state(self, value):", [Line(setter)]),
        ]
        return [
            block("def trim(self, n):", self.method_body("")),
            block("def bump(self, n):", [update("self.offset", "+", "n")]),
            block("def mark(self, n):", list(mark)),
            Line("@property"),
            block("def peek(self):", [Line(f"return {peek}")]),
            block("def hand(self):", [Line(f"return {hand}")]),
            *state,
        ]

    def prelude(self) -> list[Node]:
        """Return the fixed parts: a record, a context manager, a generator, a reader."""
        return [
            Line("@dataclass"),
            block("class Box:", [Line("item: mx.array")]),
            block(
                "class Quiet:",
                [
                    block("def __enter__(self):", [Line("return self")]),
                    block("def __exit__(self, *error):", [Line("return False")]),
                ],
            ),
            block("def show(held):", [Line("use(held)")]),
            block("def scale(array, n):", [update("array", "+", "n"), Line("return array + 1")]),
            block("def process(array, n):", [put("array", "0", "n"), Line("return array")]),
            block("class Kept:", [Line("array = None")]),
            block("def keep(array):", [Line("Kept.array = array")]),
            block("def see():", [block("if Kept.array is not None:", [Line("use(Kept.array)")])]),
        ]

    def model_class(self) -> Node:
        scope = Scope(function="model")
        scope.names = [
            Variable("self.caches", "caches"),
            Variable("self.first", "cache"),
            Variable("pa", "array", lent=True),
        ]
        init: list[Node] = [Line("self.caches = caches"), Line("self.first = caches[0]")]
        return block(
            "class Model:",
            [
                block("def __init__(self, caches):", init),
                block("def __call__(self, pa):", self.body(scope, 2, 5)),
            ],
        )

    def steps(self) -> Node:
        body: list[Node] = [Line(f"held = cache.{self.pick(('offset', 'peek', 'lengths'))}")]
        body.append(Line("yield 1"))
        if self.chance(40):
            body.append(Line(f"cache.advance({self.number()})"))
        body += [Line("use(held)"), Line("yield 2"), Line("use(cache.offset)")]
        return block("def walk(cache):", body)

    def plain_class(self) -> Node:
        return block(
            "class Plain:",
            [
                block("def __init__(self, value):", [Line("self.offset = value")]),
                block("def advance(self, n):", [Line("self.offset += n")]),
                block("def update_and_fetch(self, n):", [Line("self.offset += n")]),
                block("def trim(self, n):", [Line("self.offset -= n")]),
                block("def mark(self, n):", [Line("self.saved = self.offset")]),
            ],
        )

    def main(self) -> Node:
        scope = Scope()
        nodes: list[Node] = []
        for _ in range(1 + self.choices.below(2)):
            name = self.bind(scope, "cache")
            nodes.append(Line(f"{name} = {self.pick(self.classes)}({self.number()})"))
        if self.chance(50):
            name = self.bind(scope, "caches")
            made = f"{self.pick(self.classes)}({self.number()})"
            nodes.append(Line(f"{name} = [{made} for _ in range(few())]"))
        nodes += self.body(scope, 4, 10)
        for helper in self.helpers:
            if not helper.called:
                nodes += self.call(scope, helper) or []
        for variable in scope.of("array", "number"):
            if self.chance(50):
                nodes.append(Line(f"use({variable.name})"))
        return block("def main():", nodes)

    def program(self) -> Program:
        nodes: list[Node] = self.prelude()
        nodes.append(self.class_(""))
        if self.chance(40):
            nodes.append(self.class_(self.classes[0]))
        if self.chance(25):
            nodes.append(self.class_(""))
        self.scalar_class = self.chance(20)
        if self.scalar_class:
            nodes.append(self.plain_class())
        nodes.append(self.steps())
        for _ in range(self.choices.below(3)):
            nodes.append(self.helper())
        nodes.append(self.model_class())
        nodes.append(self.main())
        return prune(nodes)


def prune(nodes: list[Node]) -> Program:
    """Leave out the functions and classes of the top level that nothing mentions."""
    kept = list(nodes)
    while True:
        unused = [n for n in kept if _is_unused(n, kept)]
        if not unused:
            return tuple(kept)
        kept = [n for n in kept if not any(n is u for u in unused)]
        kept = [
            n
            for i, n in enumerate(kept)
            if not (isinstance(n, Line) and n.text == "@dataclass" and not _starts_box(kept, i + 1))
        ]


def _starts_box(nodes: list[Node], index: int) -> bool:
    node = nodes[index] if index < len(nodes) else None
    return isinstance(node, Block) and node.clauses[0][0] == "class Box:"


def _is_unused(node: Node, nodes: list[Node]) -> bool:
    if isinstance(node, Line):
        return False
    name = node.clauses[0][0].split()[1].split("(")[0].rstrip(":")
    uses = f"{name}(", f"({name})", f"partial({name}", f"{name}.array"
    texts = [text for other in nodes if other is not node for text in _texts(other)]
    return name != "main" and not any(use in text for text in texts for use in uses)


def _texts(node: Node) -> list[str]:
    if isinstance(node, Line):
        return [node.text]
    below = [text for _, body in node.clauses for inner in body for text in _texts(inner)]
    return [*(header for header, _ in node.clauses), *below]


def generate(choices: Choices) -> Program:
    """Return a random program. It has a function `main` without parameters."""
    return Generator(choices).program()
