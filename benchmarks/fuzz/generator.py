"""Makes random programs over caches and captures from a source of choices."""

from __future__ import annotations

from benchmarks.fuzz.expressions import Choices, Helper, Kind, RandomChoices, Scope, Variable
from benchmarks.fuzz.statements import Statements
from benchmarks.fuzz.tree import Block, Line, Node, Program, block, put, update

__all__ = ["Choices", "RandomChoices", "generate"]


class Generator(Statements):
    """One program in the making: its classes, its functions, and the two together."""

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
                    f"def {self.protocol}(self, n):",
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
                block(f"def {self.protocol}(self, n):", [Line("self.offset += n")]),
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
        for name in self.classes:  # Methods are analysed for every class that has them.
            made = self.fresh("c")
            nodes.append(Line(f"{made} = {name}({self.number()})"))
            calls = ("mark", "mark", "advance", "mark", "trim", "mark")
            nodes += [Line(f"{made}.{method}({self.number()})") for method in calls]
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
