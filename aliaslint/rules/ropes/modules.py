"""The project's functions and classes, by module, and what names in them mean."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True, eq=False)
class Class:
    """A class of the project: its methods, its bases as dotted names, and what attributes hold."""

    key: str
    module: Module
    node: ast.ClassDef
    methods: dict[str, Function] = field(default_factory=dict)
    bases: tuple[str, ...] = ()
    attributes: dict[str, list[ast.expr]] = field(default_factory=dict)
    annotations: dict[str, ast.expr] = field(default_factory=dict)


@dataclass(eq=False)
class Module:
    """A parsed file: what it imports (as dotted names), defines, and assigns."""

    path: Path
    dotted: str
    tree: ast.Module
    imports: dict[str, str] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    classes: dict[str, Class] = field(default_factory=dict)
    inner: list[Class] = field(default_factory=list)
    variables: dict[str, ast.expr] = field(default_factory=dict)
    lambdas: dict[ast.Lambda, ast.FunctionDef] = field(default_factory=dict)

    def function_of(self, node: ast.Lambda) -> ast.FunctionDef:
        """Return a lambda as a function that returns its body, the same one each time."""
        if node not in self.lambdas:
            returns = ast.copy_location(ast.Return(node.body), node.body)
            function = ast.FunctionDef("<lambda>", node.args, [returns], [])
            self.lambdas[node] = ast.copy_location(function, node)
        return self.lambdas[node]

    @cached_property
    def code(self) -> ast.FunctionDef:
        """What the module does when it is imported or run, as a function without arguments."""
        defined = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        body = [node for node in self.tree.body if not isinstance(node, defined)]
        nothing = ast.arguments([], [], None, [], [], None, [])
        return ast.FunctionDef("<module>", nothing, body, [])


class Program:
    """The modules of the project; a module is parsed when something leads to it."""

    def __init__(self, sources: Mapping[Path, str]) -> None:
        self._sources = sources
        self._paths = {dotted(path): path for path in sources}
        self._named: dict[str, list[str]] = {}  # Import names by their last part.
        for name in self._paths:
            self._named.setdefault(name.rpartition(".")[2], []).append(name)
        self._modules: dict[Path, Module | None] = {}
        self._owners: dict[Function, Module] = {}
        self.classes: dict[str, Class] = {}

    def module(self, path: Path) -> Module | None:
        """Return the module in a file, None if it cannot be parsed."""
        if path not in self._modules:
            self._modules[path] = self._parse(path)
        return self._modules[path]

    def find(self, name: str) -> Function | Class | None:
        """Return the function or class of the project that a dotted name means, or None."""
        head, _, tail = name.rpartition(".")
        path = self._paths.get(head) or self._by_suffix(head)
        module = self.module(path) if path and tail else None
        if module is None:
            return None
        if tail in module.imports and tail not in module.functions | module.classes:
            return self.find(module.imports[tail]) if module.imports[tail] != name else None
        return module.functions.get(tail) or module.classes.get(tail)

    def owner(self, function: Function) -> Module | None:
        """Return the module that defines a top-level function."""
        return self._owners.get(function)

    def _by_suffix(self, head: str) -> Path | None:
        """Find a module by the end of its name: the project's import root is not known."""
        near = self._named.get(head.rpartition(".")[2], ())
        found = [name for name in near if name.endswith(f".{head}")]
        return self._paths[found[0]] if len(found) == 1 and head else None

    def _parse(self, path: Path) -> Module | None:
        try:
            tree = ast.parse(self._sources[path])
        except (SyntaxError, ValueError, RecursionError):
            return None
        module = Module(path, dotted(path), tree)
        for node in _top(tree.body):
            self._define(module, node)
        outer = {owner.node for owner in module.classes.values()}
        for inner in ast.walk(tree):
            if isinstance(inner, ast.ClassDef) and inner not in outer:
                # Its name may be that of a class of the module too.
                module.inner.append(self._class(module, inner, f"{inner.lineno}:{inner.name}"))
        return module

    def _define(self, module: Module, node: ast.stmt) -> None:
        match node:
            case ast.Import(names=names):
                for name in names:
                    target = name.name if name.asname else name.name.partition(".")[0]
                    module.imports[name.asname or target] = target
            case ast.ImportFrom(names=names):
                base = _absolute(module, node)
                for name in names:
                    module.imports[name.asname or name.name] = f"{base}.{name.name}"
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                module.functions[node.name] = node
                self._owners[node] = module
            case ast.ClassDef():
                module.classes[node.name] = self._class(module, node, node.name)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                module.variables[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
                module.variables[name] = value

    def _class(self, module: Module, node: ast.ClassDef, name: str) -> Class:
        found = Class(f"{module.path}:{name}", module, node)
        found.bases = tuple(resolve(module, base) or ast.unparse(base) for base in node.bases)
        for item in node.body:
            match item:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    found.methods[item.name] = item
                case ast.Assign(targets=[ast.Name(id=attr)], value=ast.Lambda() as value):
                    found.methods[attr] = module.function_of(value)
                case ast.Assign(targets=[ast.Name(id=attr)], value=value):
                    found.attributes.setdefault(attr, []).append(value)
                case ast.AnnAssign(target=ast.Name(id=attr), annotation=annotation):
                    found.annotations[attr] = annotation
        for inner in ast.walk(node):
            for target, value in _assignments(inner):
                match target:
                    case ast.Attribute(value=ast.Name(id="self"), attr=attr):
                        found.attributes.setdefault(attr, []).append(value)
        self.classes[found.key] = found
        return found


def dotted(path: Path) -> str:
    """Return a file's import name as far as its path tells; the import root is not known."""
    parts = path.with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1:] == ("__init__",) else parts)


def resolve(module: Module, node: ast.expr) -> str | None:
    """Return the dotted name that an expression means in a module, None if it is no name."""
    match node:
        case ast.Name(id=name):
            if name in module.functions or name in module.classes:
                return f"{module.dotted}.{name}"
            return module.imports.get(name)
        case ast.Attribute(value=value, attr=attr):
            base = resolve(module, value)
            return f"{base}.{attr}" if base else None
    return None


def _assignments(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
            yield from zip(names, values, strict=False)
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield target, value
        case ast.AnnAssign(target=target, value=value) if value is not None:
            yield target, value


def _top(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements of a module, those under `if` and `try` included."""
    for node in body:
        yield node
        match node:
            case ast.If(body=inner, orelse=other):
                yield from _top([*inner, *other])
            case ast.Try(body=inner, orelse=other, finalbody=final):
                yield from _top([*inner, *other, *final])
                for handler in node.handlers:
                    yield from _top(handler.body)


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.dotted.split(".")
    if module.path.name != "__init__.py":
        parts = parts[:-1]
    parts = parts[: len(parts) - (node.level - 1)]
    return ".".join([*parts, *([node.module] if node.module else [])])
