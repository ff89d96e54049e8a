"""What an updated local name stands for: whether the update may be stored back, or is for another.

`self.offset = mine = mine + n` does what `mine += n` does only if `mine` is `self.offset` whenever
the update runs: bound once, on the way to it, with nothing in between that binds the attribute.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence, Set
from typing import TYPE_CHECKING

from aliaslint.flow.values import Where
from aliaslint.lower import ir
from aliaslint.lower.lowering import at as position
from aliaslint.lower.walk import statements
from aliaslint.rules.positions import PLAIN, nodes_at
from aliaslint.rules.rebinding import called_in, reached

if TYPE_CHECKING:
    from aliaslint.flow.values import Mark, Site
    from aliaslint.rules.evidence import Evidence

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Binding = ast.Assign | ast.AnnAssign
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def owner_to_store(evidence: Evidence, mark: Mark) -> str:
    """Return the source of the attribute that the updated local is sure to name, or "".

    Only an attribute that a method reaches from its first parameter counts: the owner may store
    to itself.
    """
    module, source = mark.site.where.module, mark.source
    if source is None or source.where is None or source.where.module != module:
        return ""
    tree = evidence.analysis.modules.by_id[module].tree
    path = nodes_at(tree, mark.site.where.at, ast.stmt)
    method = _method(path)
    binding = only_binding(method, path) if method is not None else None
    if method is None or binding is None or binding.value is None:
        return ""
    if position(binding.value) != source.where.at or source.where in evidence.analysis.resolved:
        return ""  # The capture is another one, or a property gave the array.
    owner = binding.value
    if not isinstance(owner, ast.Attribute) or not _belongs_to_self(owner, method):
        return ""
    between = _between(binding, path)
    called = reached(evidence.analysis, called_in(evidence.analysis, Where(module, between)))
    names = {node.attr for node in ast.walk(owner) if isinstance(node, ast.Attribute)}
    if _stores(method, names, between) or any(_binds(function, names) for function in called):
        return ""
    return ast.unparse(owner)


def _method(path: Sequence[ast.AST]) -> _Function | None:
    """Return the method that the end of `path` stands in, itself and not in a nested scope."""
    scopes = [index for index, node in enumerate(path) if isinstance(node, _SCOPES)]
    if len(scopes) < 2 or scopes[-2] != scopes[-1] - 1:
        return None
    method = path[scopes[-1]]
    inside = isinstance(path[scopes[-2]], ast.ClassDef)
    return method if inside and isinstance(method, _Function) else None


def only_binding(function: _Function, path: Sequence[ast.AST]) -> _Binding | None:
    """Return the statement that alone binds the updated name, if every way to the update passes it.

    `path` are the nodes around the update, which comes last.
    """
    match path[-1]:
        case ast.AugAssign(target=ast.Name(id=name)):
            binders = list(_binders(function, name))
        case _:
            return None
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[target]) | ast.AnnAssign(target=target) if [target] == binders:
                return node if _leads_to(path, node) else None
    return None


def _binders(function: _Function, name: str) -> Iterator[ast.AST]:
    """Yield what binds a name in a function; an augmented assignment is told apart."""
    updated = {node.target for node in ast.walk(function) if isinstance(node, ast.AugAssign)}
    for node in ast.walk(function):
        match node:
            case ast.Name(id=found, ctx=ast.Store() | ast.Del()) if found == name:
                if node not in updated:
                    yield node
            case ast.arg(arg=found) | ast.ExceptHandler(name=found) if found == name:
                yield node
            case ast.MatchAs(name=found) | ast.MatchStar(name=found) if found == name:
                yield node
            case ast.MatchMapping(rest=found) if found == name:
                yield node
            case ast.Global(names=names) | ast.Nonlocal(names=names) if name in names:
                yield node
            case ast.alias(name=full, asname=short) if (short or full) == name:
                yield node


def _leads_to(path: Sequence[ast.AST], statement: ast.stmt) -> bool:
    """Whether a statement stands before the end of `path`, in a block around it."""
    for node in path:
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and statement in block:
                return any(later in path for later in block[block.index(statement) + 1 :])
    return False


def _between(binding: ast.stmt, path: Sequence[ast.AST]) -> ir.At:
    """Return what may run between a binding and the update at the end of `path`.

    That is more than stands between them where the update runs again in a loop.
    """
    loops = [n for n in path if isinstance(n, _LOOPS) and n.lineno > binding.lineno]
    last = loops[0] if loops else path[-1]
    assert isinstance(last, ast.stmt)
    return (*position(binding)[2:], *position(last)[2:])


def _belongs_to_self(owner: ast.expr, function: _Function) -> bool:
    """Whether an expression leads from the first parameter, without calls."""
    parameters = function.args.posonlyargs + function.args.args
    names = [node.id for node in ast.walk(owner) if isinstance(node, ast.Name)]
    plain = all(isinstance(node, PLAIN) for node in ast.walk(owner))
    return plain and bool(parameters) and names == [parameters[0].arg]


def _stores(function: _Function, names: Set[str], stretch: ir.At) -> bool:
    """Whether a stretch of a function binds an attribute of these names, or an element of one."""
    for node in ast.walk(function):
        match node:
            case ast.Attribute(ctx=ast.Store() | ast.Del()):
                target: ast.expr = node
            case ast.Subscript(value=target, ctx=ast.Store() | ast.Del()):
                pass
            case _:
                continue
        if isinstance(target, ast.Attribute) and target.attr in names:
            if stretch[:2] <= position(node)[:2] <= stretch[2:]:
                return True
    return False


def _binds(function: ir.Function, names: Set[str]) -> bool:
    """Whether a function that is called binds an attribute of these names, of whatever object."""
    for node in statements(function.body):
        match node:
            case ir.Assign(targets=targets):
                if any(_is_attribute(target, names) for target in targets):
                    return True
            case ir.Aug(target=target):
                if _is_attribute(target, names):
                    return True
    return False


def _is_attribute(target: ir.Target, names: Set[str]) -> bool:
    match target:
        case ir.ToAttr(name=name) | ir.ToItem(obj=ir.Attr(name=name)):
            return name in names
        case ir.Unpack(targets=targets):
            return any(_is_attribute(inner, names) for inner in targets)
    return False


def is_loop_variable(evidence: Evidence, site: Site) -> bool:
    """Whether an updated local is bound by a loop: the update may be meant for the elements."""
    tree = evidence.analysis.modules.by_id[site.where.module].tree
    path = nodes_at(tree, site.where.at, ast.stmt) or nodes_at(tree, site.where.at)
    match path[-1:]:
        case [ast.AugAssign(target=ast.Name(id=name) | ast.Subscript(value=ast.Name(id=name)))]:
            pass
        case [ast.Subscript(value=ast.Name(id=name))]:
            pass
        case _:
            return False
    loops = [node for node in path if isinstance(node, ast.For | ast.AsyncFor)]
    targets = (node for loop in loops for node in ast.walk(loop.target))
    return any(isinstance(node, ast.Name) and node.id == name for node in targets)
