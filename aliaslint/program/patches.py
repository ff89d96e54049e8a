"""Methods that a class is given from outside its body: `Class.name = function`.

The statements may stand in a module, in a function that names the class, or in one that is handed
it, as class decorators are: such a function is followed with what its parameters mean.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from aliaslint.lower.scopes import named_parameters
from aliaslint.program.modules import DefNode, Module, Symbol, collect_names, top_level
from aliaslint.program.types import ClassOf, Ext, FuncOf

SymbolOf = Callable[[Module, ast.expr], Symbol | None]
Definition = Callable[[str], tuple[Module, DefNode] | None]
# One look at the text says whether functions of a module may do it: most never do.
INSIDE = re.compile(
    r"^[ \t]+(?:(?!self\b)[A-Za-z_][\w.]*\.\w+ *= *[A-Za-z_]|setattr\()", re.MULTILINE
)
ROLES = {"property": "property", "staticmethod": "static", "classmethod": "class"}
MAX_DEPTH = 4  # functions that hand the class on to one another


@dataclass(frozen=True, slots=True, eq=False)
class Nested:
    """A lambda or a nested function, in the scope that it is written in."""

    node: DefNode
    around: Scope


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """What names mean in a module, or in a function of it: `bound` are those that mean something
    else there, and `held` what of a class a name keeps (`original = Class.method`)."""

    module: Module
    symbol_of: SymbolOf
    bound: Mapping[str, Meaning | None] = field(default_factory=dict)
    held: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def meaning(self, node: ast.expr) -> Meaning | None:
        match node:
            case ast.Name(id=name) if name in self.bound:
                return self.bound[name]
            case ast.Constant(value=str(text)):
                return text
            case ast.Lambda(args=args, body=body):
                made = ast.FunctionDef("<lambda>", args, [ast.Return(body)], [], None, None)
                ast.copy_location(made, node)
                ast.copy_location(made.body[0], node)
                return Nested(made, self)
            case _:
                return None if root(node) in self.bound else self.symbol_of(self.module, node)


Meaning = Symbol | Nested | str
Given = str | Nested  # the key of a function of a module, or a nested one


@dataclass(frozen=True, slots=True)
class Patch:
    """`function` becomes `name` of the class; `sure` where the module itself does it: what
    a function does may never be done."""

    class_key: str
    name: str
    role: str
    function: Given
    sure: bool


def root(node: ast.expr) -> str:
    """Return the name that a dotted path starts with."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def called_name(node: ast.expr) -> str:
    """Return the last name of what is called; of `make(a)(b)`, of what makes it."""
    while isinstance(node, ast.Call):
        node = node.func
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


class Patching:
    """Finds what the modules of a program give to its classes."""

    def __init__(self, modules: list[Module], symbol_of: SymbolOf, definition: Definition) -> None:
        self.modules = modules
        self.symbol_of = symbol_of
        self.definition = definition
        self.texts = {module: "\n".join(module.lines) for module in modules}
        self.inside = [module for module in modules if INSIDE.search(self.texts[module])]
        self.patchers = self.functions_that_patch()

    def patches(self) -> Iterator[Patch]:
        calls = mentions(self.patchers)
        for module in self.modules:
            scope = Scope(module, self.symbol_of)
            for node in top_level(module.tree.body):
                yield from self.statement(scope, node, sure=True)
                if isinstance(node, ast.ClassDef):
                    yield from self.decorated(scope, node)
            if module in self.inside or (calls and calls.search(self.texts[module])):
                yield from self.in_functions(scope)

    def in_functions(self, scope: Scope) -> Iterator[Patch]:
        seen: set[ast.AST] = set()
        for function in ast.walk(scope.module.tree):  # outer ones before those in them
            if isinstance(function, ast.FunctionDef) and function not in seen:
                nodes = list(ast.walk(function))
                seen.update(nodes)
                inner = self.scope_in(scope.module, nodes, {})
                for node in nodes:
                    if isinstance(node, (ast.Assign, ast.Expr, ast.For)):
                        yield from self.statement(inner, node, sure=False)

    # --- functions that are handed a class

    def functions_that_patch(self) -> dict[str, set[str]]:
        """Return by name the parameters of functions that may be given a method there, or that
        are handed on to such a function."""
        found: dict[str, set[str]] = {}
        for module in self.inside:
            for function in functions_of(module):
                given_to = patched_parameters(module, function)
                if given_to:
                    found.setdefault(function.name, set()).update(given_to)
        new = found
        while new:
            text, known, new = mentions(new), new, {}
            for module in self.modules:
                if text is not None and text.search(self.texts[module]):
                    for function in functions_of(module):
                        given_to = self.handed_on(module, function, known)
                        if given_to - found.get(function.name, set()):
                            new.setdefault(function.name, set()).update(given_to)
            for name, given_to in new.items():
                found.setdefault(name, set()).update(given_to)
        return found

    def handed_on(
        self, module: Module, function: ast.FunctionDef, known: Mapping[str, set[str]]
    ) -> set[str]:
        """Return the parameters of a function that it hands to one of the `known` ones."""
        own = {arg.arg for arg in named_parameters(function.args)}
        found: set[str] = set()
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and called_name(node) in known:
                symbol = self.symbol_of(module, node.func)
                callee = self.definition(symbol.key) if isinstance(symbol, FuncOf) else None
                wanted = known[called_name(node)]
                params = named_parameters(callee[1].args) if callee is not None else []
                for param, value in zip(params, node.args, strict=False):
                    if isinstance(value, ast.Name) and param.arg in wanted:
                        found.add(value.id)
                for keyword in node.keywords:
                    if isinstance(keyword.value, ast.Name) and keyword.arg in wanted:
                        found.add(keyword.value.id)
        return found & own

    def decorated(self, scope: Scope, node: ast.ClassDef) -> Iterator[Patch]:
        """Apply the decorators of a class, the innermost first."""
        for decorator in reversed(node.decorator_list):
            if called_name(decorator) in self.patchers:
                made = self.symbol_of(scope.module, ast.Name(node.name, ast.Load()))
                yield from self.run(self.function(scope, decorator), [made], {}, True)

    def function(self, scope: Scope, node: ast.expr) -> Meaning | None:
        """Return what is called: a function, or the one that a call of another gives back."""
        if not isinstance(node, ast.Call):
            return scope.meaning(node)
        entered = self.entered(self.function(scope, node.func), *arguments(scope, node))
        if entered is None:
            return None
        body, inner = entered
        given = (s.value for s in body if isinstance(s, ast.Return) and s.value is not None)
        return next((inner.meaning(value) for value in given), None)

    def entered(
        self,
        function: Meaning | None,
        positional: list[Meaning | None],
        keywords: dict[str, Meaning | None],
    ) -> tuple[list[ast.stmt], Scope] | None:
        """Return the body of a function that is called, and what the names in it mean."""
        around: Mapping[str, Meaning | None] = {}
        match function:
            case FuncOf(key=key):
                found = self.definition(key)
                if found is None:
                    return None
                module, node = found
            case Nested():
                module, node, around = function.around.module, function.node, function.around.bound
            case _:
                return None
        given = parameters(Scope(module, self.symbol_of), node.args, positional, keywords)
        return node.body, self.scope_in(module, top_level(node.body), {**around, **given})

    def run(
        self,
        function: Meaning | None,
        positional: list[Meaning | None],
        keywords: dict[str, Meaning | None],
        sure: bool,
        depth: int = 0,
    ) -> Iterator[Patch]:
        """Follow the body of a function that is handed a class."""
        handed = [*positional, *keywords.values()]
        if depth > MAX_DEPTH or not any(isinstance(m, ClassOf) for m in handed):
            return
        entered = self.entered(function, positional, keywords)
        if entered is None:
            return
        body, inner = entered
        for node in top_level(body):
            yield from self.statement(inner, node, sure and node in body, depth)
            sure = sure and not any(isinstance(n, (ast.Return, ast.Raise)) for n in ast.walk(node))

    def scope_in(
        self, module: Module, nodes: Iterable[ast.AST], bound: Mapping[str, Meaning | None]
    ) -> Scope:
        """Return what names mean in a function with these nodes, where `bound` are known."""
        own, names = list(nodes), dict(bound)
        inner = copy.copy(module)
        inner.names = dict(module.names)
        collect_names(inner, [n for n in own if isinstance(n, (ast.Import, ast.ImportFrom))])
        held: dict[str, tuple[str, str]] = {
            name: (meant.key, "") for name, meant in bound.items() if isinstance(meant, ClassOf)
        }
        scope = Scope(inner, self.symbol_of, names, held)
        for node in own:
            match node:
                case ast.FunctionDef(name=name):
                    names[name] = Nested(node, scope)
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute() as value):
                    meant = scope.meaning(value.value)
                    if isinstance(meant, ClassOf) and name not in held:
                        held[name] = (meant.key, value.attr)
                case _:
                    pass
        return scope

    # --- statements

    def statement(
        self, scope: Scope, node: ast.stmt, sure: bool, depth: int = 0
    ) -> Iterator[Patch]:
        match node:
            case ast.Assign(targets=[ast.Attribute(value=owner, attr=name)], value=value):
                yield from given(scope, owner, name, value, sure)
            case ast.Expr(
                value=ast.Call(func=ast.Name(id="setattr"), args=[owner, attribute, value])
            ):
                text = scope.meaning(attribute)
                if isinstance(text, str):
                    yield from given(scope, owner, text, value, sure)
            case ast.Expr(value=ast.Call() as call) if called_name(call) in self.patchers:
                function = self.function(scope, call.func)
                yield from self.run(function, *arguments(scope, call), sure, depth + 1)
            case ast.For(
                target=ast.Name(id=each), iter=ast.Tuple(elts=classes) | ast.List(elts=classes)
            ):
                for cls in classes:
                    one = scope.meaning(cls)
                    if isinstance(one, ClassOf):
                        bound = {**scope.bound, each: one}
                        naming = Scope(scope.module, self.symbol_of, bound, scope.held)
                        for inner in node.body:
                            yield from self.statement(naming, inner, sure, depth)
            case _:
                pass


def functions_of(module: Module) -> Iterator[ast.FunctionDef]:
    return (node for node in top_level(module.tree.body) if isinstance(node, ast.FunctionDef))


def mentions(names: Iterable[str]) -> re.Pattern[str] | None:
    known = sorted(names)
    return re.compile(rf"\b(?:{'|'.join(known)})\b") if known else None


def patched_parameters(module: Module, function: ast.FunctionDef) -> set[str]:
    """Return the parameters that the function, or one nested in it, may give a method to."""
    nodes = list(ast.walk(function))
    handed = {node.arg for node in nodes if isinstance(node, ast.arg)}
    own = handed | {n.name for n in nodes if isinstance(n, ast.FunctionDef)}
    found: set[str] = set()
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=owner))], value=value):
                if owner in handed and may_be_function(module, value, own):
                    found.add(owner)
            case ast.Call(func=ast.Name(id="setattr"), args=[ast.Name(id=owner), _, value]):
                if owner in handed and may_be_function(module, value, own):
                    found.add(owner)
            case _:
                pass
    return found


def may_be_function(module: Module, value: ast.expr, own: set[str]) -> bool:
    match value:
        case ast.Lambda():
            return True
        case ast.Name(id=name):
            return name in own or module.names.get(name, ("", None))[0] in {"func", "import"}
        case ast.Call(func=ast.Name(id=name)):
            return name in ROLES
        case ast.Attribute():
            return module.names.get(root(value), ("", None))[0] in {"module", "import"}
        case _:
            return False


def arguments(
    scope: Scope, call: ast.Call
) -> tuple[list[Meaning | None], dict[str, Meaning | None]]:
    keywords = {k.arg: scope.meaning(k.value) for k in call.keywords if k.arg is not None}
    return [scope.meaning(arg) for arg in call.args], keywords


def parameters(
    scope: Scope,
    args: ast.arguments,
    positional: list[Meaning | None],
    keywords: dict[str, Meaning | None],
) -> dict[str, Meaning | None]:
    """Return what each parameter means; the defaults are looked up in the module's scope."""
    names = [arg.arg for arg in (*args.posonlyargs, *args.args)]
    bound: dict[str, Meaning | None] = dict.fromkeys([*names, *(a.arg for a in args.kwonlyargs)])
    for name, default in zip(reversed(names), reversed(args.defaults), strict=False):
        bound[name] = scope.meaning(default)
    for arg, value in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        bound[arg.arg] = scope.meaning(value) if value is not None else None
    bound.update(zip(names, positional, strict=False))
    bound.update((name, meant) for name, meant in keywords.items() if name in bound)
    return bound


def given(scope: Scope, owner: ast.expr, name: str, value: ast.expr, sure: bool) -> Iterator[Patch]:
    """Yield what `owner.name = value` gives to a class."""
    made = scope.meaning(owner)
    if isinstance(made, ClassOf):
        for role, function in roles(scope, value):
            yield Patch(made.key, name, role, function, sure)


def roles(scope: Scope, value: ast.expr) -> Iterator[tuple[str, Given]]:
    """Yield role and function: two for a property with a setter."""
    known = function_of(scope, value)
    match value:
        case _ if known is not None:
            yield "method", known
        case ast.Call(func=func, args=[inner, *rest]):
            wrapper = scope.meaning(func)
            role = (
                ROLES.get(wrapper.dotted.rpartition(".")[2]) if isinstance(wrapper, Ext) else None
            )
            function = function_of(scope, inner)
            if role is not None and function is not None:
                yield role, function
            given_too = role == "property" and rest
            setter = function_of(scope, rest[0]) if given_too else None
            if setter is not None:
                yield "setter", setter
        case _:
            pass


def function_of(scope: Scope, value: ast.expr) -> Given | None:
    match scope.meaning(value):
        case FuncOf(key=key):
            return key
        case Nested() as nested:
            return nested
        case _:
            return None
