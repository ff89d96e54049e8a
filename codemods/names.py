"""Which name stands for `mx.array` or `copy.copy` at a place of a module, by its imports.

Read from `ast`: only the scopes around the place matter, and libcst's scope analysis costs
more than everything else together.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from aliaslint.findings import Span

_WORD = re.compile(r"\w+")
_SCOPES = (
    ast.Module,
    ast.ClassDef,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_OTHER = ""


@dataclass(frozen=True, slots=True)
class Import:
    """What is wanted: `function` of the module `module`, and the name to import it under."""

    module: str
    function: str
    alias: str


ARRAY = Import("mlx.core", "array", "mx")
COPY = Import("copy", "copy", "copy")


@dataclass(frozen=True, slots=True)
class _Scope:
    """The names that one scope binds, each with what they may stand for.

    A binding is a dotted module or member ("mlx.core", "mlx.core.array") and the line on which
    it is made, or `_OTHER` for whatever is not an import.
    """

    node: ast.AST
    bound: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    elsewhere: set[str] = field(default_factory=set)


class Names:
    """The names of one module. `text` must parse; raises SyntaxError if it does not."""

    def __init__(self, text: str) -> None:
        self._lines = re.split(r"\r\n|\r|\n", text)
        self._module = ast.parse("\n".join(self._lines))
        self._words = set(_WORD.findall(text))

    def expression(self, wanted: Import, span: Span) -> str | None:
        """Return the source of `wanted` at `span` by an import that is there, None if none is."""
        scopes = self._around(span)
        for scope in reversed(scopes):
            for name, bindings in scope.bound.items():
                for meaning, _ in bindings:
                    source = _source(name, meaning, wanted)
                    if source and self._means(scopes, name, meaning, span):
                        return source
        return None

    def free(self, wanted: Import, spans: Iterable[Span]) -> str:
        """Return a name that a new import at module level can take and that is seen at `spans`."""
        scopes = [scope for span in spans for scope in _visible(self._around(span))]
        names = [wanted.alias, wanted.module.replace(".", "_")]
        for name in names:
            if not any(name in scope.bound or name in scope.elsewhere for scope in scopes):
                return name
        return self.fresh(names[-1])

    def fresh(self, name: str) -> str:
        """Return `name`, numbered if the module uses it already, and take it."""
        number, chosen = 1, name
        while chosen in self._words:
            number += 1
            chosen = f"{name}_{number}"
        self._words.add(chosen)
        return chosen

    def in_class_body(self, span: Span) -> bool:
        """Whether a name bound at `span` would become a class attribute."""
        return isinstance(self._around(span)[-1].node, ast.ClassDef)

    def is_local(self, name: str, span: Span) -> bool:
        """Whether `name` is a variable of the function around `span` that no other one rebinds."""
        scope = self._around(span)[-1]
        if not isinstance(scope.node, ast.FunctionDef | ast.AsyncFunctionDef):
            return False
        if name in scope.elsewhere or name not in scope.bound:
            return False
        nested = (node for node in ast.walk(scope.node) if isinstance(node, ast.Nonlocal))
        return not any(name in node.names for node in nested)

    def _means(self, scopes: list[_Scope], name: str, meaning: str, span: Span) -> bool:
        """Whether `name` at `span` stands for `meaning` and nothing else."""
        for scope in reversed(_visible(scopes)):
            if name in scope.elsewhere or name not in scope.bound:
                continue
            bindings = scope.bound[name]
            if not all(_agree(found, meaning) for found, _ in bindings):
                return False
            runs_later = scope is not scopes[-1]
            return runs_later or any(line < span.line for _, line in bindings)
        return False

    def _around(self, span: Span) -> list[_Scope]:
        """Return the scopes around a place, the module first."""
        line = self._lines[span.line - 1] if span.line <= len(self._lines) else ""
        column = len(line[: span.column - 1].encode("utf-8"))
        scopes = [_read(self._module)]
        node: ast.AST | None = self._module
        while node is not None:
            inner, outside = _child(node, (span.line, column))
            if isinstance(node, _SCOPES[1:]) and not outside and inner is not None:
                scopes.append(_read(node))
            node = inner
        return scopes


def _visible(scopes: list[_Scope]) -> list[_Scope]:
    """Leave out the class bodies that a nested function does not see."""
    return [s for s in scopes if s is scopes[-1] or not isinstance(s.node, ast.ClassDef)]


def _agree(found: str, meaning: str) -> bool:
    """Whether a name bound to `found` is still good for `meaning`.

    `None` stands for a module that is not installed; all imports of parts of one package bind
    the package.
    """
    if meaning.endswith(".") and found:
        return found.partition(".")[0] == meaning.partition(".")[0]
    return found in (meaning, "None")


def _child(node: ast.AST, place: tuple[int, int]) -> tuple[ast.AST | None, bool]:
    """Return the child that holds a place, and whether it runs in the scope around `node`."""
    outside = {id(n) for n in _evaluated_outside(node)}
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.arguments | ast.comprehension | ast.arg):
            found, _ = _child(child, place)
            if found is not None:
                return found, id(found) in outside
        elif _holds(child, place):
            return child, id(child) in outside
    return None, False


def _holds(node: ast.AST, place: tuple[int, int]) -> bool:
    if not isinstance(node, ast.expr | ast.stmt | ast.ExceptHandler):
        return any(_holds(child, place) for child in ast.iter_child_nodes(node))
    end = (node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
    return (node.lineno, node.col_offset) <= place < end


def _evaluated_outside(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what stands inside a scope's node and is evaluated in the scope around it."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from node.decorator_list
            if node.returns:
                yield node.returns
            for argument in ast.walk(node.args):
                if isinstance(argument, ast.arg) and argument.annotation:
                    yield argument.annotation
            yield from (*node.args.defaults, *(d for d in node.args.kw_defaults if d))
        case ast.Lambda():
            yield from (*node.args.defaults, *(d for d in node.args.kw_defaults if d))
        case ast.ClassDef():
            yield from (*node.decorator_list, *node.bases, *node.keywords)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            yield node.generators[0].iter


def _read(node: ast.AST) -> _Scope:
    """Collect the bindings of one scope."""
    scope = _Scope(node)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg):
                _bind(scope, argument.arg, _OTHER, node.lineno)
    skipped = {id(n) for n in _evaluated_outside(node)}
    for child in _body(node):
        if id(child) not in skipped:
            _collect(scope, child)
    return scope


def _body(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.arguments):
            yield child


def _collect(scope: _Scope, node: ast.AST) -> None:
    """Add the bindings that `node` makes in `scope`, nested scopes left out."""
    match node:
        case ast.Import():
            for item in node.names:
                name = item.asname or item.name.partition(".")[0]
                meaning = item.name if item.asname or "." not in item.name else f"{item.name}."
                _bind(scope, name, meaning, node.lineno)
        case ast.ImportFrom():
            for item in node.names:
                meaning = _OTHER if node.level else f"{node.module}.{item.name}"
                _bind(scope, item.asname or item.name, meaning, node.lineno)
        case ast.Global() | ast.Nonlocal():
            scope.elsewhere.update(node.names)
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=None)):
            _bind(scope, name, "None", node.lineno)
            return
        case ast.Name(ctx=ast.Store() | ast.Del()):
            _bind(scope, node.id, _OTHER, node.lineno)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            _bind(scope, node.name, _OTHER, node.lineno)
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
            _bind(scope, name, _OTHER, node.lineno)
        case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            _bind(scope, name, _OTHER, node.lineno)
        case ast.If() if _is_type_checking(node.test):
            for statement in node.orelse:
                _collect(scope, statement)
            return
    if isinstance(node, _COMPREHENSIONS):
        _collect_walrus(scope, node)
    inner = _evaluated_outside(node) if isinstance(node, _SCOPES) else ast.iter_child_nodes(node)
    for child in inner:
        _collect(scope, child)


def _collect_walrus(scope: _Scope, node: ast.AST) -> None:
    """A walrus in a comprehension binds in the scope around it."""
    for child in ast.walk(node):
        if isinstance(child, ast.NamedExpr) and isinstance(child.target, ast.Name):
            _bind(scope, child.target.id, _OTHER, child.lineno)


def _is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"


def _bind(scope: _Scope, name: str, meaning: str, line: int) -> None:
    scope.bound.setdefault(name, []).append((meaning, line))


def _source(name: str, meaning: str, wanted: Import) -> str:
    """Return how a name that stands for `meaning` gives what is wanted, "" if it does not."""
    if meaning == wanted.module:
        return f"{name}.{wanted.function}"
    if meaning == f"{wanted.module}.":
        return f"{wanted.module}.{wanted.function}"
    return name if meaning == f"{wanted.module}.{wanted.function}" else ""
