"""Python to the alias language: one lowering for every construct, none of them silent."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from aliaslint.lower import ir
from aliaslint.lower.ir import At
from aliaslint.lower.scopes import FunctionNode, bound_names, parameters


def at(node: ast.AST) -> At:
    return (
        getattr(node, "lineno", 0),
        getattr(node, "col_offset", 0),
        getattr(node, "end_lineno", 0) or 0,
        getattr(node, "end_col_offset", 0) or 0,
    )


@dataclass(slots=True)
class Scope:
    """Names of one function (or module) while it is lowered; comprehensions stack on top."""

    function: ir.Function
    bound: set[str]
    outer: set[str]
    parent: Scope | None
    renamed: list[dict[str, str]] = field(default_factory=list)
    cells: set[str] = field(default_factory=set)
    class_names: tuple[str, set[str]] | None = None
    is_module: bool = False

    def find(self, name: str) -> str | None:
        for layer in reversed(self.renamed):
            if name in layer:
                return layer[name]
        return name if name in self.bound else None


class Lowering:
    """Lowers the functions of one module; classes met inside functions are collected."""

    def __init__(self, module: str) -> None:
        self.module = module
        # Those of functions and of class bodies, with the function around them.
        self.inner_classes: dict[str, tuple[ast.ClassDef, ir.Function | None]] = {}
        self.scope: Scope | None = None
        # Names around a function that is lowered alone, which hold a class or a member of one.
        self.known: Mapping[str, tuple[str, str]] = {}

    # --- functions

    def function(
        self, node: FunctionNode, qualname: str, class_key: str | None = None
    ) -> ir.Function:
        """Lower one function; `qualname` is dotted, without the module."""
        if self.scope is None:
            outside = ir.Function(f"{self.module}:<module>", "<module>", self.module, ir.NOWHERE)
            self.scope = Scope(outside, set(), set(), None, is_module=True)
            lowered = self.function(node, qualname, class_key)
            self.scope = None
            return lowered
        name = getattr(node, "name", "<lambda>")
        body: list[ast.stmt] = [ast.Expr(node.body)] if isinstance(node, ast.Lambda) else node.body
        params = list(parameters(node.args))
        bound, outer, _, yields = bound_names(body)
        function = ir.Function(
            key=f"{self.module}:{qualname}:{node.lineno}:{node.col_offset}",
            name=name,
            module=self.module,
            at=at(node),
            params=tuple(arg.arg for arg, _ in params),
            kinds=tuple(kind for _, kind in params),
            class_key=class_key,
            generator=yields,
            coroutine=isinstance(node, ast.AsyncFunctionDef),
            decorators=tuple(
                ast.unparse(d) for d in getattr(node, "decorator_list", ()) if not yields or d
            ),
            parent=self.scope.function if self.scope and not self.scope.is_module else None,
        )
        if self.scope.is_module:
            function.applied = tuple(self.expr(d) for d in getattr(node, "decorator_list", ()))
        defaults = self._defaults(node.args)
        scope = Scope(function, bound | {arg.arg for arg, _ in params}, outer, self.scope)
        function.locals = frozenset(scope.bound)
        self.scope = scope
        function.annotations = {
            arg.arg: self.expr(arg.annotation) for arg, _ in params if arg.annotation
        }
        if getattr(node, "returns", None) is not None:
            function.returns_annotation = self.expr(node.returns)  # type: ignore[union-attr, arg-type]
        if isinstance(node, ast.Lambda):
            function.body = ir.Return(at(node.body), self.expr(node.body))
        else:
            function.body = self.block(node.body)
        self.scope = scope.parent
        function.cells = frozenset(scope.cells)
        function.defaults = defaults
        return function

    def module_body(self, tree: ast.Module, path_at: At = ir.NOWHERE) -> ir.Function:
        """Lower the module's own statements as a function whose names are global."""
        function = ir.Function(f"{self.module}:<module>", "<module>", self.module, path_at)
        self.scope = Scope(function, set(), set(), None, is_module=True)
        function.body = self.block(tree.body)
        self.scope = None
        return function

    def _defaults(self, args: ast.arguments) -> tuple[tuple[str, ir.Expr], ...]:
        positional = (*args.posonlyargs, *args.args)
        tail = positional[len(positional) - len(args.defaults) :]
        pairs = [(a.arg, self.expr(d)) for a, d in zip(tail, args.defaults, strict=True)]
        pairs += [
            (a.arg, self.expr(d))
            for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True)
            if d is not None
        ]
        return tuple(pairs)

    def class_attributes(self, node: ast.ClassDef, key: str) -> ir.Stmt:
        """Lower a class body's assignments: names become attributes of the class object."""
        names = {
            t.id
            for s in node.body
            if isinstance(s, (ast.Assign, ast.AnnAssign))
            for t in (s.targets if isinstance(s, ast.Assign) else [s.target])
            if isinstance(t, ast.Name)
        }
        outer = self.scope
        if outer is None:
            function = ir.Function(f"{key}:<class>", "<class>", self.module, at(node))
            self.scope = Scope(function, set(), set(), None, is_module=True)
        assert self.scope is not None
        before = self.scope.class_names
        self.scope.class_names = (key, names)
        statements = [
            self.stmt(s)
            for s in node.body
            if isinstance(s, (ast.Assign, ast.AugAssign, ast.For, ast.If))
            or (isinstance(s, ast.AnnAssign) and s.value is not None)
        ]
        self.scope.class_names = before
        self.scope = outer
        return ir.Block(at(node), tuple(statements))

    # --- names

    def load(self, node: ast.AST, name: str) -> ir.Expr:
        scope, depth = self.scope, 0
        assert scope is not None
        if scope.class_names and name in scope.class_names[1]:
            key = scope.class_names[0]
            return ir.Attr(at(node), ir.Name(at(node), key, "class"), name)
        while scope is not None:
            found = None if name in scope.outer else scope.find(name)
            if found is not None and not scope.is_module:
                if depth == 0:
                    return ir.Name(at(node), found, "local")
                scope.cells.add(found)
                self._uses_cells(depth)
                return ir.Name(at(node), found, "cell", depth)
            scope, depth = scope.parent, depth + 1
        if name in self.known:
            key, member = self.known[name]
            kept = ir.Name(at(node), key, "class")
            return ir.Attr(at(node), kept, member) if member else kept
        return ir.Name(at(node), name, "global")

    def _uses_cells(self, depth: int) -> None:
        scope = self.scope
        for _ in range(depth):
            assert scope is not None
            scope.function.uses_cells = True
            scope = scope.parent

    def store(self, node: ast.AST, name: str) -> ir.Target:
        scope = self.scope
        assert scope is not None
        if scope.class_names and name in scope.class_names[1]:
            return ir.ToAttr(at(node), ir.Name(at(node), scope.class_names[0], "class"), name)
        expr = self.load(node, name)
        assert isinstance(expr, ir.Name)
        return ir.ToName(at(node), expr.name, expr.scope, expr.depth)

    # --- statements

    def block(self, body: list[ast.stmt]) -> ir.Stmt:
        statements = tuple(self.stmt(s) for s in body)
        return statements[0] if len(statements) == 1 else ir.Block(ir.NOWHERE, statements)

    def optional(self, body: list[ast.stmt]) -> ir.Stmt | None:
        return self.block(body) if body else None

    def stmt(self, node: ast.stmt) -> ir.Stmt:
        here = at(node)
        match node:
            case ast.Expr(value=value):
                return ir.Do(here, self.expr(value))
            case ast.Assign(targets=targets, value=value):
                lowered = self.expr(value)
                return ir.Assign(here, tuple(self.target(t) for t in targets), lowered)
            case ast.AnnAssign(target=target, value=value, annotation=annotation):
                if value is None:
                    return ir.Block(here, ())
                note = self.expr(annotation)
                return ir.Assign(here, (self.target(target),), self.expr(value), note)
            case ast.AugAssign(target=target, op=op, value=value):
                return ir.Aug(here, self.target(target), type(op).__name__, self.expr(value))
            case ast.Return(value=value):
                return ir.Return(here, self.expr(value) if value else None)
            case ast.Raise(exc=exc, cause=cause):
                return ir.Raise(here, tuple(self.expr(e) for e in (exc, cause) if e))
            case ast.If(test=test, body=body, orelse=orelse):
                return ir.If(here, self.expr(test), self.block(body), self.optional(orelse))
            case ast.While(test=test, body=body, orelse=orelse):
                return ir.While(here, self.expr(test), self.block(body), self.optional(orelse))
            case (
                ast.For(target=target, iter=iterable, body=body, orelse=orelse)
                | ast.AsyncFor(target=target, iter=iterable, body=body, orelse=orelse)
            ):
                it = self.expr(iterable)
                return ir.For(
                    here, self.target(target), it, self.block(body), self.optional(orelse)
                )
            case _:
                return self.rare_stmt(node, here)

    def rare_stmt(self, node: ast.stmt, here: At) -> ir.Stmt:
        match node:
            case ast.Break():
                return ir.Break(here)
            case ast.Continue():
                return ir.Continue(here)
            case ast.Pass() | ast.Global() | ast.Nonlocal():
                return ir.Block(here, ())
            case ast.Delete(targets=targets):
                return ir.Block(here, tuple(ir.Delete(at(t), self.target(t)) for t in targets))
            case ast.Assert(test=test, msg=msg):
                failed = ir.Raise(here, (self.expr(msg),) if msg else ())
                return ir.If(here, self.expr(test), ir.Block(here, ()), failed)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                return self.with_(here, items, body)
            case ast.Match(subject=subject, cases=cases):
                return ir.Match(here, self.expr(subject), tuple(self.case(c) for c in cases))
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return self.definition(node, here)
            case ast.ClassDef():
                return self.class_(node, here)
            case ast.Import(names=names):
                return ir.Block(here, tuple(self.import_(a, here) for a in names))
            case ast.ImportFrom():
                return ir.Block(here, tuple(self.import_from(node, a, here) for a in node.names))
            case _ if hasattr(node, "handlers"):
                return self.try_(node, here)
            case _:
                return ir.Do(here, self.opaque(node))

    def with_(self, here: At, items: list[ast.withitem], body: list[ast.stmt]) -> ir.Stmt:
        first, rest = items[0], items[1:]
        context = self.expr(first.context_expr)
        target = self.target(first.optional_vars) if first.optional_vars else None
        inner = self.with_(here, rest, body) if rest else self.block(body)
        return ir.With(here, context, target, inner)

    def try_(self, node: ast.AST, here: At) -> ir.Stmt:
        handlers = tuple(
            (self.store(h, h.name) if h.name else None, self.block(h.body))
            for h in node.handlers  # type: ignore[attr-defined]
        )
        return ir.Try(
            here,
            self.block(node.body),  # type: ignore[attr-defined]
            handlers,
            self.optional(node.orelse),  # type: ignore[attr-defined]
            self.optional(node.finalbody),  # type: ignore[attr-defined]
        )

    def definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef, here: At) -> ir.Stmt:
        closure = self.closure(node, node.name)
        closure.decorators = tuple(self.expr(d) for d in node.decorator_list)
        return ir.Assign(here, (self.store(node, node.name),), closure)

    def class_(self, node: ast.ClassDef, here: At) -> ir.Stmt:
        assert self.scope is not None
        outer = "" if self.scope.is_module else self.scope.function.name + "."
        key = f"{self.module}:{outer}{node.name}"
        if not self.scope.is_module:
            self.inner_classes[key] = (node, self.scope.function)
        body = self.class_attributes(node, key)
        name = self.store(node, node.name)
        assert isinstance(name, ir.ToName)
        decorators = tuple(self.expr(d) for d in node.decorator_list)
        return ir.ClassDef(here, name, key, body, decorators)

    def import_(self, alias: ast.alias, here: At) -> ir.Stmt:
        name = alias.name if alias.asname else alias.name.partition(".")[0]
        target = self.store(alias, alias.asname or name)
        return ir.Assign(here, (target,), ir.Name(here, name, "module"))

    def import_from(self, node: ast.ImportFrom, alias: ast.alias, here: At) -> ir.Stmt:
        if alias.name == "*":
            return ir.Block(here, ())
        module = "." * node.level + (node.module or "")
        target = self.store(alias, alias.asname or alias.name)
        return ir.Assign(here, (target,), ir.Name(here, f"{module}:{alias.name}", "import"))

    # --- match

    def case(self, node: ast.match_case) -> ir.Case:
        binds: list[tuple[ir.Target, tuple[object, ...]]] = []
        self.pattern(node.pattern, (), binds)
        guard = self.expr(node.guard) if node.guard else None
        plain = isinstance(node.pattern, ast.MatchAs) and node.pattern.pattern is None
        reads = any(isinstance(n, ast.MatchValue) for n in ast.walk(node.pattern))
        irrefutable = plain and guard is None
        body = self.block(node.body)
        tested = class_patterns(node.pattern)
        classes = tuple(self.expr(pattern.cls) for pattern in tested)
        whole = guard is None and not any(p.patterns or p.kwd_patterns for p in tested)
        return ir.Case(
            at(node.pattern), tuple(binds), guard, body, reads, irrefutable, classes, whole
        )

    def pattern(
        self,
        node: ast.pattern,
        path: tuple[object, ...],
        binds: list[tuple[ir.Target, tuple[object, ...]]],
    ) -> None:
        match node:
            case ast.MatchAs(pattern=inner, name=name):
                if inner is not None:
                    self.pattern(inner, path, binds)
                if name is not None:
                    binds.append((self.store(node, name), path))
            case ast.MatchSequence(patterns=patterns):
                star = next(
                    (i for i, p in enumerate(patterns) if isinstance(p, ast.MatchStar)), None
                )
                for i, inner in enumerate(patterns):
                    step: object = i if star is None or i < star else i - len(patterns)
                    if i == star:
                        step = "*"
                    self.pattern(inner, (*path, ("item", step)), binds)
            case ast.MatchStar(name=name):
                if name is not None:
                    binds.append((self.store(node, name), (*path[:-1], ("rest", 0))))
            case ast.MatchMapping(keys=keys, patterns=patterns):
                for key, inner in zip(keys, patterns, strict=True):
                    value = key.value if isinstance(key, ast.Constant) else "*"
                    self.pattern(inner, (*path, ("item", value)), binds)
            case ast.MatchClass(patterns=patterns, kwd_attrs=names, kwd_patterns=inners):
                for inner in patterns:
                    self.pattern(inner, (*path, ("item", "*")), binds)
                for name, inner in zip(names, inners, strict=True):
                    self.pattern(inner, (*path, ("attr", name)), binds)
            case ast.MatchOr(patterns=patterns):
                for inner in patterns:
                    self.pattern(inner, path, binds)
            case _:
                pass

    # --- targets

    def target(self, node: ast.expr) -> ir.Target:
        match node:
            case ast.Name(id=name):
                return self.store(node, name)
            case ast.Attribute(value=value, attr=name):
                return ir.ToAttr(at(node), self.expr(value), name)
            case ast.Subscript(value=value, slice=index):
                obj = self.expr(value)
                lowered, operands, plain = self.index(index)
                return ir.ToItem(at(node), obj, lowered, operands, plain)
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                star = next((i for i, e in enumerate(elts) if isinstance(e, ast.Starred)), -1)
                inner = [e.value if isinstance(e, ast.Starred) else e for e in elts]
                return ir.Unpack(at(node), tuple(self.target(e) for e in inner), star)
            case ast.Starred(value=value):
                return self.target(value)
            case _:
                return ir.ToItem(at(node), self.opaque(node), None)

    def index(self, node: ast.expr) -> tuple[ir.Expr | None, tuple[ir.Expr, ...], bool]:
        match node:
            case ast.Slice(lower=lower, upper=upper, step=step):
                return None, tuple(self.expr(e) for e in (lower, upper, step) if e), True
            case ast.Tuple(elts=elts):
                parts: list[ir.Expr] = []
                for e in elts:
                    parts.extend(self.index(e)[1] if isinstance(e, ast.Slice) else [self.expr(e)])
                return None, tuple(parts), False
            case _:
                lowered = self.expr(node)
                if isinstance(lowered, ir.Const) and lowered.value in (..., None):
                    return None, (), False
                return lowered, (), False

    # --- expressions

    def expr(self, node: ast.expr) -> ir.Expr:
        here = at(node)
        match node:
            case ast.Name(id=name):
                return self.load(node, name)
            case ast.Constant(value=value):
                return ir.Const(here, value)
            case ast.Attribute(value=value, attr=name):
                return ir.Attr(here, self.expr(value), name)
            case ast.Call(func=func, args=args, keywords=keywords):
                return self.call(here, func, args, keywords)
            case ast.BinOp(left=left, op=op, right=right):
                how = "matmul" if isinstance(op, ast.MatMult) else "arith"
                if isinstance(op, ast.Mult) and isinstance(left, (ast.List, ast.Tuple)):
                    how = "repeat"
                return ir.Fresh(here, (self.expr(left), self.expr(right)), how)
            case ast.Subscript(value=value, slice=index):
                obj = self.expr(value)
                lowered, operands, plain = self.index(index)
                return ir.Item(here, obj, lowered, operands, plain, literal_bounds(index))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return ir.Not(here, self.expr(operand))
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
                return ir.Const(here, -value)
            case ast.UnaryOp(operand=operand):
                return ir.Fresh(here, (self.expr(operand),), "arith")
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                meta = all(isinstance(op, (ast.Is, ast.IsNot)) for op in ops)
                operands = tuple(self.expr(e) for e in (left, *comparators))
                if meta and len(operands) == 2:
                    how = "is" if isinstance(ops[0], ast.Is) else "is not"
                    return ir.Fresh(here, operands, how)
                names = tuple(type(op).__name__ for op in ops)
                return ir.Fresh(here, operands, "compare", names)
            case ast.BoolOp(op=op, values=values):
                name = "and" if isinstance(op, ast.And) else "or"
                return ir.BoolOp(here, name, tuple(self.expr(v) for v in values))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return ir.Choice(here, self.expr(test), self.expr(body), self.expr(orelse))
            case ast.Tuple(elts=elts):
                return ir.Build(here, "tuple", tuple(self.expr(e) for e in elts))
            case ast.List(elts=elts):
                return ir.Build(here, "list", tuple(self.expr(e) for e in elts))
            case _:
                return self.rare_expr(node, here)

    def rare_expr(self, node: ast.expr, here: At) -> ir.Expr:
        match node:
            case ast.Set(elts=elts):
                return ir.Build(here, "set", tuple(self.expr(e) for e in elts))
            case ast.Dict(keys=keys, values=values):
                lowered = tuple(self.expr(k) if k else None for k in keys)
                return ir.Build(here, "dict", tuple(self.expr(v) for v in values), lowered)
            case ast.Starred(value=value):
                return ir.Star(here, self.expr(value))
            case ast.NamedExpr(target=target, value=value):
                lowered_value = self.expr(value)
                return ir.Walrus(here, self.target(target), lowered_value)
            case ast.Lambda():
                return self.closure(node, "<lambda>")
            case ast.ListComp() | ast.SetComp() | ast.DictComp():
                return self.comprehension(node, here)
            case ast.GeneratorExp():
                return self.generator(node, here)
            case ast.JoinedStr(values=values):
                parts = [self.expr(v.value) for v in values if isinstance(v, ast.FormattedValue)]
                return ir.Fresh(here, tuple(parts), "str")
            case ast.Yield(value=value):
                return ir.Suspend(here, "yield", self.expr(value) if value else None)
            case ast.YieldFrom(value=value):
                return ir.Suspend(here, "from", self.expr(value))
            case ast.Await(value=value):
                return ir.Suspend(here, "await", self.expr(value))
            case ast.Slice():
                return ir.Fresh(here, self.index(node)[1], "bool")
            case _:
                return self.opaque(node)

    def call(
        self, here: At, func: ast.expr, args: list[ast.expr], keywords: list[ast.keyword]
    ) -> ir.Expr:
        fn = self.expr(func)
        lowered = [
            ir.Arg("*", self.expr(a.value))
            if isinstance(a, ast.Starred)
            else ir.Arg("", self.expr(a))
            for a in args
        ]
        lowered += [ir.Arg(k.arg or "**", self.expr(k.value)) for k in keywords]
        return ir.Call(here, fn, tuple(lowered))

    def closure(self, node: FunctionNode, name: str) -> ir.Closure:
        assert self.scope is not None
        outer = "" if self.scope.is_module else self.scope.function.key.split(":")[1] + "."
        class_names = self.scope.class_names
        self.scope.class_names = None
        function = self.function(node, outer + name)
        self.scope.class_names = class_names
        return ir.Closure(at(node), function, function.defaults)

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp, here: At) -> ir.Expr:
        assert self.scope is not None
        kind = {ast.ListComp: "list", ast.SetComp: "set"}.get(type(node), "dict")
        self.scope.renamed.append({})

        def emit() -> ir.Stmt:
            if isinstance(node, ast.DictComp):
                return ir.Emit(here, self.expr(node.value), self.expr(node.key))
            return ir.Emit(here, self.expr(node.elt))

        body = self.loops(node.generators, 0, emit, here)
        self.scope.renamed.pop()
        return ir.Comprehension(here, kind, body)

    def loops(self, generators: list[ast.comprehension], i: int, emit: object, here: At) -> ir.Stmt:
        assert self.scope is not None
        if i == len(generators):
            result = emit()  # type: ignore[operator]
            assert isinstance(result, ir.Stmt)
            return result
        gen = generators[i]
        iterable = self.expr(gen.iter)
        for name in ast.walk(gen.target):
            if isinstance(name, ast.Name):
                self.scope.renamed[-1][name.id] = f"{name.id}@{here[0]}:{here[1]}"
        for name_ in self.scope.renamed[-1].values():
            self.scope.bound.add(name_)
        target = self.target(gen.target)
        tests = [self.expr(test) for test in gen.ifs]
        body = self.loops(generators, i + 1, emit, here)
        for test in reversed(tests):
            body = ir.If(test.at, test, body, None)
        conditional = bool(gen.ifs) or len(generators) > 1
        return ir.For(at(gen.target), target, iterable, body, None, conditional)

    def generator(self, node: ast.GeneratorExp, here: At) -> ir.Expr:
        """`(e for x in xs)`: a generator function whose first iterable is evaluated now."""
        assert self.scope is not None
        first = self.expr(node.generators[0].iter)
        targets = [
            n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)
        ]
        function = ir.Function(
            key=f"{self.module}:<genexpr>:{here[0]}:{here[1]}",
            name="<genexpr>",
            module=self.module,
            at=here,
            params=(".0",),
            kinds=("pos",),
            generator=True,
            parent=None if self.scope.is_module else self.scope.function,
        )
        scope = Scope(function, {".0", *targets}, set(), self.scope)
        self.scope = scope
        scope.renamed.append({})

        def emit() -> ir.Stmt:
            return ir.Do(here, ir.Suspend(here, "yield", self.expr(node.elt)))

        replaced = ast.copy_location(ast.Name(".0", ast.Load()), node.generators[0].iter)
        gen = ast.comprehension(
            node.generators[0].target, replaced, node.generators[0].ifs, node.generators[0].is_async
        )
        function.body = self.loops([gen, *node.generators[1:]], 0, emit, here)
        self.scope = scope.parent
        function.locals = frozenset(scope.bound)
        function.cells = frozenset(scope.cells)
        return ir.Call(here, ir.Closure(here, function), (ir.Arg("", first),))

    def opaque(self, node: ast.AST) -> ir.Expr:
        """No lowering of its own: an unresolved call on every name that is mentioned."""
        names = {n.id: n for n in ast.walk(node) if isinstance(n, ast.Name)}
        return ir.Opaque(at(node), tuple(self.load(n, i) for i, n in names.items()))


def class_patterns(node: ast.pattern) -> list[ast.MatchClass]:
    """Return the class patterns of which the subject has to match one; none if it need not."""
    match node:
        case ast.MatchClass():
            return [node]
        case ast.MatchAs(pattern=inner) if inner is not None:
            return class_patterns(inner)
        case ast.MatchOr(patterns=patterns):
            parts = [class_patterns(pattern) for pattern in patterns]
            return [part for found in parts for part in found] if all(parts) else []
        case _:
            return []


def literal_bounds(node: ast.expr) -> tuple[int | None, ...]:
    """Return lower and upper bound of a slice `[a:b]` of literals (None: left out), or nothing."""
    if not isinstance(node, ast.Slice) or node.step is not None:
        return ()
    bounds: list[int | None] = []
    for part in (node.lower, node.upper):
        if part is None:
            bounds.append(None)
            continue
        try:
            value = ast.literal_eval(part)
        except ValueError:
            return ()
        if not isinstance(value, int):
            return ()
        bounds.append(value)
    return tuple(bounds)
