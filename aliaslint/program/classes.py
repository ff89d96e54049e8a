"""Classes of the program: bases, methods, properties, and the functions of every module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from aliaslint.lower import ir
from aliaslint.program.modules import DefNode, Module, ModuleTable, Symbol
from aliaslint.program.patches import Given, Nested, Patch, Patching, Scope, roles
from aliaslint.program.types import ClassOf, Ext, Mod


@dataclass(slots=True, eq=False)
class Method:
    """One function of a class; `role` is method, static, class, property or setter.

    `function` is the key of one that the class was given from outside its body.
    """

    node: DefNode
    role: str
    owner: ClassInfo
    function: str = ""

    @property
    def key(self) -> str:
        if self.function:
            return self.function
        return f"{self.owner.key}.{self.node.name}:{self.node.lineno}:{self.node.col_offset}"


@dataclass(slots=True, eq=False)
class ClassInfo:
    key: str
    name: str
    module: Module
    node: ast.ClassDef
    parent: ir.Function | None = None
    methods: dict[str, Method] = field(default_factory=dict)
    setters: dict[str, Method] = field(default_factory=dict)
    bases: tuple[ClassInfo, ...] = ()
    outside_bases: tuple[str, ...] = ()
    mro: tuple[ClassInfo, ...] = ()
    fields: tuple[str, ...] = ()  # of a dataclass or named tuple, in order
    init_only: tuple[str, ...] = ()  # those of the fields that `__post_init__` alone is given
    record: str = ""  # "dataclass", "namedtuple" or ""
    class_names: frozenset[str] = frozenset()
    nested: dict[str, str] = field(default_factory=dict)  # classes of its body, by name
    replaced: dict[str, Method] = field(default_factory=dict)  # given by a module, once and for all
    patches: dict[str, list[Method]] = field(default_factory=dict)  # given if a function is called

    def own(self, name: str) -> Method | None:
        """Return what instances of this very class call by the name."""
        return self.replaced.get(name) or self.methods.get(name)

    def find(self, name: str) -> Method | None:
        for info in self.mro:
            method = info.own(name)
            if method is not None:
                return method
        return next(iter(self.alternatives(name)), None)

    def alternatives(self, name: str) -> list[Method]:
        """Return what may be called instead, once a function has given it to the class."""
        return [m for info in self.mro for m in info.patches.get(name, ())]

    def meanings(self, name: str) -> list[Method]:
        """Return what `Class.name` may be: it may have been read before it was replaced."""
        for info in self.mro:
            bound = [names[name] for names in (info.methods, info.replaced) if name in names]
            known = bound + info.patches.get(name, [])
            if known:
                return known
        return []

    def every(self) -> Iterator[tuple[str, Method]]:
        """Yield all methods and setters of this very class, those it is given too."""
        yield from self.methods.items()
        yield from self.setters.items()
        yield from self.replaced.items()
        for name, given in self.patches.items():
            yield from ((name, method) for method in given)

    def find_setter(self, name: str) -> Method | None:
        for info in self.mro:
            if name in info.setters:
                return info.setters[name]
            if info.own(name):
                return None
        return None

    def after(self, owner: ClassInfo, name: str) -> Method | None:
        """Return the method that `super()` finds from within a method of `owner`."""
        seen = False
        for info in self.mro:
            if seen and info.own(name):
                return info.own(name)
            seen = seen or info is owner
        return None

    def has_class_name(self, name: str) -> ClassInfo | None:
        for info in self.mro:
            if name in info.class_names:
                return info
        return None

    def find_nested(self, name: str) -> str | None:
        """Return the key of a class that is defined in the body of this one or of a base."""
        return next((info.nested[name] for info in self.mro if name in info.nested), None)

    def is_module_class(self) -> bool:
        """True for subclasses of `mlx.nn.Module`, whose instances are called through."""
        return any("nn." in base and base.startswith("mlx") for base in self.all_outside())

    def all_outside(self) -> Iterator[str]:
        for info in self.mro:
            yield from info.outside_bases


class ClassTable:
    """Finds classes and functions by key; lowers functions when they are first needed."""

    def __init__(self, modules: ModuleTable) -> None:
        self.modules = modules
        self._classes: dict[str, ClassInfo | None] = {}
        self._functions: dict[str, ir.Function] = {}
        self.registered: dict[str, ir.Function] = {}
        self.owner_of: dict[str, ClassInfo] = {}
        self.property_names: set[str] = set()
        self.subclasses: dict[str, list[ClassInfo]] = {}
        self._patches: dict[str, list[Patch]] | None = None

    # --- classes

    def get(self, key: str) -> ClassInfo | None:
        if key not in self._classes:
            self._classes[key] = None
            found = self._definition(key)
            if found:
                self._classes[key] = self._build(key, *found)
        return self._classes[key]

    def _definition(self, key: str) -> tuple[Module, ast.ClassDef, ir.Function | None] | None:
        module_id, _, name = key.partition(":")
        module = self.modules.by_id.get(module_id)
        if module is None:
            return None
        if key in module.lowering.inner_classes:
            node, parent = module.lowering.inner_classes[key]
            return module, node, parent
        binding = module.names.get(name)
        if binding and binding[0] == "class":
            assert isinstance(binding[1], ast.ClassDef)
            return module, binding[1], None
        return None

    def _build(
        self, key: str, module: Module, node: ast.ClassDef, parent: ir.Function | None
    ) -> ClassInfo:
        info = ClassInfo(key, node.name, module, node, parent)
        self._classes[key] = info
        collect_methods(info, node.body)
        self._name_functions(info)
        self._patch(info)
        self.property_names.update(n for n, m in info.every() if m.role == "property")
        bases: list[ClassInfo] = []
        outside: list[str] = []
        for base in node.bases:
            symbol = self.symbol_of(module, base)
            match symbol:
                case ClassOf(key=base_key):
                    found = self.get(base_key)
                    if found and found is not info:
                        bases.append(found)
                case Ext(dotted=dotted):
                    outside.append(dotted)
                case _:
                    outside.append(ast.unparse(base))
        info.bases, info.outside_bases = tuple(bases), tuple(outside)
        info.mro = linearise(info)
        for ancestor in info.mro[1:]:
            self.subclasses.setdefault(ancestor.key, []).append(info)
        self._record(info)
        return info

    def _patch(self, info: ClassInfo) -> None:
        """Give the class the methods that modules give it from outside its body."""
        if self._patches is None:
            self._patches = {}
            modules = list(self.modules.by_id.values())
            for patch in Patching(modules, self.symbol_of, self.definition).patches():
                self._patches.setdefault(patch.class_key, []).append(patch)
        for patch in self._patches.get(info.key, ()):
            method = self._given(info, patch.role, patch.function)
            if method is None:
                continue
            if patch.role == "setter":
                info.setters[patch.name] = method
            elif patch.sure:
                info.replaced[patch.name] = method
            else:
                info.patches.setdefault(patch.name, []).append(method)

    def _given(self, info: ClassInfo, role: str, given: Given) -> Method | None:
        if isinstance(given, Nested):
            return self._nested(info, role, given)
        found = self.definition(given)
        if found is None or self.function(given) is None:
            return None
        return Method(found[1], role, info, given)

    def _nested(self, info: ClassInfo, role: str, nested: Nested) -> Method:
        """A nested function is read like the class's own, wherever it is written."""
        lowering = nested.around.module.lowering
        lowering.known = nested.around.held
        _, _, class_name = info.key.partition(":")
        function = lowering.function(nested.node, f"{class_name}.{nested.node.name}", info.key)
        lowering.known = {}
        self._functions[function.key] = function
        return Method(nested.node, role, info, function.key)

    def _name_functions(self, info: ClassInfo) -> None:
        """`step = function_of_the_module` in a class body, and `step = lambda self: ...`."""
        for node in info.node.body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    if name in info.methods:
                        continue
                    for role, given in roles(Scope(info.module, self.symbol_of), value):
                        method = self._given(info, role, given)
                        if method is not None:
                            (info.setters if role == "setter" else info.replaced)[name] = method
                case _:
                    pass

    def _record(self, info: ClassInfo) -> None:
        decorators = [ast.unparse(d) for d in info.node.decorator_list]
        inherited = tuple(f for b in info.bases for f in b.fields)
        info.init_only = tuple(f for b in info.bases for f in b.init_only) + tuple(
            s.target.id
            for s in info.node.body
            if isinstance(s, ast.AnnAssign)
            and isinstance(s.target, ast.Name)
            and "InitVar" in ast.unparse(s.annotation)
        )
        own = tuple(
            s.target.id
            for s in info.node.body
            if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
        )
        if any("dataclass" in d for d in decorators):
            info.record = "dataclass"
        elif any("NamedTuple" in b for b in info.outside_bases):
            info.record = "namedtuple"
        elif any(b.record for b in info.bases):
            info.record = next(b.record for b in info.bases if b.record)
        if info.record:
            info.fields = inherited + tuple(f for f in own if f not in inherited)

    def symbol_of(self, module: Module, node: ast.expr) -> Symbol | None:
        """Return what a name or dotted path means at the top level of `module`."""
        match node:
            case ast.Name(id=name):
                return self.modules.resolve(module, name)
            case ast.Attribute(value=value, attr=attr):
                base = self.symbol_of(module, value)
                match base:
                    case Ext(dotted=dotted):
                        return Ext(f"{dotted}.{attr}")
                    case Mod(key=module_id):
                        found = self.modules.by_id[module_id]
                        return self.member(found, attr)
                    case _:
                        return None
            case ast.Subscript(value=value):
                return self.symbol_of(module, value)
            case _:
                return None

    def member(self, module: Module, attr: str) -> Symbol | None:
        """Return what `module.attr` means: a name of it, or a module below it."""
        symbol = self.modules.resolve(module, attr)
        if symbol is None or (isinstance(symbol, Ext) and symbol.dotted == f"builtins.{attr}"):
            below = self.modules.find(module, f".{attr}")
            if below and module.path.name == "__init__.py":
                return Mod(below.id)
            return None
        return symbol

    # --- functions

    def method(self, method: Method) -> ir.Function:
        key = method.key
        if method.function:
            return self._functions[method.function]
        if key not in self._functions:
            owner = method.owner
            lowering = owner.module.lowering
            _, _, class_name = owner.key.partition(":")
            function = lowering.function(method.node, f"{class_name}.{method.node.name}", owner.key)
            if owner.parent is not None:
                function.parent = owner.parent
            self._functions[key] = function
            self.owner_of[function.key] = owner
        return self._functions[key]

    def function(self, key: str) -> ir.Function | None:
        """Return a module-level function by the key that `FuncOf` carries."""
        if key not in self._functions:
            found = self.definition(key)
            if found is None:
                return None
            module, node = found
            self._functions[key] = module.lowering.function(node, node.name)
        return self._functions[key]

    def definition(self, key: str) -> tuple[Module, DefNode] | None:
        """Return the module and the node of a module-level function."""
        module_id, name, _, _ = key.split(":")
        module = self.modules.by_id[module_id]
        node = module.names.get(name, ("", None))[1]
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return None
        return module, node

    def register(self, function: ir.Function) -> None:
        """Remember a nested function met while lowering another one."""
        self._functions[function.key] = function
        self.registered[function.key] = function

    def known_function(self, key: str) -> ir.Function | None:
        return self._functions.get(key)


def collect_methods(info: ClassInfo, body: list[ast.stmt]) -> None:
    """Record the methods of a class body with their roles, and its plain attributes."""
    names: set[str] = set(info.class_names)
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                role = role_of(node)
                method = Method(node, role, info)
                if role == "setter":
                    info.setters[name] = method
                elif role != "deleter":
                    info.methods[name] = method
            case ast.ClassDef(name=name):
                key = info.nested[name] = f"{info.key}.{name}"
                info.module.lowering.inner_classes[key] = (node, info.parent)
            case ast.Assign(targets=targets):
                names.update(t.id for t in targets if isinstance(t, ast.Name))
                alias_method(info, node)
            case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
                names.add(name)
            case ast.If(body=then, orelse=other):
                collect_methods(info, then)
                collect_methods(info, other)
                names.update(info.class_names)
            case _:
                pass
    info.class_names = frozenset(names)


def alias_method(info: ClassInfo, node: ast.Assign) -> None:
    """`step = update_and_fetch` and `state = property(get, set)` in a class body."""
    match node.value:
        case ast.Name(id=source) if source in info.methods:
            for target in node.targets:
                if isinstance(target, ast.Name):
                    info.methods[target.id] = info.methods[source]
        case ast.Call(func=ast.Name(id="property"), args=[ast.Name(id=getter), *rest]):
            for target in node.targets:
                if isinstance(target, ast.Name) and getter in info.methods:
                    info.methods[target.id] = Method(info.methods[getter].node, "property", info)
                    if rest and isinstance(rest[0], ast.Name) and rest[0].id in info.methods:
                        node_ = info.methods[rest[0].id].node
                        info.setters[target.id] = Method(node_, "setter", info)
        case ast.Call(func=func, args=[_, *_]) if ast.unparse(func).endswith("partialmethod"):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    info.methods[target.id] = Method(
                        partial_method(info, target.id, node.value), "method", info
                    )
        case _:
            pass


def partial_method(info: ClassInfo, name: str, call: ast.Call) -> ast.FunctionDef:
    """Write `name = partialmethod(f, a)` out as the method that it makes."""
    text = f"def {name}(self, *args, **kwargs):\n    return f(self, *args, **kwargs)"
    made = ast.parse(text).body[0]
    for node in ast.walk(made):
        ast.copy_location(node, call)
    function, *given = call.args
    match made:
        case ast.FunctionDef(body=[ast.Return(value=ast.Call() as inner)]):
            receiver, *rest = inner.args
            inner.func, inner.args = function, [receiver, *given, *rest]
            inner.keywords = [*call.keywords, *inner.keywords]
            if isinstance(function, ast.Name) and function.id in info.methods:
                own = ast.Name("self", ast.Load())
                inner.func = ast.Attribute(ast.copy_location(own, call), function.id, ast.Load())
                ast.copy_location(inner.func, call)
                inner.args = [*given, *rest]
    assert isinstance(made, ast.FunctionDef)
    return made


def role_of(node: DefNode) -> str:
    for decorator in node.decorator_list:
        text = ast.unparse(decorator)
        if text in {"staticmethod", "classmethod"}:
            return text.removesuffix("method")
        if text == "property" or text.endswith("cached_property"):
            return "property"
        if text.endswith(".setter"):
            return "setter"
        if text.endswith(".deleter"):
            return "deleter"
    if node.name == "__new__":
        return "static"
    if node.name in {"__init_subclass__", "__class_getitem__"}:
        return "class"
    return "method"


def linearise(info: ClassInfo) -> tuple[ClassInfo, ...]:
    """Return the classes in lookup order (C3 for the common cases: depth first, last kept)."""
    order: list[ClassInfo] = [info]
    for base in info.bases:
        order.extend(base.mro or (base,))
    kept: list[ClassInfo] = []
    for i, item in enumerate(order):
        if item not in order[i + 1 :]:
            kept.append(item)
    return tuple(kept)
