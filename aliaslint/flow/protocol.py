"""Which classes may stand behind a call of the cache protocol on an unknown receiver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from aliaslint.lower import ir
from aliaslint.lower.walk import expressions, statements
from aliaslint.program.classes import ClassInfo, Method
from aliaslint.program.modules import Module

if TYPE_CHECKING:
    from aliaslint.flow.context import Analysis

MAX_ALIKE = 2
CACHE_MODULES = ("mlx_lm.models.cache",)


def candidates(analysis: Analysis, module: Module, name: str) -> list[tuple[str, Method]]:
    """Return (class key, method) for every class of the same package, and of its cache
    dependency, that defines `name`. Classes of tests are candidates in tests alone."""
    key = (analysis.modules.package_of(module.path)[0], name, module.is_test)
    if key not in analysis.candidates:
        found: dict[str, tuple[str, Method]] = {}
        for info in protocol_classes(analysis, module, name):
            method = info.find(name)
            if method is not None:
                found.setdefault(info.key, (info.key, method))
        analysis.candidates[key] = telling(analysis, list(found.values()))
    return analysis.candidates[key]


def telling(analysis: Analysis, found: list[tuple[str, Method]]) -> list[tuple[str, Method]]:
    """Keep the classes that update an array attribute in place, and a few of the others.

    Those that only rebind or write their own buffers do the same to a capture: nothing.
    """
    if len(found) <= MAX_ALIKE:
        return found
    updating = [(key, m) for key, m in found if updates_arrays(analysis, key, m, set())]
    others = [pair for pair in found if pair not in updating]
    return updating + others[:MAX_ALIKE]


def updates_arrays(analysis: Analysis, class_key: str, method: Method, seen: set[str]) -> bool:
    """True if the method, or one that it calls on itself, has `self.a op= v` on an array."""
    function = analysis.classes.method(method)
    info = analysis.classes.get(class_key)
    if function.key in seen or info is None or not function.params:
        return False
    seen.add(function.key)
    own = function.params[0]
    for stmt in statements(function.body):
        match stmt:
            case ir.Aug(target=ir.ToAttr(obj=ir.Name(name=owner), name=name)) if owner == own:
                if "array" in analysis.kinds.attribute(class_key, name):
                    return True
            case ir.Aug(target=ir.ToItem()):
                return True
            case _:
                pass
    for expr in expressions(function.body):
        match expr:
            case ir.Call(fn=ir.Attr(obj=ir.Name(name=owner), name=name)) if owner == own:
                called = info.find(name)
                if called is not None and updates_arrays(analysis, class_key, called, seen):
                    return True
            case ir.Call(fn=ir.Attr(obj=ir.Call(fn=ir.Name(name="super")))):
                return True
            case _:
                pass
    return False


def protocol_classes(analysis: Analysis, module: Module, name: str) -> Iterator[ClassInfo]:
    root = analysis.modules.package_of(module.path)[0]
    for other in [*analysis.modules.by_id.values()]:
        if other.is_test and not module.is_test:
            continue
        if analysis.modules.package_of(other.path)[0] == root:
            yield from classes_defining(analysis, other, name)
    for dotted in CACHE_MODULES:
        found = analysis.modules.find(module, dotted)
        if found is not None:
            yield from classes_defining(analysis, found, name)


def classes_defining(analysis: Analysis, module: Module, name: str) -> Iterator[ClassInfo]:
    """Classes of the module that define the method, or inherit it from the program."""
    import ast

    for class_name, (kind, node) in module.names.items():
        if kind != "class" or not isinstance(node, ast.ClassDef):
            continue
        own = any(getattr(s, "name", "") == name for s in node.body)
        if not own and not node.bases:
            continue
        info = analysis.classes.get(f"{module.id}:{class_name}")
        if info is not None and info.find(name) is not None and not is_protocol_stub(info, name):
            yield info


def is_protocol_stub(info: ClassInfo, name: str) -> bool:
    """A base that only raises or passes stands for nothing that runs."""
    import ast

    method = info.find(name)
    if method is None:
        return True
    body = [
        s
        for s in method.node.body
        if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
    ]
    return not body or all(isinstance(s, (ast.Pass, ast.Raise)) for s in body)
