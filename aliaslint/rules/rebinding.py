"""When rebinding an in-place update is safe, and the reason where it is not."""

from __future__ import annotations

from aliaslint.findings import Repair
from aliaslint.flow.values import Site
from aliaslint.lower import ir
from aliaslint.lower.walk import children
from aliaslint.rules.evidence import Evidence


def rebind(evidence: Evidence, site: Site) -> Repair:
    """Return the rebinding of one augmented assignment, with its safety."""
    span = evidence.span(site.where)
    reason = unsafe_reason(evidence, site)
    return Repair("rebind", span, "unsafe" if reason else "safe", reason)


def unsafe_reason(evidence: Evidence, site: Site) -> str:
    stmt = evidence.analysis.statements.get(site.where)
    if site.op == "Div":
        return "`/=` on an integer array raises, the rebinding gives a float array"
    if site in evidence.sharing:
        return "a second owner reads the array and may expect the update"
    if stmt is not None and suspends(stmt.value):
        return "the right-hand side suspends: the update could be lost in between"
    return ""


def suspends(expr: ir.Expr) -> bool:
    if isinstance(expr, ir.Suspend):
        return True
    return any(suspends(child) for child in children(expr))
