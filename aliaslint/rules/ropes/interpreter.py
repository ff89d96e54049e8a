"""Runs one function over abstract values."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from aliaslint.rules.ropes import arrays, calls, guards
from aliaslint.rules.ropes.flow import Flow, Given, Reach, Summary
from aliaslint.rules.ropes.modules import Class, Function, Module, resolve
from aliaslint.rules.ropes.values import (
    UNKNOWN,
    Callee,
    Texts,
    Value,
    join,
    without_first,
)


class Interpreter:
    """Runs one function; `given` is what is known of its arguments."""

    def __init__(self, flow: Flow, callee: Callee, given: Given) -> None:
        assert callee.function is not None
        assert callee.module is not None
        self.flow = flow
        self.module: Module = callee.module
        self.owner: Class | None = callee.owner
        self.function: Function = callee.function
        self.env: dict[str, Value] = dict(callee.closure)
        self.bound: dict[str, int] = {}  # How often a name was bound.
        self.facts: Texts = frozenset()
        self.returned: list[Value] = []
        self.anonymous_functions: list[Callee] = []
        self.reaches: dict[tuple[int, str], Reach] = {}
        for argument in calls.arguments(self.function):
            name = argument.arg
            known = given.get(name) or calls.annotated(self.module, argument.annotation)
            params = known.params | {name}
            batch = f"{name}.shape[0]"
            self.env[name] = replace(known, params=params, step=known.step or name, batch=batch)

    def run(self) -> Summary:
        self.block(self.function.body)
        for callee in self.anonymous_functions:
            if callee.function not in self.flow.entered:
                self.look_into(callee)
        returns = self.returned[0] if self.returned else UNKNOWN
        for value in self.returned[1:]:
            returns = join(returns, value)
        return Summary(returns, tuple(self.reaches.values()))

    @cached_property
    def called(self) -> frozenset[str]:
        """Names that this function calls."""
        nodes = ast.walk(self.function)
        functions = [node.func for node in nodes if isinstance(node, ast.Call)]
        return frozenset(f.id for f in functions if isinstance(f, ast.Name))

    @cached_property
    def packed(self) -> frozenset[str]:
        """Arrays of which several rows are named by numbers: queries, keys and values in one."""
        rows: dict[str, set[str]] = {}
        for node in ast.walk(self.function):
            if isinstance(node, ast.Subscript):
                index = node.slice
                first = index.elts[0] if isinstance(index, ast.Tuple) and index.elts else index
                if arrays.constant(first) is not None:
                    rows.setdefault(ast.unparse(node.value), set()).add(ast.unparse(first))
        return frozenset(text for text, named in rows.items() if len(named) > 1)

    # Statements

    def block(self, body: Sequence[ast.stmt]) -> None:
        for node in body:
            self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                result = self.value(value)
                for target in targets:
                    self.assign(target, result)
            case ast.AnnAssign(target=target, value=value) if value is not None:
                self.assign(target, self.value(value))
            case ast.AugAssign(target=target, op=op, value=value):
                self.assign(target, arrays.binary(op, self.value(target), self.value(value)))
            case ast.Return(value=value):
                self.returned.append(self.value(value) if value else UNKNOWN)
            case ast.Expr(value=value):
                self.value(value)
            case ast.Assert(test=test):
                self.value(test)
                self.facts |= self.facts_of(test)[0]
            case ast.If():
                self.branch(node)
            case ast.For(target=target, iter=iterable, body=body, orelse=orelse):
                self.loop([*body, *orelse], target, self.item_of(iterable))
            case ast.While(test=test, body=body, orelse=orelse):
                self.value(test)
                before, self.facts = self.facts, self.facts | self.facts_of(test)[0]
                self.loop(body)
                self.facts = before
                self.block(orelse)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                for item in items:
                    self.value(item.context_expr)
                self.block(body)
            case ast.Try():
                self.attempt(node)
            case ast.Match():
                self.alternatives(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.define(node.name, node)

    def define(self, name: str, function: Function) -> None:
        """Bind a name to a function defined here; look into it unless its calls are seen."""
        own = calls.parameters(function)
        closure = {k: v for k, v in self.env.items() if k not in own}
        callee = Callee(function, self.module, self.owner, closure)
        self.env[name] = Value(callee=callee)
        if name not in self.called:
            self.look_into(callee)

    def look_into(self, callee: Callee) -> None:
        """Note what reaches RoPE in a function whose calls are not seen."""
        assert callee.function is not None
        own = calls.parameters(callee.function)
        self.flow.entered.add(callee.function)
        for reach in self.flow.summary(callee).reaches:
            value = replace(reach.value, params=reach.value.params - set(own))
            params = reach.offset_params - set(own)
            self.note(replace(reach, value=value, offset_params=params))

    def branch(self, node: ast.If) -> None:
        self.value(node.test)
        before, known = dict(self.env), self.facts
        if_true, if_false = self.facts_of(node.test)
        self.facts = known | if_true
        self.block(node.body)
        after = self.env
        self.env, self.facts = before, known | if_false
        self.block(node.orelse)
        self.facts = known
        if _leaves(node.body):
            self.facts = known | if_false
        elif node.orelse and _leaves(node.orelse):
            self.env, self.facts = after, known | if_true
        else:
            self.env = _joined(after, self.env)

    def loop(
        self, body: Sequence[ast.stmt], target: ast.expr | None = None, item: Value = UNKNOWN
    ) -> None:
        """Run a loop twice, so that what one turn leaves reaches the next."""
        known, bound = self.facts, dict(self.bound)
        for _ in range(2):
            before = dict(self.env)
            self.bound = dict(bound)  # Names mean the same in each turn.
            if target is not None:
                self.assign(target, item)
            self.block(body)
            self.env, self.facts = _joined(before, self.env), known

    def item_of(self, iterable: ast.expr) -> Value:
        """Return what a loop over `iterable` gives its variable."""
        match iterable:
            case ast.Call(func=ast.Name(id="range")):
                return Value(offset="scalar")
            case ast.Call(func=ast.Name(id="enumerate"), args=[inner, *_]):
                return Value(parts=(Value(offset="scalar"), self.item_of(inner)))
            case ast.Call(func=ast.Name(id="zip"), args=inner):
                return Value(parts=tuple(map(self.item_of, inner)))
        value = self.value(iterable)
        if value.parts is None and value.dims is not None and not value.shape_of:
            return without_first(value, self.fold(iterable)(value.dims))
        return arrays.element(value)

    def attempt(self, node: ast.Try) -> None:
        before = dict(self.env)
        self.block([*node.body, *node.orelse])
        for handler in node.handlers:
            after, self.env = self.env, _joined(before, self.env)
            self.block(handler.body)
            self.env = after if _leaves(handler.body) else _joined(after, self.env)
        self.block(node.finalbody)

    def alternatives(self, node: ast.Match) -> None:
        text = self.value(node.subject).token
        before, total = dict(self.env), dict(self.env)
        outside = known = self.facts
        for case in node.cases:
            self.env = dict(before)
            self.facts = known
            one = False
            match case.pattern:
                case ast.MatchValue(value=ast.Constant(value=int() as number)) if text:
                    self.facts |= {text} if number > 1 else frozenset()
                    one = number == 1 and case.guard is None
            self.block(case.body)
            if not _leaves(case.body):
                total = _joined(total, self.env)
            known |= {text} if one else frozenset()
        self.env, self.facts = total, known if _all_leave(node) else outside

    def assign(self, target: ast.expr, value: Value) -> None:
        match target:
            case ast.Name(id=name):
                self.bound[name] = self.bound.get(name, 0) + 1
                self.env[name] = value if value.token else replace(value, token=self.text_of(name))
            case ast.Attribute():
                self.env[ast.unparse(target)] = value
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                if value.shape_of:
                    self.unpack_shape(targets, value)
                    return
                parts = value.parts
                same = parts is not None and len(parts) == len(targets)
                for index, item in enumerate(targets):
                    self.assign(item, parts[index] if same and parts else arrays.element(value))
            case ast.Starred(value=inner):
                self.assign(inner, UNKNOWN)

    def unpack_shape(self, targets: Sequence[ast.expr], shape: Value) -> None:
        """`B, L, D = x.shape` names the sizes of x, which fixes its rank."""
        starred = any(isinstance(target, ast.Starred) for target in targets)
        names = [t.id if isinstance(t, ast.Name) and t.id != "_" else "?" for t in targets]
        last = len(targets) - next(
            (i for i, t in enumerate(targets) if isinstance(t, ast.Starred)), len(targets)
        )
        for index, name in enumerate(names):
            target = targets[index]
            if isinstance(target, ast.Starred):
                tail = ((), index) if last == 1 else None
                self.assign(target.value, Value(tail=tail))
            if name == "?":
                continue
            self.bound[name] = self.bound.get(name, 0) + 1
            counted = index - len(names) if index >= len(names) - last else index
            size = arrays.size_of(shape, counted) if starred else self.text_of(name)
            self.env[name] = Value(token=size, offset="scalar")
        if not starred and shape.shape_of in self.env:
            known = self.env[shape.shape_of]
            dims = tuple(n if n == "?" else self.env[n].token for n in names)
            self.env[shape.shape_of] = replace(known, dims=dims)

    # Expressions

    def value(self, node: ast.expr) -> Value:
        match node:
            case ast.Name(id=name):
                return self.name(name)
            case ast.Constant(value=bool() | None | str() | bytes()):
                return UNKNOWN
            case ast.Constant(value=int() | float() as number):
                return Value(token=str(number), offset="zero" if number == 0 else "scalar")
            case ast.Attribute():
                return self.attribute(node)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return self.sequence(parts)
            case ast.Dict(keys=keys, values=values):
                return self.table(keys, values)
            case ast.Starred(value=value):
                return self.value(value)
            case ast.NamedExpr(target=target, value=value):
                result = self.value(value)
                self.assign(target, result)
                return result
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.conditional(test, body, orelse)
            case ast.BoolOp():
                return self.either(node)
            case ast.Compare():
                for operand in (node.left, *node.comparators):
                    self.value(operand)
                return Value(facts=self.facts_of(node))
            case ast.Yield(value=value) if value is not None:
                part = self.value(value)
                self.returned.append(Value(parts=(part, part)))
                return UNKNOWN
            case ast.UnaryOp(op=op, operand=operand):
                return arrays.unary(op, self.value(operand))
            case ast.BinOp(left=left, op=op, right=right):
                return arrays.binary(op, self.value(left), self.value(right))
            case ast.Subscript(value=base, slice=index):
                return arrays.subscript(self.value(base), index, self.fold(node), self.value)
            case ast.ListComp() | ast.GeneratorExp():
                return self.comprehension(node)
            case ast.Lambda():
                return self.anonymous(node)
            case ast.Call():
                return calls.call(self, node)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child)
        return UNKNOWN

    def sequence(self, nodes: Sequence[ast.expr]) -> Value:
        """Return a tuple or list; one that holds a starred value of unknown length has no parts."""
        parts: list[Value] = []
        known = True
        for values, whole in self.unpacked(nodes):
            known = known and whole
            parts += values
        return Value(parts=tuple(parts)) if known else Value(tail=arrays.tail_of(parts))

    def unpacked(self, nodes: Sequence[ast.expr]) -> Iterator[tuple[Sequence[Value], bool]]:
        """Yield what each item of a display or call stands for, and whether that is all of it:
        not so for a starred one of unknown length."""
        for node in nodes:
            value = self.value(node)
            if not isinstance(node, ast.Starred):
                yield (value,), True
            elif value.parts is not None:
                yield value.parts, True
            elif value.shape_of and value.dims is not None:
                yield [Value(token=size, offset="scalar") for size in value.dims], True
            else:
                yield (value,), False

    def table(self, keys: Sequence[ast.expr | None], values: Sequence[ast.expr]) -> Value:
        parts = tuple(self.value(value) for value in values)
        names = [key.value if isinstance(key, ast.Constant) else None for key in keys]
        if None in names:
            return Value(parts=parts) if parts else UNKNOWN
        return Value(parts=parts, keys=tuple(map(str, names)))

    def conditional(self, test: ast.expr, body: ast.expr, orelse: ast.expr) -> Value:
        self.value(test)
        known = self.facts
        if_true, if_false = self.facts_of(test)
        self.facts = known | if_true
        first = self.value(body)
        self.facts = known | if_false
        second = self.value(orelse)
        self.facts = known
        return join(first, second)

    def either(self, node: ast.BoolOp) -> Value:
        """Return the value of `and` and `or`: each operand is reached after those before it."""
        known, both = self.facts, isinstance(node.op, ast.And)
        first, *rest = node.values
        result = self.value(first)
        before = first
        for operand in rest:
            self.facts |= self.facts_of(before)[0 if both else 1]
            result = join(result, self.value(operand))
            before = operand
        self.facts = known
        return replace(result, facts=self.facts_of(node))

    def facts_of(self, test: ast.expr) -> guards.Facts:
        """Return what is known of sizes where a test holds, and where it does not."""
        return guards.facts_of(
            test,
            lambda node: self.value(node).token,
            lambda node: (
                self.value(node).facts
                if isinstance(node, ast.Name | ast.Attribute)
                else (guards.NONE, guards.NONE)
            ),
        )

    def name(self, name: str) -> Value:
        if name in self.env:
            value = self.env[name]
            return value if value.token else replace(value, token=self.text_of(name))
        if name in self.module.variables:
            value = calls.made(self, self.module.variables[name])
            return replace(value, token=name)
        return self.flow.defined(self.module, name)

    def attribute(self, node: ast.Attribute) -> Value:
        text = ast.unparse(node)
        if text in self.env:
            value = self.env[text]
            return value if value.token else replace(value, token=text)
        if node.attr == "shape":
            base = self.value(node.value)
            inner = ast.unparse(node.value)
            return Value(dims=base.dims, shape_of=inner, token=self.version(inner), step=base.step)
        if node.attr == "size":
            return Value(token=f"{ast.unparse(node.value)}.size", offset="scalar")
        if node.attr == "T":
            base = self.value(node.value)
            dims = base.dims[::-1] if base.dims else None
            return replace(base, dims=dims, fold=None, step="", heads=False)
        return replace(calls.held(self, node), token=text)

    def comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> Value:
        before, known = dict(self.env), self.facts
        for generator in node.generators:
            self.assign(generator.target, self.item_of(generator.iter))
            for test in generator.ifs:
                self.value(test)
                self.facts |= self.facts_of(test)[0]
        part = self.value(node.elt)
        self.env, self.facts = before, known
        return Value(parts=(part, part))

    def anonymous(self, node: ast.Lambda) -> Value:
        """Return a lambda as a function; it is looked at where it is called, or else at the end."""
        own = {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
        closure = {k: v for k, v in self.env.items() if k not in own}
        function = self.module.function_of(node)
        callee = Callee(function, self.module, self.owner, closure)
        self.anonymous_functions.append(callee)
        return Value(callee=callee)

    def text_of(self, name: str) -> str:
        """Return the text of a number: the name, unless it has meant another one before."""
        count = self.bound.get(name, 0)
        return name if count < 2 else f"{name}#{count}"

    def version(self, text: str) -> str:
        """Return a name that means this array and not what its variable held before."""
        return f"{text}#{self.bound.get(text, 0)}"

    def fold(self, node: ast.expr) -> arrays.MakeFold:
        array: ast.expr = node
        if isinstance(node, ast.Subscript):
            array = node.value
        elif isinstance(node, ast.Call):
            module = resolve(self.module, node.func)
            if module and node.args:
                array = node.args[0]
            elif isinstance(node.func, ast.Attribute):
                array = node.func.value
        text = ast.unparse(array)
        return arrays.MakeFold(
            self.module.path,
            self.flow.span(self.module.path, node),
            node,
            self.version(text),
            self.flow.undone.__setitem__,
            lambda: text in self.packed,
        )

    def note(self, reach: Reach) -> None:
        key = (id(reach.node), str(reach.path))
        old = self.reaches.get(key)
        if old is None:
            self.reaches[key] = reach
            return
        facts = old.facts & reach.facts
        self.reaches[key] = replace(reach, value=join(old.value, reach.value), facts=facts)


def _joined(first: Mapping[str, Value], second: Mapping[str, Value]) -> dict[str, Value]:
    """Join two environments; a name that only one path binds has the value of that path."""
    names = first.keys() | second.keys()
    return {
        name: join(first[name], second[name])
        if name in first and name in second
        else first.get(name, second.get(name, UNKNOWN))
        for name in names
    }


def _leaves(body: Sequence[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)


def _all_leave(node: ast.Match) -> bool:
    return all(_leaves(case.body) for case in node.cases)
