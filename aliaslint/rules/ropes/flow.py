"""Follows arrays to RoPE through the functions of the project."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from aliaslint.findings import Span
from aliaslint.rules.ropes import arrays
from aliaslint.rules.ropes.modules import Class, Function, Module, Program, resolve
from aliaslint.rules.ropes.values import UNKNOWN, Fold, OffsetKind, Value, join
from aliaslint.source.files import SourceFile, split_lines

FAST_ROPE = "mlx.core.fast.rope"
ROPE_CLASS = "mlx.nn.RoPE"
_DEPTH = 8  # Calls nested deeper than this are not followed.


@dataclass(frozen=True, slots=True)
class Reach:
    """An array that reaches RoPE at a call, directly or inside what is called.

    `many`: texts of sizes that are known not to be 1 there. `offset_params`: parameters of the
    function that the offset comes from.
    """

    path: Path
    node: ast.Call
    name: str
    value: Value
    offset: OffsetKind
    offset_params: frozenset[str] = frozenset()
    many: frozenset[str] = frozenset()
    direct: bool = True

    def may_be_one_token(self) -> bool:
        """Whether the sequence length may be 1, as far as sizes and guards tell."""
        length = self.value.length
        return length not in self.many and not (length.isdigit() and int(length) > 1)


@dataclass(frozen=True, slots=True)
class Summary:
    """What a call of a function does: what it gives back, and which arrays reach RoPE in it."""

    returns: Value = UNKNOWN
    reaches: tuple[Reach, ...] = ()


class Flow:
    """Summaries of the project's functions, made as they are asked for."""

    def __init__(self, files: Sequence[SourceFile]) -> None:
        self.program = Program({source.path: source.text for source in files})
        self._texts = {source.path: source.text for source in files}
        self._lines: dict[Path, list[str]] = {}
        self._summaries: dict[ast.AST, Summary] = {}
        self._active: list[ast.AST] = []
        self._recursive: set[ast.AST] = set()
        self.undone: dict[Fold, Span] = {}  # Where a folded array gets its shape back.

    def reaches(self, paths: Sequence[Path]) -> list[Reach]:
        """Return what reaches RoPE in the functions of these files."""
        found: list[Reach] = []
        for path in paths:
            module = self.program.module(path)
            if module is None:
                continue
            for function, owner in _functions(module):
                found += self.summary(function, module, owner).reaches
        return found

    def returned(self, path: Path) -> list[Value]:
        """Return what the functions of a file give back."""
        module = self.program.module(path)
        functions = _functions(module) if module else ()
        return [self.summary(f, module, owner).returns for f, owner in functions if module]

    def summary(
        self,
        function: Function,
        module: Module,
        owner: Class | None,
        closure: Mapping[str, Value] | None = None,
    ) -> Summary:
        """Return the summary of a function; where it calls itself, that of a first look at it.

        Beyond a great depth of calls the summary is empty.
        """
        if function in self._summaries:
            return self._summaries[function]
        if function in self._active or len(self._active) >= _DEPTH:
            self._recursive.add(function)
            return Summary()
        self._active.append(function)
        try:
            result = _Interpreter(self, module, owner, function, closure or {}).run()
            if function in self._recursive:
                self._summaries[function] = result
                result = _Interpreter(self, module, owner, function, closure or {}).run()
        finally:
            self._active.pop()
        self._summaries[function] = result
        return result

    def span(self, path: Path, node: ast.expr | ast.stmt) -> Span:
        """Return where a node stands, in characters."""
        if path not in self._lines:
            self._lines[path] = split_lines(self._texts[path])
        lines = self._lines[path]
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return Span(
            node.lineno,
            _column(lines[node.lineno - 1], node.col_offset),
            node.end_lineno,
            _column(lines[node.end_lineno - 1], node.end_col_offset),
        )


def _column(line: str, offset: int) -> int:
    return len(line.encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "replace")) + 1


def _functions(module: Module) -> Iterator[tuple[Function, Class | None]]:
    for function in module.functions.values():
        yield function, None
    for owner in module.classes.values():
        for method in owner.methods.values():
            yield method, owner


class _Interpreter:
    """Runs one function over abstract values."""

    def __init__(
        self,
        flow: Flow,
        module: Module,
        owner: Class | None,
        function: Function,
        closure: Mapping[str, Value],
    ) -> None:
        self.flow = flow
        self.module = module
        self.owner = owner
        self.function = function
        self.env: dict[str, Value] = dict(closure)
        self.nested: dict[str, Function] = {}
        self.bound: dict[str, int] = {}  # How often a name was bound.
        self.many: frozenset[str] = frozenset()
        self.returned: list[Value] = []
        self.reaches: dict[tuple[int, str], Reach] = {}
        for name in parameters(function):
            self.env[name] = Value(params=frozenset({name}))

    def run(self) -> Summary:
        self.block(self.function.body)
        returns = self.returned[0] if self.returned else UNKNOWN
        for value in self.returned[1:]:
            returns = join(returns, value)
        return Summary(returns, tuple(self.reaches.values()))

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
            case ast.AugAssign(target=target, value=value):
                self.assign(target, arrays.elementwise(self.value(target), self.value(value)))
            case ast.Return(value=value):
                self.returned.append(self.value(value) if value else UNKNOWN)
            case ast.Expr(value=value):
                self.value(value)
            case ast.If():
                self.branch(node)
            case ast.For(target=target, iter=iterable, body=body, orelse=orelse):
                self.assign(target, arrays.element(self.value(iterable)))
                self.loop([*body, *orelse])
            case ast.While(test=test, body=body, orelse=orelse):
                self.value(test)
                self.loop([*body, *orelse])
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                for item in items:
                    self.value(item.context_expr)
                self.block(body)
            case ast.Try():
                self.attempt(node)
            case ast.Match(cases=cases):
                self.alternatives([case.body for case in cases])
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.nested[node.name] = node
                closure = {k: v for k, v in self.env.items() if k not in parameters(node)}
                inner = self.flow.summary(node, self.module, self.owner, closure)
                for reach in inner.reaches:
                    self.note(reach)

    def branch(self, node: ast.If) -> None:
        self.value(node.test)
        before, many = dict(self.env), self.many
        if_true, if_false = _sizes_above_one(node.test)
        self.many = many | if_true
        self.block(node.body)
        after = self.env
        self.env, self.many = before, many | if_false
        self.block(node.orelse)
        self.many = many
        if _leaves(node.body):
            self.many = many | if_false
        elif node.orelse and _leaves(node.orelse):
            self.env, self.many = after, many | if_true
        else:
            self.env = _joined(after, self.env)

    def loop(self, body: Sequence[ast.stmt]) -> None:
        for _ in range(2):
            before = dict(self.env)
            self.block(body)
            self.env = _joined(before, self.env)

    def attempt(self, node: ast.Try) -> None:
        before = dict(self.env)
        self.block([*node.body, *node.orelse])
        for handler in node.handlers:
            after, self.env = self.env, _joined(before, self.env)
            self.block(handler.body)
            self.env = after if _leaves(handler.body) else _joined(after, self.env)
        self.block(node.finalbody)

    def alternatives(self, bodies: Sequence[Sequence[ast.stmt]]) -> None:
        before, total = dict(self.env), dict(self.env)
        for body in bodies:
            self.env = dict(before)
            self.block(body)
            total = _joined(total, self.env)
        self.env = total

    def assign(self, target: ast.expr, value: Value) -> None:
        match target:
            case ast.Name(id=name):
                self.env[name] = value
                self.bound[name] = self.bound.get(name, 0) + 1
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
        for name in names:
            if name != "?":
                self.env[name] = Value(token=name, offset="scalar")
        if not starred and shape.shape_of in self.env:
            known = self.env[shape.shape_of]
            self.env[shape.shape_of] = replace(known, dims=tuple(names))

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
                return Value(parts=tuple(self.value(part) for part in parts))
            case ast.Starred(value=value):
                return self.value(value)
            case ast.NamedExpr(target=target, value=value):
                result = self.value(value)
                self.assign(target, result)
                return result
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self.value(test)
                return join(self.value(body), self.value(orelse))
            case ast.BoolOp(values=values):
                first, *rest = map(self.value, values)
                for other in rest:
                    first = join(first, other)
                return first
            case ast.UnaryOp(op=op, operand=operand):
                return arrays.unary(op, self.value(operand))
            case ast.BinOp(left=left, op=op, right=right):
                return arrays.binary(op, self.value(left), self.value(right))
            case ast.Subscript(value=base, slice=index):
                return arrays.subscript(self.value(base), index, self.fold(node), self.value)
            case ast.ListComp() | ast.GeneratorExp():
                return self.comprehension(node)
            case ast.Call():
                return self.call(node)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr) and not isinstance(node, ast.Lambda):
                self.value(child)
        return UNKNOWN

    def name(self, name: str) -> Value:
        if name in self.env:
            value = self.env[name]
            return value if value.token else replace(value, token=name)
        if name in self.module.variables:
            return Value(token=name, instance=self.instance(self.module.variables[name]))
        return Value(token=name)

    def attribute(self, node: ast.Attribute) -> Value:
        if node.attr == "shape":
            base = self.value(node.value)
            text = ast.unparse(node.value)
            return Value(dims=base.dims, shape_of=text, token=self.version(text))
        if node.attr == "T":
            base = self.value(node.value)
            return replace(base, dims=base.dims[::-1] if base.dims else None, fold=None)
        text = ast.unparse(node)
        held = self.held(text)
        return Value(token=text, instance=held or "")

    def held(self, text: str) -> str | None:
        """Return the class of what `self.attr` holds, "" if it is not known."""
        head, _, attr = text.partition(".")
        if head != "self" or "." in attr or self.owner is None:
            return None
        for value in self._attribute_values(self.owner, attr):
            instance = self.instance(value)
            if instance:
                return instance
        return None

    def _attribute_values(self, owner: Class, attr: str) -> Iterator[ast.expr]:
        yield from owner.attributes.get(attr, ())
        for base in owner.bases:
            found = self.flow.program.find(base)
            if isinstance(found, Class) and found is not owner:
                yield from self._attribute_values(found, attr)

    def instance(self, node: ast.expr) -> str:
        """Return the class that a constructor call makes an instance of, "" if unknown."""
        if isinstance(node, ast.IfExp):
            return self.instance(node.body) or self.instance(node.orelse)
        if not isinstance(node, ast.Call):
            return ""
        name = resolve(self.module, node.func) or ast.unparse(node.func)
        found = self.flow.program.find(name)
        if isinstance(found, Class):
            return found.key
        if name == ROPE_CLASS or name.rpartition(".")[2] == "initialize_rope":
            return ROPE_CLASS
        return name if name.startswith("mlx.nn.") else ""

    def comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> Value:
        before = dict(self.env)
        for generator in node.generators:
            self.assign(generator.target, arrays.element(self.value(generator.iter)))
        part = self.value(node.elt)
        self.env = before
        return Value(parts=(part, part))

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
        return arrays.MakeFold(
            self.module.path,
            self.flow.span(self.module.path, node),
            node,
            self.version(ast.unparse(array)),
            self.flow.undone.__setitem__,
        )

    # Calls

    def call(self, node: ast.Call) -> Value:
        arguments = [self.value(argument) for argument in node.args]
        keywords = {k.arg: self.value(k.value) for k in node.keywords if k.arg}
        name = resolve(self.module, node.func) or ""
        if name == FAST_ROPE:
            return self.rope(node, arguments, keywords.get("offset", Value(offset="zero")))
        if name.startswith("mlx.core."):
            tail = name.removeprefix("mlx.core.")
            return arrays.function(tail, arguments, keywords, self.fold(node))
        if name.startswith("mlx.nn.") and name.rpartition(".")[2][:1].isupper():
            return Value(instance=name)
        target = self.target(node, name)
        if target == ROPE_CLASS:
            default = arguments[1] if len(arguments) > 1 else Value(offset="zero")
            return self.rope(node, arguments, keywords.get("offset", default))
        if isinstance(target, tuple):
            return self.enter(node, target, arguments, keywords)
        if target and target.startswith("mlx.nn."):
            return arrays.layer(arguments)
        if isinstance(node.func, ast.Attribute):
            receiver = self.value(node.func.value)
            return arrays.method(node.func.attr, receiver, arguments, keywords, self.fold(node))
        return Value(instance=self.instance(node))

    def target(self, node: ast.Call, name: str) -> str | tuple[Function, Module, Class | None]:
        """Return what is called: a function of the project, a layer of MLX, or ""."""
        function = node.func
        if isinstance(function, ast.Name) and function.id in self.nested:
            return self.nested[function.id], self.module, self.owner
        if _is_super_call(function):
            assert isinstance(function, ast.Attribute)
            bases = self.owner.bases if self.owner else ()
            return self._method_of(bases, function.attr)
        found = self.flow.program.find(name) if name else None
        if isinstance(found, Function):
            owner = self.flow.program.owner(found)
            return (found, owner, None) if owner else ""
        if isinstance(found, Class):
            return ""
        if isinstance(function, ast.Attribute) and ast.unparse(function.value) == "self":
            method = self._own_method(function.attr)
            if method:
                return method
        instance = self.value(function).instance
        if instance in self.flow.program.classes:
            owner_class = self.flow.program.classes[instance]
            return self._method_of_class(owner_class, "__call__")
        return instance or (ROPE_CLASS if _looks_like_rope(node) else "")

    def _own_method(self, name: str) -> tuple[Function, Module, Class | None] | None:
        if self.owner is None or name in self.owner.attributes:
            return None
        found = self._method_of_class(self.owner, name)
        return found if isinstance(found, tuple) else None

    def _method_of_class(
        self, owner: Class, name: str
    ) -> str | tuple[Function, Module, Class | None]:
        if name in owner.methods:
            return owner.methods[name], owner.module, owner
        return self._method_of(owner.bases, name)

    def _method_of(
        self, bases: Sequence[str], name: str
    ) -> str | tuple[Function, Module, Class | None]:
        for base in bases:
            if base == ROPE_CLASS:
                return ROPE_CLASS if name == "__call__" else ""
            found = self.flow.program.find(base)
            if isinstance(found, Class) and found is not self.owner:
                return self._method_of_class(found, name)
        return ""

    def rope(self, node: ast.Call, arguments: Sequence[Value], offset: Value) -> Value:
        """Note that the first argument reaches RoPE; the result has its shape."""
        if not arguments:
            return UNKNOWN
        value = arguments[0]
        self.note(
            Reach(
                self.module.path,
                node,
                ast.unparse(node.func),
                value,
                offset.offset,
                offset.params,
                self.many_at(node),
            )
        )
        return replace(value, params=frozenset(), token="")

    def many_at(self, node: ast.Call) -> frozenset[str]:
        """Return the sizes known not to be 1; the length of the argument counts as `?` there."""
        text = ast.unparse(node.args[0]) if node.args else ""
        lengths = {f"{text}.shape[-2]", f"{text}.shape[1]", f"{text}.shape[2]"}
        return self.many | ({"?"} if lengths & self.many else frozenset())

    def enter(
        self,
        node: ast.Call,
        target: tuple[Function, Module, Class | None],
        arguments: Sequence[Value],
        keywords: Mapping[str, Value],
    ) -> Value:
        """Apply the summary of a function of the project to the arguments."""
        function, module, owner = target
        summary = self.flow.summary(function, module, owner)
        bound = _bind(function, owner, node, arguments, keywords)
        for reach in summary.reaches:
            self.reach_inside(node, reach, bound)
        given = [bound[p] for p in summary.returns.params if p in bound]
        result = replace(summary.returns, params=frozenset())
        return _returned(result, given, bound)

    def reach_inside(self, node: ast.Call, reach: Reach, bound: Mapping[str, Value]) -> None:
        """Note that an argument reaches RoPE inside the callee."""
        given = [bound[p] for p in reach.value.params if p in bound]
        if not given or not reach.may_be_one_token():
            return
        value = given[0]
        for other in given[1:]:
            value = join(value, other)
        offset = reach.offset
        for param in reach.offset_params & bound.keys():
            offset = bound[param].offset
        params = frozenset(p for q in reach.offset_params & bound.keys() for p in bound[q].params)
        self.note(
            Reach(
                self.module.path,
                node,
                ast.unparse(node.func),
                value,
                offset,
                params,
                self.many,
                direct=False,
            )
        )

    def note(self, reach: Reach) -> None:
        key = (id(reach.node), str(reach.path))
        old = self.reaches.get(key)
        if old is None:
            self.reaches[key] = reach
            return
        many = old.many & reach.many
        self.reaches[key] = replace(reach, value=join(old.value, reach.value), many=many)


def parameters(function: Function) -> list[str]:
    """Return the names of a function's parameters in order, starred ones left out."""
    args = function.args
    return [arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)]


def _bind(
    function: Function,
    owner: Class | None,
    node: ast.Call,
    arguments: Sequence[Value],
    keywords: Mapping[str, Value],
) -> dict[str, Value]:
    """Return the value of each parameter that is given, and of those with a number as default."""
    args = function.args
    names = [arg.arg for arg in (*args.posonlyargs, *args.args)]
    bound: dict[str, Value] = {}
    defaults = zip(names[len(names) - len(args.defaults) :], args.defaults, strict=True)
    for name, default in defaults:
        if isinstance(default, ast.Constant) and default.value == 0:
            bound[name] = Value(offset="zero", token="0")
    static = any(ast.unparse(d) == "staticmethod" for d in function.decorator_list)
    if owner is not None and names and not static:
        names = names[1:]
    if not any(isinstance(argument, ast.Starred) for argument in node.args):
        bound.update(zip(names, arguments, strict=False))
    bound.update(keywords)
    return bound


def _returned(result: Value, given: Sequence[Value], bound: Mapping[str, Value]) -> Value:
    """Put the caller's values into what a function gives back; its own names mean nothing here."""
    dims = result.dims
    if dims is not None:
        result = replace(result, dims=tuple(d if d.isdigit() or "*" in d else "?" for d in dims))
    parts = result.parts
    if parts is not None:
        inner = tuple(
            _returned(
                replace(part, params=frozenset()),
                [bound[p] for p in part.params if p in bound],
                bound,
            )
            for part in parts
        )
        result = replace(result, parts=inner)
    for value in given:
        result = replace(
            value,
            fold=value.fold or result.fold,
            dims=value.dims if result.fold is None else result.dims,
        )
    return replace(result, token="", shape_of="")


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


def _sizes_above_one(test: ast.expr) -> tuple[frozenset[str], frozenset[str]]:
    """Return the texts that are not 1 where the test holds, and where it does not."""
    none: frozenset[str] = frozenset()
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            if_true, if_false = _sizes_above_one(operand)
            return if_false, if_true
        case ast.BoolOp(op=ast.And(), values=values):
            return none.union(*(_sizes_above_one(value)[0] for value in values)), none
        case ast.BoolOp(op=ast.Or(), values=values):
            return none, none.union(*(_sizes_above_one(value)[1] for value in values))
        case ast.Compare(left=left, ops=[op], comparators=[ast.Constant(value=int() as bound)]):
            text = frozenset({ast.unparse(left)})
            match op:
                case ast.Gt() if bound >= 1:
                    return text, none
                case ast.GtE() if bound >= 2:
                    return text, none
                case ast.NotEq() if bound == 1:
                    return text, none
                case ast.Eq() if bound == 1:
                    return none, text
                case ast.Eq() if bound > 1:
                    return text, none
                case ast.LtE() if bound >= 1:
                    return none, text
                case ast.Lt() if bound >= 2:
                    return none, text
    return none, none


def _is_super_call(function: ast.expr) -> bool:
    match function:
        case ast.Attribute(value=ast.Call(func=ast.Name(id="super"))):
            return True
    return False


def _looks_like_rope(node: ast.Call) -> bool:
    """Whether an unresolved call is one of a module like `nn.RoPE`, by name and arguments."""
    text = ast.unparse(node.func).rpartition(".")[2].lower()
    offset = any(keyword.arg == "offset" for keyword in node.keywords)
    plain = not node.keywords and 1 <= len(node.args) <= 2
    return ("rope" in text and (offset or plain)) or ("rotary" in text and offset)
