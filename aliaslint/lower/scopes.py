"""Which names a function binds, found without entering the functions nested in it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def own_nodes(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the nodes below `body` that belong to its own scope, nested `def` nodes included."""
    stack: list[ast.AST] = list(reversed(body))
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, NESTED):
            continue
        stack.extend(ast.iter_child_nodes(node))


def parameters(args: ast.arguments) -> Iterator[tuple[ast.arg, str]]:
    """Yield each parameter with its kind: "pos", "kw", "*" or "**"."""
    for arg in (*args.posonlyargs, *args.args):
        yield arg, "pos"
    if args.vararg:
        yield args.vararg, "*"
    for arg in args.kwonlyargs:
        yield arg, "kw"
    if args.kwarg:
        yield args.kwarg, "**"


def named_parameters(args: ast.arguments) -> list[ast.arg]:
    """Return the parameters in order, starred ones left out."""
    return [*args.posonlyargs, *args.args, *args.kwonlyargs]


def bound_names(body: list[ast.stmt]) -> tuple[set[str], set[str], set[str], bool]:
    """Return (bound, declared global, declared nonlocal, has a yield) for a function body."""
    bound: set[str] = set()
    outer: set[str] = set()
    free: set[str] = set()
    yields = False
    for node in own_nodes(body):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                bound.add(name)
            case ast.ClassDef(name=name):
                bound.add(name)
            case ast.ExceptHandler(name=str(name)):
                bound.add(name)
            case ast.alias(name=name, asname=asname):
                bound.add(asname or name.partition(".")[0])
            case ast.Global(names=names):
                outer.update(names)
            case ast.Nonlocal(names=names):
                free.update(names)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                bound.add(name)
            case ast.MatchMapping(rest=str(name)):
                bound.add(name)
            case ast.Yield() | ast.YieldFrom():
                yields = True
            case _:
                pass
    return bound - outer - free, outer, free, yields
