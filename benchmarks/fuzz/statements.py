"""The statements of generated programs: a method each, None where one does not fit the scope."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.fuzz.expressions import Choices, Expressions, Helper, Kind, Scope, Variable
from benchmarks.fuzz.tree import Block, Line, Node, block, put, update

Maker = Callable[[Scope], "list[Node] | None"]


class Statements(Expressions):
    """Makes statements that fit a scope."""

    def __init__(self, choices: Choices) -> None:
        super().__init__(choices)
        self.statements = self._weighted()

    def _weighted(self) -> list[Maker]:
        table: list[tuple[int, Maker]] = [
            (9, self.capture),
            (2, self.capture_many),
            (2, self.new_array),
            (2, self.capture_number),
            (1, self.walrus),
            (8, self.advance),
            (3, self.update_attribute),
            (3, self.update_local),
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
            (1, self.swap),
            (1, self.copy_list),
            (1, self.set_attribute),
            (1, self.update_later),
            (1, self.update_either),
            (1, self.update_all),
            (1, self.walk_table),
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

    def new_array(self, scope: Scope) -> list[Node] | None:
        made = f"mx.array([{self.number()}, {self.number()}])"
        name = self.bind(scope, "array")
        if self.chance(40):
            again = self.fresh("a")
            scope.names.append(Variable(again, "array"))
            return [Line(f"{name} = {again} = {made}")]
        return [Line(f"{name} = {made}")]

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
        method = self.pick(("advance", "advance", self.protocol, "trim", "mark"))
        return [Line(f"{cache}.{method}({self.number()})")]

    def update_attribute(self, scope: Scope) -> list[Node] | None:
        cache = self.cache(scope)
        if cache is None:
            return None
        place = f"{cache}.{self.pick(('offset', 'offset', 'lengths', 'saved'))}"
        return [update(place, self.pick("+-"), self.operand(scope))]

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
            taken = "use({}, {}.advance({}))", f"use({{}} + {{}}.{self.protocol}({{}}))"
            return [Line(self.pick(taken).format(live[0], cache, self.number()))]
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

    def swap(self, scope: Scope) -> list[Node] | None:
        arrays = scope.of("array")
        if len(arrays) < 2:
            return None
        one, two = self.pick(arrays), self.pick(arrays)
        if {one.name[0], two.name[0]} != {"a"}:
            return None
        one.lent = two.lent = one.lent or two.lent
        form = self.pick(("{0}, {1} = {1}, {0}", "({0}, {1}), _ = ({1}, {0}), 1"))
        return [Line(form.format(one.name, two.name))]

    def copy_list(self, scope: Scope) -> list[Node] | None:
        lists = scope.of("arrays")
        if not lists:
            return None
        source = self.pick(lists)
        text = f"list({source.name})"
        return [Line(f"{self.bind(scope, 'arrays', source.lent)} = {text}")]

    def set_attribute(self, scope: Scope) -> list[Node] | None:
        cache, live = self.cache(scope), self.live(scope)
        if cache is None or live is None or live[1]:
            return None
        return [Line(f'setattr({cache}, "{self.pick(("offset", "saved"))}", {live[0]})')]

    def update_later(self, scope: Scope) -> list[Node] | None:
        cache = self.cache(scope)
        if cache is None:
            return None
        name = self.fresh("call")
        scope.names.append(Variable(name, "call"))
        return [Line(f"{name} = lambda: {cache}.advance({self.number()})")]

    def update_either(self, scope: Scope) -> list[Node] | None:
        one, two = self.cache(scope), self.cache(scope)
        if one is None or two is None:
            return None
        return [Line(f"({one} if coin() else {two}).advance({self.number()})")]

    def update_all(self, scope: Scope) -> list[Node] | None:
        lists = scope.of("caches")
        if not lists:
            return None
        form = self.pick(("[{} for c in {}]", "any({} for c in {})"))
        return [Line(form.format(f"c.advance({self.number()})", self.pick(lists).name))]

    def walk_table(self, scope: Scope) -> list[Node] | None:
        """Put two handles in a dictionary and walk over it."""
        one, two = self.live(scope), self.live(scope)
        if one is None or two is None or scope.depth > 2:
            return None
        name, inner = self.fresh("pa"), scope.inner(loops=1)
        inner.names.append(Variable(name, "array", one[1] or two[1]))
        key, table = self.fresh("key"), self.fresh("table")
        header = self.pick(
            (f"for {name} in {table}.values():", f"for {key}, {name} in {table}.items():")
        )
        line = Line(f'{table} = {{"x": {one[0]}, "y": {two[0]}}}')
        return [line, block(header, self.body(inner, 1, 3))]

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
