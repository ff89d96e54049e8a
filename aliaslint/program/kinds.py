"""What an attribute may hold: inferred from every assignment that the class makes to it.

Inference is flow-insensitive and lazy: it answers for one class and attribute at a time, and
the flow analysis refines the answer inside a method.
"""

from __future__ import annotations

from collections.abc import Iterator

from aliaslint.lower import ir
from aliaslint.lower.walk import Path, bindings, expressions, statements
from aliaslint.program import library
from aliaslint.program.classes import ClassInfo, ClassTable
from aliaslint.program.modules import GlobalVar, Module
from aliaslint.program.types import (
    ARRAY,
    NONE,
    NOTHING,
    OTHER,
    SCALAR,
    STR,
    UNKNOWN,
    ClassOf,
    Ext,
    ExtInst,
    FuncOf,
    Inst,
    Map,
    Mod,
    PartialOf,
    Seq,
    Tup,
    Type,
)
from aliaslint.program.wrappers import Decorations

MAX_DEPTH = 12


class Kinds:
    """Type questions about attributes, module variables, annotations and expressions."""

    def __init__(self, classes: ClassTable) -> None:
        self.classes = classes
        self.modules = classes.modules
        self._assigned: dict[str, dict[str, list[tuple[ir.Expr | None, Path, ir.Function]]]] = {}
        self._attributes: dict[tuple[str, str], Type] = {}
        self._locals: dict[str, dict[str, list[tuple[ir.Expr | None, Path]]]] = {}
        self._globals: dict[tuple[str, str], Type] = {}
        self._names: dict[str, dict[str, tuple[str, ...]]] = {}
        self._returns: dict[tuple[str, str], Type] = {}
        self._evidence: dict[str, frozenset[str]] = {}
        self._variables: dict[tuple[str, str, str | None], Type] = {}
        self._active: set[object] = set()
        self._cuts = 0  # questions that were not followed: what rests on one is not kept
        self._depth = 0
        self.decorations = Decorations(self)

    # --- attributes

    def attribute(self, class_key: str, name: str) -> Type:
        """Return what instances of the class may hold under `name` (NOTHING if never set)."""
        key = (class_key, name)
        if key in self._attributes:
            return self._attributes[key]
        if key in self._active:
            self._cuts += 1
            return NOTHING
        info = self.classes.get(class_key)
        if info is None:
            return UNKNOWN
        self._active.add(key)
        result = NOTHING
        for ancestor in info.mro:
            for expr, path, function in self.assigned(ancestor).get(name, ()):
                result |= self.through(self.expression(expr, function, class_key), path)
        result |= self._declared(info, name)
        if "array" not in result and "scalar" in result:
            result -= UNKNOWN  # numbers in sight and no array: what is unknown is a number too
        self._active.discard(key)
        if not self._active or result - UNKNOWN:
            self._attributes[key] = result
        return result

    def _declared(self, info: ClassInfo, name: str) -> Type:
        import ast

        for ancestor in info.mro:
            for node in ancestor.node.body:
                if isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == name:
                    note = self._lower_in_class(ancestor, node.annotation)
                    return self.annotation(note, ancestor.module)
                if isinstance(node, ast.Assign) and name in ancestor.class_names:
                    for target in node.targets:
                        if isinstance(target, ast.Name) and target.id == name:
                            value = self._lower_in_class(ancestor, node.value)
                            module_body = self.module_function(ancestor.module)
                            return self.expression(value, module_body, None)
        return NOTHING

    def _lower_in_class(self, info: ClassInfo, node: object) -> ir.Expr:
        from aliaslint.lower.lowering import Scope

        lowering = info.module.lowering
        before = lowering.scope
        function = ir.Function(f"{info.key}:<class>", "<class>", info.module.id, ir.NOWHERE)
        lowering.scope = Scope(function, set(), set(), None, is_module=True)
        result = lowering.expr(node)  # type: ignore[arg-type]
        lowering.scope = before
        return result

    def assigned(
        self, info: ClassInfo
    ) -> dict[str, list[tuple[ir.Expr | None, Path, ir.Function]]]:
        """Return every assignment to an attribute of the instance in the class's own methods."""
        if info.key not in self._assigned:
            table: dict[str, list[tuple[ir.Expr | None, Path, ir.Function]]] = {}
            self._assigned[info.key] = table
            for _, method in info.every():
                if (
                    method.owner is info and method.role != "static"
                ) or method.node.name == "__new__":
                    function = self.classes.method(method)
                    for name, expr, path in self._own_assignments(info, function, method.role):
                        table.setdefault(name, []).append((expr, path, function))
        return self._assigned[info.key]

    def sets(self, info: ClassInfo, name: str) -> bool:
        """True if a method binds the attribute; `self.x op= v` alone reads it first."""
        return any(
            path != (("aug",),)
            for ancestor in info.mro
            for _, path, _ in self.assigned(ancestor).get(name, ())
        )

    def _own_assignments(
        self, info: ClassInfo, function: ir.Function, role: str
    ) -> Iterator[tuple[str, ir.Expr | None, Path]]:
        owners = set(function.params[:1]) if role in {"method", "property", "setter"} else set()
        found = list(bindings(function.body))
        for target, value, _ in found:
            if isinstance(target, ir.ToName) and self._makes_instance(info, value):
                owners.add(target.name)
        for target, value, path in found:
            match target:
                case ir.ToAttr(obj=ir.Name(name=owner), name=name) if owner in owners:
                    yield name, value, path
                case _:
                    pass
        for node in statements(function.body):
            match node:
                case ir.Aug(target=ir.ToAttr(obj=ir.Name(name=owner), name=name), value=value) if (
                    owner in owners
                ):
                    yield name, value, (("aug",),)
                case _:
                    pass

    def _makes_instance(self, info: ClassInfo, value: ir.Expr | None) -> bool:
        match value:
            case ir.Call(fn=ir.Attr(name="__new__")):
                return True
            case ir.Call(fn=ir.Name(name="cls" | "self_class")):
                return True
            case ir.Call(fn=ir.Name(name=name, scope="global")):
                return name == info.name
            case _:
                return False

    def property_type(self, class_key: str, name: str) -> Type:
        info = self.classes.get(class_key)
        method = info.find(name) if info else None
        if method is None or method.role != "property":
            return NOTHING
        return self.returned(self.classes.method(method), class_key)

    # --- functions and variables

    def returned(self, function: ir.Function, class_key: str | None) -> Type:
        """Return what a function may give back, by annotation or by its return statements."""
        key = (function.key, class_key or "")
        if key in self._returns:
            return self._returns[key]
        if key in self._active or self._depth > MAX_DEPTH:
            self._cuts += 1
            return UNKNOWN
        self._active.add(key)
        result = NOTHING
        if function.returns_annotation is not None:
            module = self.modules.by_id[function.module]
            result = self.annotation(function.returns_annotation, module)
        if not result or result == UNKNOWN:
            result = NOTHING
            for node in statements(function.body):
                if isinstance(node, ir.Return):
                    value = self.expression(node.value, function, class_key) if node.value else NONE
                    result |= value
        self._active.discard(key)
        result = result or NONE
        self._returns[key] = result
        return result

    def variables(self, function: ir.Function) -> dict[str, list[tuple[ir.Expr | None, Path]]]:
        if function.key not in self._locals:
            table: dict[str, list[tuple[ir.Expr | None, Path]]] = {}
            bodies = [function.body]
            bodies.extend(
                expr.body
                for expr in expressions(function.body)
                if isinstance(expr, ir.Comprehension)
            )
            for target, value, path in dict.fromkeys(b for body in bodies for b in bindings(body)):
                if isinstance(target, ir.ToName) and target.scope == "local":
                    table.setdefault(target.name, []).append((value, path))
            self._locals[function.key] = table
        return self._locals[function.key]

    def variable(self, function: ir.Function, name: str, class_key: str | None) -> Type:
        key = (function.key, name, class_key)
        if key in self._variables:
            return self._variables[key]
        if key in self._active or self._depth > MAX_DEPTH:
            self._cuts += 1
            return NOTHING
        self._active.add(key)
        self._depth += 1
        cuts = self._cuts
        result = NOTHING
        if name in function.params:
            result |= self.parameter(function, name, class_key)
        for expr, path in self.variables(function).get(name, ()):
            result |= self.through(self.expression(expr, function, class_key), path)
        self._depth -= 1
        self._active.discard(key)
        if cuts == self._cuts or not self._depth:
            self._variables[key] = result
        return result

    def parameter(self, function: ir.Function, name: str, class_key: str | None) -> Type:
        if function.class_key and class_key and name == function.params[0]:
            info = self.classes.get(function.class_key)
            method = info.find(function.name) if info else None
            if method is None or method.role not in {"static", "class"}:
                return frozenset({Inst(class_key)})
            if method.role == "class":
                return frozenset({ClassOf(class_key)})
        kind = function.kinds[function.params.index(name)]
        if kind == "*":
            return frozenset({Seq("tuple", UNKNOWN)})
        if kind == "**":
            return frozenset({Map(UNKNOWN)})
        note = function.annotations.get(name)
        if note is not None:
            return self.annotation(note, self.modules.by_id[function.module])
        return UNKNOWN

    def module_function(self, module: Module) -> ir.Function:
        if module.body is None:
            module.body = module.lowering.module_body(module.tree)
        return module.body

    def global_variable(self, module_id: str, name: str) -> Type:
        key = (module_id, name)
        if key not in self._globals:
            self._globals[key] = UNKNOWN
            module = self.modules.by_id[module_id]
            function = self.module_function(module)
            result = NOTHING
            for target, value, path in bindings(function.body):
                if isinstance(target, ir.ToName) and target.name == name:
                    result |= self.through(self.expression(value, function, None), path)
            self._globals[key] = result or UNKNOWN
        return self._globals[key]

    def names_of_variable(self, module_id: str, name: str) -> tuple[str, ...]:
        """Return all names of a variable of a module (`OLD = POS` gives it a second one), the
        first one first."""
        if module_id not in self._names:
            self._names[module_id] = self._find_names(module_id)
        return self._names[module_id].get(name, (name,))

    def _find_names(self, module_id: str) -> dict[str, tuple[str, ...]]:
        module = self.modules.by_id[module_id]
        values: dict[str, list[ir.Expr | None]] = {}
        for target, value, _ in bindings(self.module_function(module).body):
            if isinstance(target, ir.ToName):
                values.setdefault(target.name, []).append(value)
        groups: dict[str, tuple[str, ...]] = {}
        for name, bound in values.items():
            match bound:
                case [ir.Name(name=other, scope="global")] if len(values.get(other, ())) == 1:
                    groups[name] = (*groups.get(other, (other,)), name)
                    for known in groups[name]:
                        groups[known] = groups[name]
                case _:
                    pass
        return groups

    def symbol(self, module: Module, name: str) -> Type:
        return self.symbol_type(self.modules.resolve(module, name))

    def symbol_type(self, symbol: object) -> Type:
        match symbol:
            case FuncOf() | ClassOf() | Ext() | Mod():
                return frozenset({symbol})
            case GlobalVar(module=module_id, name=name):
                return self.global_variable(module_id, name)
            case _:
                return UNKNOWN

    # --- annotations

    def annotation(self, note: ir.Expr, module: Module) -> Type:
        match note:
            case ir.Const(value=None):
                return NONE
            case ir.Const(value=str(text)):
                return self._text_annotation(text, module)
            case ir.Name(name=name):
                return self._named_annotation(self.modules.resolve(module, name))
            case ir.Attr():
                return self._named_annotation(self.dotted(note, module))
            case ir.Fresh(operands=operands):
                return frozenset().union(*(self.annotation(o, module) for o in operands))
            case ir.Item(obj=obj, index=index, operands=operands):
                return self._generic(obj, index, operands, module)
            case _:
                return UNKNOWN

    def _text_annotation(self, text: str, module: Module) -> Type:
        import ast

        from aliaslint.lower.lowering import Scope

        try:
            node = ast.parse(text, mode="eval").body
        except SyntaxError:
            return UNKNOWN
        lowering = module.lowering
        before = lowering.scope
        function = ir.Function(f"{module.id}:<note>", "<note>", module.id, ir.NOWHERE)
        lowering.scope = Scope(function, set(), set(), None, is_module=True)
        lowered = lowering.expr(node)
        lowering.scope = before
        return UNKNOWN if isinstance(lowered, ir.Const) else self.annotation(lowered, module)

    def _generic(
        self, obj: ir.Expr, index: ir.Expr | None, operands: tuple[ir.Expr, ...], module: Module
    ) -> Type:
        name = obj.name if isinstance(obj, (ir.Name, ir.Attr)) else ""
        inner = [index] if index is not None else list(operands)
        types = [self.annotation(o, module) for o in inner]
        if name == "Optional":
            return frozenset().union(NONE, *types)
        if name == "Union":
            return frozenset().union(*types)
        if name in {"List", "list", "Sequence", "Iterable", "Iterator", "Tuple", "tuple"} and types:
            if name in {"Tuple", "tuple"} and len(types) > 1:
                return frozenset({Tup(tuple(types))})
            return frozenset({Seq("list", frozenset().union(*types))})
        if name in {"Dict", "dict", "Mapping"} and types:
            return frozenset({Map(types[-1])})
        return UNKNOWN

    def _named_annotation(self, symbol: object) -> Type:
        match symbol:
            case Ext(dotted="mlx.core.array"):
                return ARRAY
            case Ext(dotted="builtins.int" | "builtins.float" | "builtins.bool"):
                return SCALAR
            case Ext(dotted="builtins.str" | "builtins.bytes"):
                return STR
            case Ext(dotted="builtins.list" | "builtins.tuple" | "typing.List"):
                return frozenset({Seq("list", UNKNOWN)})
            case Ext(dotted="builtins.dict" | "typing.Dict"):
                return frozenset({Map(UNKNOWN)})
            case ClassOf(key=key):
                return frozenset({Inst(key)})
            case _:
                return UNKNOWN

    def dotted(self, expr: ir.Expr, module: Module) -> object:
        """Return the symbol of a dotted path of names, or None."""
        match expr:
            case ir.Name(name=name):
                return self.modules.resolve(module, name)
            case ir.Attr(obj=obj, name=name):
                base = self.dotted(obj, module)
                if isinstance(base, Ext):
                    return Ext(f"{base.dotted}.{name}")
                if isinstance(base, Mod):
                    return self.classes.member(self.modules.by_id[base.key], name)
                return None
            case _:
                return None

    # --- expressions

    def through(self, type_: Type, path: Path) -> Type:
        """Follow an access path (`("item", 0)`, `("elem",)`) into a type."""
        for step in path:
            match step:
                case ("aug",):
                    type_ = type_ & ARRAY
                case ("item", int(i)):
                    type_ = self._at(type_, i)
                case ("elem",) | ("any",) | ("item", _):
                    type_ = self._element(type_)
                case _:
                    type_ = UNKNOWN
        return type_

    def _at(self, type_: Type, index: int) -> Type:
        result = NOTHING
        for atom in type_:
            match atom:
                case Tup(elements=elements) if -len(elements) <= index < len(elements):
                    result |= elements[index]
                case "array":
                    result |= ARRAY
                case Seq(element=element) | Map(element=element):
                    result |= element
                case _:
                    result |= UNKNOWN
        return result

    def _element(self, type_: Type) -> Type:
        result = NOTHING
        for atom in type_:
            match atom:
                case Seq(element=element) | Map(element=element):
                    result |= element
                case Tup(elements=elements):
                    result = result.union(*elements)
                case "array":
                    result |= ARRAY
                case _:
                    result |= UNKNOWN
        return result

    def expression(self, expr: ir.Expr | None, fn: ir.Function, cls: str | None) -> Type:
        """Return the type of an expression of `fn`, where `self` is an instance of `cls`."""
        if expr is None:
            return UNKNOWN
        if self._depth > MAX_DEPTH:
            self._cuts += 1
            return UNKNOWN
        self._depth += 1
        result = self._expression(expr, fn, cls)
        self._depth -= 1
        return result

    def _expression(self, expr: ir.Expr, fn: ir.Function, cls: str | None) -> Type:
        match expr:
            case ir.Const(value=value):
                return const_type(value)
            case ir.Name(name=name, scope="local"):
                return self.variable(fn, name, cls)
            case ir.Name(name=name, scope="global"):
                return self.symbol(self.modules.by_id[fn.module], name)
            case ir.Name(name=name, scope="cell", depth=depth):
                outer: ir.Function | None = fn
                for _ in range(depth):
                    outer = outer.parent if outer else None
                return self.variable(outer, name, cls) if outer else UNKNOWN
            case ir.Name(name=name, scope="class"):
                return frozenset({ClassOf(name)})
            case ir.Attr(obj=obj, name=name):
                return self.member(self.expression(obj, fn, cls), name)
            case ir.Call():
                return self.call(expr, fn, cls)
            case ir.Item(obj=obj, index=index):
                base = self.expression(obj, fn, cls)
                if isinstance(index, ir.Const) and isinstance(index.value, int):
                    return self._at(base, index.value)
                return base if expr.plain_slice else self._element(base)
            case ir.Fresh(operands=operands, how=how):
                return fresh_type(how, [self.expression(o, fn, cls) for o in operands])
            case ir.Build(kind=kind, items=items):
                return self._display(kind, items, fn, cls)
            case ir.Comprehension(kind=kind, body=body):
                element = NOTHING
                for node in statements(body):
                    if isinstance(node, ir.Emit):
                        element |= self.expression(node.value, fn, cls)
                return frozenset({Map(element) if kind == "dict" else Seq(kind, element)})
            case ir.Choice(then=then, other=other):
                return self.expression(then, fn, cls) | self.expression(other, fn, cls)
            case ir.BoolOp(values=values):
                return frozenset().union(*(self.expression(v, fn, cls) for v in values))
            case ir.Walrus(value=value):
                return self.expression(value, fn, cls)
            case ir.Not():
                return SCALAR
            case ir.Closure(function=function):
                self.classes.register(function)
                return frozenset({FuncOf(function.key)})
            case _:
                return UNKNOWN

    def _display(
        self, kind: str, items: tuple[ir.Expr, ...], fn: ir.Function, cls: str | None
    ) -> Type:
        types = [self.expression(i, fn, cls) for i in items if not isinstance(i, ir.Star)]
        if kind == "tuple" and len(types) == len(items):
            return frozenset({Tup(tuple(types))})
        element = frozenset().union(NOTHING, *types)
        if len(types) < len(items):
            element |= UNKNOWN
        return frozenset({Map(element) if kind == "dict" else Seq(kind, element)})

    def member(self, base: Type, name: str) -> Type:
        """Return the type of `.name` on a value of type `base`."""
        result = NOTHING
        for atom in base:
            match atom:
                case Inst(key=key):
                    result |= self.instance_member(key, name)
                case ClassOf(key=key):
                    info = self.classes.get(key)
                    methods = info.meanings(name) if info else []
                    nested = info.find_nested(name) if info else None
                    if nested is not None:
                        result |= frozenset({ClassOf(nested)})
                        continue
                    result |= frozenset(FuncOf(m.key) for m in methods) or UNKNOWN
                case Ext(dotted=dotted):
                    result |= frozenset({Ext(f"{dotted}.{name}")})
                case Mod(key=key):
                    module = self.modules.by_id[key]
                    result |= self.symbol_type(self.classes.member(module, name))
                case "array":
                    result |= array_member(name)
                case "none":
                    pass
                case _:
                    result |= array_member(name) if name == "shape" else UNKNOWN
        return result or UNKNOWN

    def instance_member(self, key: str, name: str) -> Type:
        info = self.classes.get(key)
        if info is None:
            return UNKNOWN
        if name == "__class__":
            return frozenset({ClassOf(key)})
        nested = info.find_nested(name)
        if nested is not None:
            return frozenset({ClassOf(nested)})
        method = info.find(name)
        if method is not None:
            if method.role == "property":
                return self.property_type(key, name)
            return frozenset({FuncOf(method.key)})
        return self.attribute(key, name) or UNKNOWN

    def call(self, expr: ir.Call, fn: ir.Function, cls: str | None) -> Type:
        match expr.fn:
            case ir.Attr(obj=obj, name=name):
                return self._method_call(expr, obj, name, fn, cls)
            case _:
                result = NOTHING
                for atom in self.expression(expr.fn, fn, cls):
                    result |= self._call_atom(atom, None, expr, fn, cls)
                return result or UNKNOWN

    def _method_call(
        self, expr: ir.Call, obj: ir.Expr, name: str, fn: ir.Function, cls: str | None
    ) -> Type:
        base = self.expression(obj, fn, cls)
        if name == "__get__" and expr.args:
            return self._bound(obj, expr.args[0].value, fn, cls)
        result = NOTHING
        for atom in base:
            match atom:
                case Inst(key=key):
                    info = self.classes.get(key)
                    method = info.find(name) if info else None
                    if method is not None and method.role != "property":
                        result |= self.returned(self.classes.method(method), key)
                        continue
                    for inner in self.instance_member(key, name):
                        result |= self._call_atom(inner, None, expr, fn, cls)
                case "array":
                    result |= SCALAR if name in library.ARRAY_SCALARS else ARRAY
                case "none":
                    pass
                case Ext() | Mod() | ClassOf():
                    for inner in self.member(frozenset({atom}), name):
                        result |= self._call_atom(inner, None, expr, fn, cls)
                case Map(element=element) if name in {"get", "pop", "setdefault"}:
                    result |= element
                case _:
                    result |= UNKNOWN
        return result or UNKNOWN

    def _bound(self, function: ir.Expr, to: ir.Expr, fn: ir.Function, cls: str | None) -> Type:
        """Return the type of a function that is bound to the receiver of the method `fn`."""
        own = isinstance(to, ir.Name) and to.name in fn.params[:1] and fn.class_key is not None
        atoms = self.expression(function, fn, cls) if own else UNKNOWN
        keys = [atom.key for atom in atoms if isinstance(atom, FuncOf)]
        return (
            frozenset({PartialOf("bound", (keys[0],))}) if len(atoms) == len(keys) == 1 else UNKNOWN
        )

    def _call_atom(
        self, atom: object, receiver: str | None, expr: ir.Call, fn: ir.Function, cls: str | None
    ) -> Type:
        match atom:
            case ClassOf(key=key):
                return frozenset({Inst(key)})
            case FuncOf(key=key):
                function = self.function(key)
                return self.returned(function, None) if function else UNKNOWN
            case Inst(key=key):
                info = self.classes.get(key)
                method = info.find("__call__") if info else None
                return self.returned(self.classes.method(method), key) if method else UNKNOWN
            case ExtInst(dotted=dotted):
                return library.instance_call_result(dotted)
            case Ext(dotted=dotted):
                return self._library_call(dotted, expr, fn, cls)
            case _:
                return UNKNOWN

    def function(self, key: str) -> ir.Function | None:
        """Return the function with this key, a nested one that was met included."""
        return self.classes.known_function(key) or self.find_function(key)

    def find_function(self, key: str) -> ir.Function | None:
        """Return the function with this key, lowering a method where the key names one."""
        parts = key.split(":")
        if len(parts) == 4 and "." in parts[1]:
            owner, _, name = parts[1].rpartition(".")
            info = self.classes.get(f"{parts[0]}:{owner}")
            if info and name in info.methods:
                return self.classes.method(info.methods[name])
            given = (m for _, m in info.every() if m.key == key) if info else iter(())
            return next((self.classes.method(method) for method in given), None)
        return self.classes.function(key) if len(parts) == 4 else None

    def _library_call(self, dotted: str, expr: ir.Call, fn: ir.Function, cls: str | None) -> Type:
        args = [a.value for a in expr.args if not a.name]
        if dotted in {"copy.copy", "copy.deepcopy", "builtins.max", "builtins.min"} and args:
            return self.expression(args[0], fn, cls)
        if dotted in {"builtins.list", "builtins.tuple", "builtins.sorted", "builtins.set"}:
            element = self._element(self.expression(args[0], fn, cls)) if args else NOTHING
            return frozenset({Seq(dotted.rpartition(".")[2], element)})
        if dotted in {"builtins.zip", "builtins.enumerate", "builtins.reversed"}:
            inner = [self._element(self.expression(a, fn, cls)) for a in args]
            if dotted == "builtins.enumerate" and inner:
                return frozenset({Seq("list", frozenset({Tup((SCALAR, inner[0]))}))})
            if dotted == "builtins.reversed" and inner:
                return frozenset({Seq("list", inner[0])})
            return frozenset({Seq("list", frozenset({Tup(tuple(inner))}))})
        if dotted == "builtins.range":
            return frozenset({Seq("list", SCALAR)})
        if dotted == "builtins.getattr" and len(args) >= 2 and isinstance(args[1], ir.Const):
            base = self.member(self.expression(args[0], fn, cls), str(args[1].value))
            return base | (self.expression(args[2], fn, cls) if len(args) > 2 else NOTHING)
        if dotted == "types.MethodType" and len(args) == 2:
            return self._bound(args[0], args[1], fn, cls)
        if dotted in {f"operator.{kind}" for kind in GETTERS}:
            names = tuple(a.value for a in args if isinstance(a, ir.Const))
            known = tuple(n for n in names if isinstance(n, (int, str)))
            complete = len(known) == len(expr.args)
            return frozenset({PartialOf(dotted[9:], known)}) if complete else UNKNOWN
        if dotted == "builtins.type" and len(args) == 1:
            of = self.expression(args[0], fn, cls)
            return frozenset(ClassOf(a.key) if isinstance(a, Inst) else "unknown" for a in of)
        if dotted == "builtins.object.__new__" and args:
            of = self.expression(args[0], fn, cls)
            return frozenset(Inst(a.key) if isinstance(a, ClassOf) else "unknown" for a in of)
        if dotted == "builtins.dict":
            return frozenset({Map(UNKNOWN)})
        return library.call_result(dotted)

    # --- evidence for parameters

    def array_evidence(self, function: ir.Function) -> frozenset[str]:
        """Return the parameters that the body shows to be arrays of MLX.

        Evidence is an annotation, being an argument of a function of MLX, `@`, or an index
        with several axes in a module that uses MLX and no other array library.
        """
        if function.key not in self._evidence:
            self._evidence[function.key] = frozenset(self._find_evidence(function))
        return self._evidence[function.key]

    def _is_layer(self, fn: ir.Expr, function: ir.Function) -> bool:
        """True for `self.name` that holds layers of mlx.nn alone: they take arrays."""
        match fn:
            case ir.Attr(obj=obj, name=name) if function.class_key and is_receiver(obj, function):
                atoms = self.instance_member(function.class_key, name)
                layers = [
                    a for a in atoms if isinstance(a, ExtInst) and a.dotted.startswith("mlx.")
                ]
                return 0 < len(layers) == len(atoms)
            case _:
                return False

    def _find_evidence(self, function: ir.Function) -> Iterator[str]:
        module = self.modules.by_id[function.module]
        params = set(function.params)
        strong = module.imports_mlx and not module.imports_other_arrays
        for expr in expressions(function.body):
            match expr:
                case ir.Call(fn=fn, args=args):
                    symbol = self.dotted(fn, module) if isinstance(fn, ir.Attr) else None
                    if isinstance(symbol, Ext) and symbol.dotted.startswith("mlx."):
                        tail = symbol.dotted.rpartition(".")[2]
                        if tail in ARRAY_TAKERS or symbol.dotted.startswith(
                            ("mlx.core.fast.", "mlx.core.linalg.", "mlx.core.fft.")
                        ):
                            for arg in args[:1]:
                                yield from name_in(arg.value, params)
                    elif args and self._is_layer(fn, function):
                        yield from name_in(args[0].value, params)
                    if strong and isinstance(fn, ir.Attr) and fn.name in library.ARRAY_METHODS:
                        yield from name_in(fn.obj, params)
                case ir.Fresh(operands=operands, how="matmul") if strong:
                    for operand in operands:
                        yield from name_in(operand, params)
                case ir.Item(obj=obj, index=None, plain_slice=False) if strong:
                    yield from name_in(obj, params)
                case _:
                    pass
        for node in statements(function.body):
            match node:
                case ir.Assign(targets=(ir.ToItem(obj=obj, index=None, plain_slice=False),)):
                    if strong:
                        yield from name_in(obj, params)
                case ir.Aug(target=ir.ToItem(obj=obj, index=None, plain_slice=False)) if strong:
                    yield from name_in(obj, params)
                case _:
                    pass


def is_receiver(expr: ir.Expr, function: ir.Function) -> bool:
    return isinstance(expr, ir.Name) and function.params[:1] == (expr.name,)


GETTERS = ("attrgetter", "itemgetter", "methodcaller")
ARRAY_TAKERS = frozenset(
    "softmax exp log sqrt rsqrt square abs negative sin cos tan tanh sigmoid relu silu gelu "
    "argmax argmin argsort sort sum mean var std cumsum logsumexp matmul take take_along_axis "
    "reshape transpose swapaxes squeeze expand_dims flatten broadcast_to repeat tile pad split "
    "roll quantize dequantize quantized_matmul stop_gradient contiguous zeros_like ones_like "
    "addmm clip topk partition argpartition conv1d conv2d rope rms_norm layer_norm "
    "scaled_dot_product_attention".split()
)


def name_in(expr: ir.Expr, names: set[str]) -> Iterator[str]:
    if isinstance(expr, ir.Name) and expr.scope == "local" and expr.name in names:
        yield expr.name


def const_type(value: object) -> Type:
    match value:
        case None:
            return NONE
        case bool() | int() | float() | complex():
            return SCALAR
        case str() | bytes():
            return STR
        case _:
            return OTHER


def array_member(name: str) -> Type:
    if name == "shape":
        return frozenset({Seq("tuple", SCALAR)})
    if name in library.METADATA:
        return OTHER if name == "dtype" else SCALAR
    if name in {"T", "real", "imag"}:
        return ARRAY
    return UNKNOWN


def fresh_type(how: str, operands: list[Type]) -> Type:
    """Return the type of an operator's result from its operands' types."""
    if how in {"is", "is not", "bool"}:
        return SCALAR
    if how == "str":
        return STR
    if any("array" in t for t in operands):
        others = [t for t in operands if "array" not in t]
        pure = any(t <= ARRAY | NONE for t in operands if "array" in t)
        return ARRAY if pure or not others else ARRAY | frozenset().union(*others)
    if how == "matmul":
        return UNKNOWN
    if how == "repeat" and operands:
        return operands[0]
    if all(t and t <= SCALAR for t in operands):
        return SCALAR
    if any(isinstance(a, (Seq, Tup)) for t in operands for a in t):
        return operands[0] | UNKNOWN
    if how == "compare" and all(t and t <= SCALAR | NONE | STR | OTHER for t in operands):
        return SCALAR
    if all(t and t <= STR | SCALAR for t in operands):
        return STR
    return UNKNOWN
