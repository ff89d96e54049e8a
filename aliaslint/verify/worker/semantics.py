"""Value semantics at run time: an import hook that turns in-place updates into rebindings.

It shares nothing with the codemods, so that the two can testify against each other: the hook
changes the abstract syntax of a module while it is being imported, the codemods change text.

Forced everywhere in a *cache class* (a class that defines `update_and_fetch`, is called a cache
and has one of the mutators below, or inherits from such a class): `X.a op= e` and `X.a[i] = v`
where `X.a` holds an mx.array. Forced in any module: the statements that an edit touches, whatever
they are.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

REBIND = "__aliaslint_rebind__"
SNAPSHOT = "__aliaslint_snapshot__"
DETACH = "__aliaslint_detach__"
MUTATORS = frozenset({"advance", "filter", "extend", "finalize", "prepare", "trim"})


@dataclass(frozen=True, slots=True)
class Force:
    """A stretch of lines whose statements get value semantics; `owner` as in a store-back."""

    first_line: int
    last_line: int
    owner: str = ""


def cache_classes(tree: ast.Module) -> set[str]:
    """Names of the classes of one module that behave like caches, by their methods and bases."""
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    found = {node.name for node in classes if _defines_mutator(node)}
    while True:
        more = {node.name for node in classes if _base_names(node) & found} - found
        if not more:
            return found | {n.name for n in classes if any("Cache" in b for b in _base_names(n))}
        found |= more


def force_value_semantics(source: str, path: str, forces: Sequence[Force] = ()) -> ast.Module:
    """Return the module with value semantics forced; raises SyntaxError like `ast.parse`."""
    tree = ast.parse(source, path)
    _Forcer(cache_classes(tree), tuple(forces)).visit(tree)
    return ast.fix_missing_locations(tree)


def _defines_mutator(node: ast.ClassDef) -> bool:
    names = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
    return "update_and_fetch" in names or ("Cache" in node.name and bool(names & MUTATORS))


def _base_names(node: ast.ClassDef) -> set[str]:
    names = (ast.unparse(base).rsplit(".", 1)[-1] for base in node.bases)
    return set(names)


class _Forcer(ast.NodeTransformer):
    def __init__(self, classes: set[str], forces: tuple[Force, ...]) -> None:
        self.classes = classes
        self.forces = forces
        self.in_cache = False

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        before, self.in_cache = self.in_cache, self.in_cache or node.name in self.classes
        self.generic_visit(node)
        self.in_cache = before
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST | list[ast.stmt]:
        force = self._force(node)
        if force is None and not (self.in_cache and isinstance(node.target, ast.Attribute)):
            return node
        return _rebound(node, force.owner if force else "")

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
        force = self._force(node)
        copies = [
            _copy_first(base)
            for base in map(_written_base, _flat_targets(node.targets))
            if isinstance(base, (ast.Attribute, ast.Name))
            and (force is not None or (self.in_cache and isinstance(base, ast.Attribute)))
        ]
        if force is not None and not copies:
            node.value = _call(SNAPSHOT, node.value)
        return [*copies, node]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None and self._force(node) is not None:
            node.value = _call(SNAPSHOT, node.value)
        return node

    def visit_Return(self, node: ast.Return) -> ast.AST:
        if node.value is not None and self._force(node) is not None:
            node.value = _SnapshotLoads().visit(node.value)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if self._force(node) is not None:
            node.value = _SnapshotLoads().visit(node.value)
        return node

    def _force(self, node: ast.stmt) -> Force | None:
        last = node.end_lineno or node.lineno
        for force in self.forces:
            if node.lineno <= force.last_line and force.first_line <= last:
                return force
        return None


class _SnapshotLoads(ast.NodeTransformer):
    """Copies each outermost attribute or name that is read as an argument or element."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return _call(SNAPSHOT, node) if isinstance(node.ctx, ast.Load) else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        node.args = [self.visit(argument) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        return node


def _rebound(node: ast.AugAssign, owner: str) -> list[ast.stmt]:
    """`X.a op= e` as `X.a = rebind(X.a, e, "op")`, with X evaluated once."""
    before, target = _stable_target(node.target)
    load = _with_context(target, ast.Load())
    operator = ast.Constant(type(node.op).__name__)
    targets = [_with_context(target, ast.Store())]
    if owner:
        targets.append(_with_context(ast.parse(owner, mode="eval").body, ast.Store()))
    value = _call(REBIND, load, node.value, operator)
    assign = ast.Assign(targets=targets, value=value)
    return [ast.copy_location(item, node) for item in (*before, assign)]


def _stable_target(target: ast.expr) -> tuple[list[ast.stmt], ast.expr]:
    """Statements that evaluate the parts of `target` once, and the target over their names."""
    if isinstance(target, ast.Attribute) and not isinstance(target.value, ast.Name):
        first = _assign("__aliaslint_base__", target.value)
        return [first], ast.Attribute(_load("__aliaslint_base__"), target.attr, ast.Store())
    if isinstance(target, ast.Subscript):
        if isinstance(target.slice, (ast.Slice, ast.Tuple)):
            return [], target
        first = _assign("__aliaslint_base__", target.value)
        second = _assign("__aliaslint_index__", target.slice)
        places = _load("__aliaslint_base__"), _load("__aliaslint_index__")
        return [first, second], ast.Subscript(*places, ast.Store())
    return [], target


def _flat_targets(targets: Iterable[ast.expr]) -> list[ast.expr]:
    found: list[ast.expr] = []
    for target in targets:
        inner = target.elts if isinstance(target, (ast.Tuple, ast.List)) else None
        found += _flat_targets(inner) if inner is not None else [target]
    return found


def _written_base(target: ast.expr) -> ast.expr | None:
    """`X.a` where the target is `X.a[...]`, and None for any other target."""
    return target.value if isinstance(target, ast.Subscript) else None


def _copy_first(base: ast.Attribute | ast.Name) -> ast.stmt:
    """A statement that gives `base` an array of its own, before one of its items is written."""
    if isinstance(base, ast.Attribute):
        call = _call(DETACH, _with_context(base.value, ast.Load()), ast.Constant(base.attr))
        return ast.copy_location(ast.Expr(call), base)
    value = _call(DETACH, _with_context(base, ast.Load()), ast.Constant(None))
    return ast.copy_location(ast.Assign([_with_context(base, ast.Store())], value), base)


def _with_context(node: ast.expr, context: ast.expr_context) -> ast.expr:
    fresh = copy.deepcopy(node)
    if isinstance(fresh, (ast.Attribute, ast.Name, ast.Subscript)):
        fresh.ctx = context
    return fresh


def _assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _load(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(_load(name), list(arguments), [])
