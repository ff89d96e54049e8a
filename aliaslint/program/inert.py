"""Functions that do nothing to handles: they read what they are given and give back new values.

A caller may take a call of one for a read of its arguments. Whatever cannot be told is not inert.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from aliaslint.lower import ir
from aliaslint.lower.walk import bindings, expressions, statements
from aliaslint.program import library
from aliaslint.program.kinds import Kinds
from aliaslint.program.types import Ext, FuncOf

NEW_BUILTINS = library.BUILTIN_SCALARS - {"sum", "any", "all"} | library.BUILTIN_TEXT | {"range"}
WALKS = frozenset("__getitem__ __iter__ __next__ __len__ __contains__ __bool__".split())
HARMLESS = frozenset("__init__ __new__ __call__ __repr__ __str__ __post_init__ __setitem__".split())
NOT_NEW = library.MX_ISOLATING | library.MX_TRANSPARENT


class Inert:
    """Answers for the functions of one program, each once.

    Made after the dependencies are loaded: their special methods count.
    """

    def __init__(self, kinds: Kinds) -> None:
        self.kinds = kinds
        self._known: dict[str, bool] = {}
        special = {name for name in special_methods(kinds) if name not in HARMLESS}
        self.walks_run = bool(special & WALKS)
        self.operators_run = bool(special - WALKS)

    def of(self, function: ir.Function) -> bool:
        """True if a call updates nothing, keeps nothing, and gives back new values alone."""
        if function.key not in self._known:
            self._known[function.key] = False  # what calls itself is not judged
            self._known[function.key] = self._judge(function)
        return self._known[function.key]

    def _judge(self, function: ir.Function) -> bool:
        if function.generator or function.coroutine or function.uses_cells or function.cells:
            return False
        if function.decorators or any(kind in {"*", "**"} for kind in function.kinds):
            return False
        if not all(self._is_quiet(node) for node in statements(function.body)):
            return False
        if not all(self._is_known(expr, function) for expr in expressions(function.body)):
            return False
        return all(self._is_new(value, function, set()) for value in returned(function))

    def _is_quiet(self, node: ir.Stmt) -> bool:
        """True for statements that bind locals and steer control, and do nothing else."""
        match node:
            case ir.Assign(targets=targets):
                return all(binds_local(target) for target in targets)
            case ir.For(target=target):
                return binds_local(target) and not self.walks_run
            case ir.Block() | ir.If() | ir.While() | ir.Return() | ir.Do() | ir.Raise():
                return True
            case ir.Break() | ir.Continue():
                return True
            case _:
                return False

    def _is_known(self, expr: ir.Expr, function: ir.Function) -> bool:
        """True for expressions that run nothing but what is outside of the program or inert."""
        match expr:
            case ir.Call():
                return self._is_new_call(expr, function)
            case ir.Attr(obj=obj, name=name):
                return self._outside(expr, function) is not None or (
                    isinstance(obj, ir.Name) and name in library.METADATA
                )
            case ir.Item():
                return not self.walks_run
            case ir.Fresh(how=how):
                return not self.operators_run or how in {"is", "is not", "str"}
            case ir.Closure() | ir.Suspend() | ir.Opaque() | ir.Walrus() | ir.Comprehension():
                return False
            case _:
                return True

    def _outside(self, expr: ir.Expr, function: ir.Function) -> str | None:
        """Return the dotted name of what stands outside of the program."""
        symbol = self.kinds.dotted(expr, self.kinds.modules.by_id[function.module])
        local = isinstance(expr, ir.Name) and expr.scope != "global"
        return symbol.dotted if isinstance(symbol, Ext) and not local else None

    def _is_new_call(self, call: ir.Call, function: ir.Function) -> bool:
        match call.fn:
            case ir.Name(scope="global"):
                symbol = self.kinds.dotted(call.fn, self.kinds.modules.by_id[function.module])
                if isinstance(symbol, FuncOf):
                    callee = self.kinds.find_function(symbol.key)
                    return callee is not None and self.of(callee)
            case ir.Attr(obj=ir.Name(scope="global")) | ir.Attr(obj=ir.Attr()):
                pass
            case _:
                return False
        dotted = self._outside(call.fn, function) or ""
        head, _, tail = dotted.rpartition(".")
        if head == "builtins":
            return tail in NEW_BUILTINS
        return dotted.startswith("mlx.core.") and dotted not in NOT_NEW

    def _is_new(self, expr: ir.Expr, function: ir.Function, names: set[str]) -> bool:
        """True if nothing else holds the value; `names` are being judged already."""
        match expr:
            case ir.Const() | ir.Not():
                return True
            case ir.Fresh(how=how):
                return how != "repeat"
            case ir.Call():
                return self._is_new_call(expr, function)
            case ir.Choice(then=then, other=other):
                return self._is_new(then, function, names) and self._is_new(other, function, names)
            case ir.Build(kind="tuple", items=items):
                return all(self._is_new(item, function, names) for item in items)
            case ir.Name(name=name, scope="local") if name not in function.params:
                if name in names:
                    return True
                found = [(v, p) for t, v, p in all_bindings(function) if binds(t, name)]
                names = names | {name}
                return bool(found) and all(
                    v is not None and not p and self._is_new(v, function, names) for v, p in found
                )
            case _:
                return False


def special_methods(kinds: Kinds) -> Iterator[str]:
    """Yield the special methods that classes of the loaded modules define."""
    for module in kinds.modules.by_id.values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                for inner in node.body:
                    name = getattr(inner, "name", "")
                    if name.startswith("__") and name.endswith("__"):
                        yield name


def returned(function: ir.Function) -> Iterator[ir.Expr]:
    for node in statements(function.body):
        if isinstance(node, ir.Return) and node.value is not None:
            yield node.value


def all_bindings(
    function: ir.Function,
) -> list[tuple[ir.Target, ir.Expr | None, tuple[object, ...]]]:
    return list(bindings(function.body))


def binds(target: ir.Target, name: str) -> bool:
    return isinstance(target, ir.ToName) and target.name == name


def binds_local(target: ir.Target) -> bool:
    match target:
        case ir.ToName(scope=scope):
            return scope == "local"
        case ir.Unpack(targets=targets):
            return all(binds_local(inner) for inner in targets)
        case _:
            return False
