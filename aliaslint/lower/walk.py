"""Walking lowered code: statements in order, and the bindings that they make."""

from __future__ import annotations

from collections.abc import Iterator

from aliaslint.lower import ir

# How a value reaches a target: ("item", i) of a tuple, ("elem",) of an iterable.
Path = tuple[object, ...]
Binding = tuple[ir.Target, ir.Expr | None, Path]


def statements(stmt: ir.Stmt | None) -> Iterator[ir.Stmt]:
    """Yield `stmt` and every statement nested in it, without entering nested functions."""
    stack = [stmt]
    while stack:
        node = stack.pop()
        if node is None:
            continue
        yield node
        match node:
            case ir.Block(body=body):
                stack.extend(reversed(body))
            case ir.If(then=then, other=other):
                stack.extend((other, then))
            case ir.While(body=body, orelse=orelse) | ir.For(body=body, orelse=orelse):
                stack.extend((orelse, body))
            case ir.Try(body=body, handlers=handlers, orelse=orelse, final=final):
                stack.extend((final, orelse, *(h for _, h in reversed(handlers)), body))
            case ir.With(body=body) | ir.ClassDef(body=body):
                stack.append(body)
            case ir.Match(cases=cases):
                stack.extend(case.body for case in reversed(cases))
            case _:
                pass


def bindings(stmt: ir.Stmt | None) -> Iterator[Binding]:
    """Yield every (target, value, path) that the statements below `stmt` bind.

    Comprehension loops inside expressions are entered where they stand alone as a value.
    """
    for node in statements(stmt):
        match node:
            case ir.Assign(targets=targets, value=value):
                for target in targets:
                    yield from spread(target, value, ())
                if isinstance(value, ir.Comprehension):
                    yield from bindings(value.body)
            case ir.For(target=target, iterable=iterable):
                yield from spread(target, iterable, (("elem",),))
            case ir.With(target=ir.Target() as target, context=context):
                yield target, context, (("enter",),)
            case ir.Return(value=ir.Comprehension(body=body)):
                yield from bindings(body)
            case _:
                pass


def spread(target: ir.Target, value: ir.Expr | None, path: Path) -> Iterator[Binding]:
    """Take tuple targets apart; a tuple display on the right is taken apart with them."""
    if not isinstance(target, ir.Unpack):
        yield target, value, path
        return
    for i, inner in enumerate(target.targets):
        if not path and isinstance(value, ir.Build) and target.star < 0 and i < len(value.items):
            yield from spread(inner, value.items[i], ())
        elif target.star < 0:
            yield from spread(inner, value, (*path, ("item", i)))
        else:
            yield from spread(inner, value, (*path, ("any",)))


def children(expr: ir.Expr) -> Iterator[ir.Expr]:
    """Yield the direct operands of an expression."""
    match expr:
        case ir.Attr(obj=obj):
            yield obj
        case ir.Item(obj=obj, index=index, operands=operands):
            yield obj
            if index is not None:
                yield index
            yield from operands
        case ir.Fresh(operands=operands) | ir.Opaque(operands=operands):
            yield from operands
        case ir.Call(fn=fn, args=args):
            yield fn
            for arg in args:
                yield arg.value
        case ir.Build(items=items, keys=keys):
            yield from items
            yield from (k for k in keys if k is not None)
        case ir.Star(value=value) | ir.Not(value=value) | ir.Walrus(value=value):
            yield value
        case ir.Choice(test=test, then=then, other=other):
            yield from (test, then, other)
        case ir.BoolOp(values=values):
            yield from values
        case ir.Closure(defaults=defaults):
            yield from (d for _, d in defaults)
        case ir.Suspend(value=ir.Expr() as value):
            yield value
        case ir.Comprehension(body=body):
            for stmt in statements(body):
                yield from own_expressions(stmt)
        case _:
            pass


def own_expressions(stmt: ir.Stmt) -> Iterator[ir.Expr]:
    """Yield the expressions that stand directly in one statement."""
    match stmt:
        case ir.Assign(value=value, targets=targets):
            yield value
            for target in targets:
                yield from target_expressions(target)
        case ir.Aug(value=value, target=target):
            yield value
            yield from target_expressions(target)
        case ir.Do(value=value):
            yield value
        case ir.Emit(value=value, key=key):
            yield value
            if key is not None:
                yield key
        case ir.Return(value=ir.Expr() as value):
            yield value
        case ir.Raise(values=values):
            yield from values
        case ir.If(test=test) | ir.While(test=test):
            yield test
        case ir.For(iterable=iterable):
            yield iterable
        case ir.With(context=context):
            yield context
        case ir.Match(subject=subject):
            yield subject
        case _:
            pass


def target_expressions(target: ir.Target) -> Iterator[ir.Expr]:
    match target:
        case ir.ToAttr(obj=obj):
            yield obj
        case ir.ToItem(obj=obj, index=index, operands=operands):
            yield obj
            if index is not None:
                yield index
            yield from operands
        case ir.Unpack(targets=targets):
            for inner in targets:
                yield from target_expressions(inner)
        case _:
            pass


def expressions(stmt: ir.Stmt | None) -> Iterator[ir.Expr]:
    """Yield every expression below `stmt`, nested ones included, nested functions excluded."""
    stack: list[ir.Expr] = []
    for node in statements(stmt):
        stack.extend(own_expressions(node))
        while stack:
            expr = stack.pop()
            yield expr
            stack.extend(children(expr))
