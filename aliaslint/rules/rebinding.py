"""When rebinding an in-place update is safe, and the reason where it is not."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from aliaslint.findings import Repair, Safety
from aliaslint.flow.context import Analysis
from aliaslint.flow.values import Site, Where
from aliaslint.lower import ir
from aliaslint.lower.lowering import at as position
from aliaslint.lower.walk import children
from aliaslint.rules.evidence import Evidence, within
from aliaslint.rules.positions import PLAIN, nodes_at

_UNDONE = "one such update runs in the right-hand side of another, which would undo it"
_STORED = "an update of the property runs its setter, which updates an array in place as well"


def rebind(evidence: Evidence, site: Site) -> Repair | None:
    """Return the rebinding of one augmented assignment, with its safety; None for a division."""
    if divides(site):
        return None
    span = evidence.span(site.where)
    reason = unsafe_reason(evidence, site)
    repeatable = evidence.is_repeatable(site.where)
    return Repair("rebind", span, "unsafe" if reason else "safe", reason, repeatable=repeatable)


def unsafe_reason(evidence: Evidence, site: Site) -> str:
    stmt = evidence.analysis.statements.get(site.where)
    if site in evidence.sharing:
        return "a second owner reads the array and may expect the update"
    if stmt is not None and suspends(stmt.value):
        return "the right-hand side suspends: the update could be lost in between"
    return evidence.entangled().get(site, "")


def copy_first(evidence: Evidence, site: Site, safety: Safety, reason: str) -> Repair | None:
    """Return the copy before an item assignment, None where no statement can be put before it."""
    module = site.where.module
    tree = evidence.analysis.modules.by_id[module].tree
    path = nodes_at(tree, site.where.at) or nodes_at(tree, site.where.at, ast.stmt)
    statement = next((node for node in reversed(path) if isinstance(node, ast.stmt)), None)
    target = (
        statement.target if isinstance(statement, ast.AugAssign) else path[-1] if path else None
    )
    if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return None
    if not isinstance(target, ast.Subscript) or not isinstance(target.ctx, ast.Store):
        return None
    if not all(isinstance(node, PLAIN) for node in ast.walk(target.value)):
        return None
    span = evidence.span(Where(module, position(statement)))
    return Repair("copy-first", span, safety, reason, owner=ast.unparse(target.value))


def divides(site: Site) -> bool:
    """Whether it is `x /= y`: on integers that raises, and would give floats when rebound."""
    return site.op == "Div" and not site.via.endswith("-item")


def suspends(expr: ir.Expr) -> bool:
    if isinstance(expr, ir.Suspend):
        return True
    return any(suspends(child) for child in children(expr))


def entangled(analysis: Analysis) -> dict[Site, str]:
    """Return the updates that run as part of another one, those others, and why that matters.

    `self.offset += self.bump()` where `bump` updates `offset` as well: in place they add up,
    rebound the one that began first has the last word. `self.offset += n` where a setter updates
    an array: it is given the array that it updates, rebound another one. Attributes are told
    apart by name.
    """
    found: dict[Site, str] = {}
    for site in analysis.sites:
        statement = analysis.statements.get(site.where)
        if site.via != "attr" or statement is None:
            continue
        called = called_in(analysis, Where(site.where.module, statement.value.at))
        inner = [other for other in updates_of(analysis, called) if other.attr == site.attr]
        found.update(dict.fromkeys([site, *inner] if inner else [], _UNDONE))
        stored = [*updates_of(analysis, analysis.resolved.get(site.where, set()))]
        found.update(dict.fromkeys([site, *stored] if stored else [], _STORED))
    return found


def updates_of(analysis: Analysis, functions: set[str]) -> Iterator[Site]:
    """Yield the updates in some functions and in those that they call."""
    for function in reached(analysis, functions):
        body = Where(function.module, function.at)
        yield from (site for site in analysis.sites if within(site.where, body))


def reached(analysis: Analysis, functions: set[str]) -> Iterator[ir.Function]:
    """Yield some functions and those that they call."""
    seen: set[str] = set()
    waiting = sorted(functions)
    while waiting:
        key = waiting.pop()
        function = analysis.function(key)
        if key in seen or function is None:
            continue
        seen.add(key)
        yield function
        waiting += sorted(called_in(analysis, Where(function.module, function.at)))


def called_in(analysis: Analysis, where: Where) -> set[str]:
    """Return the functions of the program that are called in a stretch of source."""
    inside = (keys for place, keys in analysis.resolved.items() if within(place, where))
    return set().union(*inside)
