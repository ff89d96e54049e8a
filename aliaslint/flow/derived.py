"""Which parameters a function's result is made from: the difference between an operand that
is spoiled by accident and an out-parameter that is meant to be written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aliaslint.lower import ir
from aliaslint.lower.walk import bindings, children, expressions, statements

if TYPE_CHECKING:
    from aliaslint.flow.context import Analysis


def derived_params(analysis: Analysis, function: ir.Function) -> frozenset[str]:
    """Return the parameters that flow into what the function returns or yields."""
    known = analysis.derived.get(function.key)
    if known is None:
        known = analysis.derived[function.key] = compute(function)
    return known


def compute(function: ir.Function) -> frozenset[str]:
    sources: dict[str, set[str]] = {}
    for target, value, _ in bindings(function.body):
        if isinstance(target, ir.ToName) and value is not None:
            sources.setdefault(target.name, set()).update(names_in(value))
    for node in statements(function.body):
        match node:
            case ir.Aug(target=ir.ToName(name=name), value=value):
                sources.setdefault(name, set()).update(names_in(value))
            case ir.Assign(targets=targets, value=value):
                for target in targets:
                    if isinstance(target, ir.ToItem) and isinstance(target.obj, ir.Name):
                        sources.setdefault(target.obj.name, set()).update(names_in(value))
            case _:
                pass
    result: set[str] = set()
    for node in statements(function.body):
        if isinstance(node, ir.Return) and node.value is not None:
            result |= names_in(node.value)
    for expr in expressions(function.body):
        if isinstance(expr, ir.Suspend) and expr.value is not None:
            result |= names_in(expr.value)
    frontier = list(result)
    while frontier:
        for source in sources.get(frontier.pop(), ()):
            if source not in result:
                result.add(source)
                frontier.append(source)
    return frozenset(result & set(function.params))


def names_in(expr: ir.Expr) -> set[str]:
    """Return the local names whose value goes into `expr` (metadata excluded)."""
    found: set[str] = set()
    stack = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, ir.Name):
            found.add(node.name)
        elif isinstance(node, ir.Attr) and node.name in {"shape", "dtype", "ndim", "size"}:
            continue
        else:
            stack.extend(children(node))
    return found
