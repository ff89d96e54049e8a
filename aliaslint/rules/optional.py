"""Whether what is captured may be None: neither `mx.array(None)` nor `None + 0` is right."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from aliaslint.flow.values import Where
from aliaslint.lower import ir
from aliaslint.program.types import NONE, NOTHING, Type
from aliaslint.rules.positions import nodes_at

if TYPE_CHECKING:
    from aliaslint.program.classes import ClassInfo
    from aliaslint.rules.evidence import Evidence


def may_be_none(evidence: Evidence, where: Where) -> bool:
    """Whether an expression may give None, so that neither `mx.array` nor `+ 0` takes it."""
    path = nodes_at(evidence.analysis.modules.by_id[where.module].tree, where.at)
    type_ = returned(evidence, where)
    if type_ is not None and type_ >= NONE:
        return True
    if any(attribute_may_be_none(evidence, name) for name in taken(evidence, where)):
        return True
    match path[-1]:
        case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(name)), *rest]):
            numbers = all(isinstance(n, ast.Constant) and n.value is not None for n in rest)
            return not numbers or attribute_may_be_none(evidence, name)
        case ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
            return attribute_may_be_none(evidence, name)
        case ast.Name(id=name):
            return _variable_may_be_none(path, name)
    return False


def taken(evidence: Evidence, where: Where) -> set[str]:
    """Return the names that a getter of `operator` takes where it is called and gives one value."""
    names = evidence.analysis.taken.get(where, set())
    return {name.rpartition(".")[2] for name in names if name is not None and None not in names}


def attribute_may_be_none(evidence: Evidence, name: str) -> bool:
    """Whether some class of the program sets an attribute of this name to None."""
    kinds = evidence.analysis.kinds
    for info in _classes_that_set(evidence, name):
        if kinds.attribute(info.key, name) >= NONE:
            return True
        for ancestor in info.mro:
            for value, path, function in kinds.assigned(ancestor).get(name, ()):
                if path or not isinstance(value, ir.Name):
                    continue  # An update, or a part of something.
                if value.name in _optional(function):
                    return True
    return False


def _classes_that_set(evidence: Evidence, name: str) -> Iterator[ClassInfo]:
    """Yield the classes that may have an attribute; those of other modules are not looked at."""
    sets = re.compile(rf"\b{re.escape(name)}\b[^=]*=(?!=)|\b{re.escape(name)}\s*:")
    for module in list(evidence.analysis.modules.by_id.values()):
        if not any(name in line and sets.search(line) for line in module.lines):
            continue
        for class_name, (kind, _) in list(module.names.items()):
            info = evidence.analysis.classes.get(f"{module.id}:{class_name}")
            if kind == "class" and info is not None:
                yield info


def _optional(function: ir.Function) -> set[str]:
    """Return the parameters of a function whose default is None."""
    return {
        name
        for name, default in function.defaults
        if isinstance(default, ir.Const) and default.value is None
    }


def _variable_may_be_none(path: Sequence[ast.AST], name: str) -> bool:
    """Whether a local is a parameter with the default None, or is set to None."""
    functions = [n for n in path if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    for node in ast.walk(functions[-1]) if functions else ():
        match node:
            case ast.Assign(targets=targets, value=ast.Constant(value=None)):
                if any(isinstance(t, ast.Name) and t.id == name for t in targets):
                    return True
            case ast.arguments():
                if any(
                    given.arg == name
                    and isinstance(default, ast.Constant)
                    and default.value is None
                    for given, default in _defaults(node)
                ):
                    return True
    return False


def _defaults(arguments: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    positional = [*arguments.posonlyargs, *arguments.args]
    yield from zip(reversed(positional), reversed(arguments.defaults), strict=False)
    yield from zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)


def returned(evidence: Evidence, where: Where) -> Type | None:
    """Return what the functions that run at a place give back, None where none does.

    Constructors, and the setters that are called where their value stands, give nothing back.
    """
    kinds = evidence.analysis.kinds
    result = NOTHING
    for key in evidence.analysis.resolved.get(where, ()):
        function = evidence.analysis.function(key)
        given = kinds.returned(function, function.class_key) if function is not None else NONE
        result |= NOTHING if given == NONE else given
    return result or None
