"""What each function may lead to: the updates and captures of all that it can run.

A function leads to what its text mentions: functions, classes, the members of its own class that
it uses, variables of modules, and the classes of the cache protocol. An object can only come from
a mention of its class, so that methods of an unknown receiver need no edge; which methods of a
class run is for `program/masks.py` to say.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace

from aliaslint.lower import ir
from aliaslint.lower.walk import children, statements
from aliaslint.program import library
from aliaslint.program.classes import ClassInfo, Method
from aliaslint.program.kinds import Kinds
from aliaslint.program.modules import GlobalVar, Module
from aliaslint.program.scan import (
    INDIRECT_CAPTURES,
    KEEPING,
    NEW_BUILTINS,
    Scan,
    Update,
    arguments,
    has_receiver,
    nested,
    scan,
)
from aliaslint.program.types import (
    ARRAY,
    NONE,
    OTHER,
    PLAIN,
    UNKNOWN,
    ClassOf,
    Ext,
    ExtInst,
    FuncOf,
    Inst,
    Type,
    is_plain,
    never_array,
)

# ("f", function, class of its receiver), ("c", class), ("m", class, name of a member),
# ("v", module, variable), ("p", module, method of the cache protocol)
Node = tuple[str, ...]
Candidates = Callable[[Module, str], list[tuple[str, Method]]]


class Bits:
    """Two bits for each name: one for what is updated by `op=`, one for what is written into.

    A capture of the name has both, so that captures and updates meet by `&`.
    """

    def __init__(self) -> None:
        self._index: dict[str, int] = {}
        self.items = 0

    def _base(self, name: str) -> int:
        base = 2 * self._index.setdefault(name, len(self._index))
        self.items |= 2 << base
        return base

    def update(self, name: str, item: bool) -> int:
        return (2 if item else 1) << self._base(name)

    def capture(self, name: str) -> int:
        return 3 << self._base(name)

    def meeting(self, updates: int, captures: int) -> int:
        """Return what is updated as well as captured; "*" stands for any name."""
        anything = self.capture("*")
        met = updates & captures
        if captures & anything:
            met |= updates
        if updates & anything:
            met |= captures
        return met


@dataclass(slots=True, eq=False)
class Unit:
    """What is known of a node of the graph, and where it leads."""

    node: Node
    updates: int = 0
    sure: int = 0  # those of the updates whose array is known without a caller
    captures: int = 0
    leaks: int = -1  # those of the captures that others may hold when it ends
    leads_to: list[Node] = field(default_factory=list)
    methods: list[tuple[str, Node]] = field(default_factory=list)  # of a class, by name
    scan: Scan | None = None
    class_key: str | None = None


Place = int | str  # of an argument: its position or its keyword


@dataclass(slots=True)
class Handed:
    """Functions that are used as values: a call of which the callee is not known may be one of
    any of them. `given_back` says for each place which of them (by the key of the outermost
    function) may give back the argument that stands there.

    Modules of `mlx.nn` are left out: nearly all code that holds one makes it itself.
    """

    keys: set[str] = field(default_factory=set)
    members: set[str] = field(default_factory=set)
    methods: set[str] = field(default_factory=set)
    given_back: dict[Place, set[str]] = field(default_factory=dict)

    def fill(self, reach: Reach) -> None:
        scans = reach.scans()
        for found in scans:
            self.members |= found.loaded
            self.keys.update(handed_in(reach, found))
            if found.function.class_key is not None:
                self.methods.add(found.function.name)
        given_back: dict[Place, set[str]] = {}
        for found in scans:
            for value, function in found.returned:
                if self.takes(reach, function):
                    own = found.function.class_key
                    sources = reach.sources(value, function, found, own, set())
                    given = {s[1:] for s in sources if s.startswith("%")}
                    for place in self.places(reach, function, given):
                        given_back.setdefault(place, set()).add(found.function.key)
        self.given_back = given_back

    def takes(self, reach: Reach, function: ir.Function) -> bool:
        """True if the function may be handed around as a value."""
        if function.key in self.keys or reach.kinds.decorations.of(function) is not None:
            return True
        info = reach.kinds.classes.get(function.class_key) if function.class_key else None
        if info is None:
            return False
        if function.name == "__call__":
            return not info.is_module_class()
        method = info.find(function.name)
        return function.name in self.members and (method is None or method.role != "property")

    def places(self, reach: Reach, function: ir.Function, params: set[str]) -> set[Place]:
        """Return the arguments of a call that stand for these parameters of a function that is
        handed around: a method is bound to its receiver, what is decorated is not."""
        bound = has_receiver(function) and reach.kinds.decorations.of(function) is None
        found: set[Place] = set()
        for number, name in enumerate(function.params):
            if name in params and number >= bound:
                found |= {number - bound, name}
        return found


def arguments_at(call: ir.Call, places: Collection[Place]) -> Iterator[tuple[Place, ir.Expr]]:
    """Pair the places with the arguments of a call that stand there; what is unpacked may stand
    at any."""
    for own, value in placed_arguments(call):
        if own is None:
            yield from ((place, value) for place in places)
        elif own in places:
            yield own, value


def placed_arguments(call: ir.Call) -> Iterator[tuple[Place | None, ir.Expr]]:
    """Yield the arguments of a call, each with its place: None for what is unpacked."""
    for number, arg in enumerate(call.args):
        yield None if arg.name in {"*", "**"} else arg.name or number, arg.value


@dataclass(frozen=True, slots=True)
class Callee:
    """What a call may run; `bound` if its first parameter is no argument of the call."""

    function: ir.Function
    class_key: str | None
    bound: bool


class Reach:
    """The graph of what leads to what, built from the functions that are asked for."""

    def __init__(self, kinds: Kinds, protocol: frozenset[str], candidates: Candidates) -> None:
        self.kinds = kinds
        self.protocol = protocol
        self.candidates = candidates
        self.bits = Bits()
        self.units: dict[Node, Unit] = {}
        self._anywhere: dict[str, Type] = {}
        self._setters: dict[str, set[str]] = {}
        self._returned: dict[tuple[str, str], frozenset[str]] = {}
        self._kept: dict[tuple[str, str], frozenset[str]] = {}
        self._scans: dict[str, Scan] = {}
        self._symbols: dict[tuple[str, str], object] = {}
        self._pending: list[Node] = []
        self._storing: set[str] | None = None
        self._functions: dict[Node, ir.Function] = {}
        self.handed = Handed()

    # --- building

    def function_node(self, function: ir.Function, class_key: str | None) -> Node:
        node = ("f", function.key, class_key or "")
        if node not in self.units:
            self._functions[node] = function
            self._want(node)
        return node

    def _want(self, node: Node) -> Node:
        if node not in self.units:
            self.units[node] = Unit(node)
            self._pending.append(node)
        return node

    def build(self) -> None:
        """Follow every mention from the nodes asked for."""
        while self._pending:
            unit = self.units[self._pending.pop()]
            match unit.node:
                case ("f", _, class_key):
                    unit.class_key = class_key or None
                    self._fill_function(unit, self._functions[unit.node])
                case ("c", key):
                    self._fill_class(unit, key)
                case ("m", key, name):
                    self._fill_member(unit, key, name)
                case ("v", module_id, name):
                    self._fill_variable(unit, self.kinds.modules.by_id[module_id], name)
                case ("p", module_id, name):
                    self._fill_protocol(unit, self.kinds.modules.by_id[module_id], name)
                case _:
                    pass
        self.handed.fill(self)
        self._returned.clear()  # now it is known what a call of a value may give back
        self._kept.clear()  # and, of all classes, which methods store what they are given
        self._storing = None
        for unit in self.units.values():  # now that all classes have been met
            if unit.scan is not None:
                self._fill_updates(unit, unit.scan)

    def scan_of(self, function: ir.Function) -> Scan:
        if function.key not in self._scans:
            module = self.kinds.modules.by_id[function.module]
            self._scans[function.key] = scan(function, module.mlx_names)
        return self._scans[function.key]

    def scans(self) -> list[Scan]:
        return list(self._scans.values())

    def _leaks(self, found: Scan, module: Module, class_key: str | None) -> int:
        """Return the captures that are stored, given back or handed to what may store them."""
        values = [*found.returned, *found.stored]
        for site in found.calls:
            if self._may_store(site.call, site.function, class_key):
                values.extend((arg.value, site.function) for arg in site.call.args)
        leaks = 0
        for name in found.filled:
            if name not in found.captures and self.is_number(class_key, name):
                continue
            leaks |= self.bits.capture(name)
        for value, function in values:
            for name in self.sources(value, function, found, class_key, set()):
                if name == "*":
                    return -1
                if name.startswith(":"):
                    name = self.variable_key(module, name) or name
                if name[0] not in "=%?^":
                    leaks |= self.bits.capture(name)
        return leaks

    def _may_store(self, call: ir.Call, function: ir.Function, class_key: str | None) -> bool:
        for atom in self.kinds.expression(call.fn, function, class_key):
            if isinstance(atom, ClassOf):
                return True
            if any(self.scan_of(callee.function).stored for callee in self.callees(atom)):
                return True
            if atom == "unknown" and isinstance(call.fn, ir.Attr):
                return call.fn.name in self._storing_methods()
        return False

    def _storing_methods(self) -> set[str]:
        """Return the names of methods, of classes that were met, that store what they are given."""
        if self._storing is None:
            self._storing = {
                found.function.name
                for found in self._scans.values()
                if found.function.class_key and (found.stored or found.filled)
            }
        return self._storing

    def _fill_function(self, unit: Unit, function: ir.Function) -> None:
        found = unit.scan = self.scan_of(function)
        module = self.kinds.modules.by_id[function.module]
        for name in found.captures:
            key = self.variable_key(module, name) if name.startswith(":") else name
            if key is not None:
                unit.captures |= self.bits.capture(key)
        for name in found.own_captures:
            if not self.is_number(unit.class_key, name):
                unit.captures |= self.bits.capture(name)
        unit.leads_to = list(dict.fromkeys(self._mentioned(unit, found, function)))

    def _fill_updates(self, unit: Unit, found: Scan) -> None:
        """Look at what a function updates, once all classes have been met."""
        module = self.kinds.modules.by_id[found.function.module]
        unit.leaks = self._leaks(found, module, unit.class_key)
        for update in found.updates:
            bits = self.update_bits(update, found, unit.class_key)
            unit.updates |= bits
            type_ = self.kinds.expression(update.base, update.function, unit.class_key)
            if type_ <= ARRAY | NONE or ("array" in type_ and isinstance(update.base, ir.Attr)):
                unit.sure |= bits

    def _mentioned(self, unit: Unit, found: Scan, function: ir.Function) -> Iterator[Node]:
        module = self.kinds.modules.by_id[function.module]
        for name in sorted(found.globals):
            yield from self._symbol_nodes(self.symbol(module, name))
        for attr in found.dotted:
            yield from self._symbol_nodes(self.kinds.dotted(attr, module))
        for key in sorted(found.classes):
            yield self._want(("c", key))
        decoration = self.kinds.decorations.of(function)
        for atom in (*decoration.deciding, *decoration.stand_ins) if decoration else ():
            callee = self.callee(atom)
            if callee is not None and callee.function.parent is None:  # the others are part of it
                yield self.function_node(callee.function, callee.class_key)
        if unit.class_key:
            if found.gives_self:
                yield self._want(("c", unit.class_key))
            for name in sorted(found.on_self):
                yield self._want(("m", unit.class_key, name))
            if found.uses_super:
                yield from self._super_nodes(unit.class_key, function.name)
        for name in sorted(found.members & self.protocol):
            yield self._want(("p", module.id, name))

    def symbol(self, module: Module, name: str) -> object:
        key = (module.id, name)
        if key not in self._symbols:
            self._symbols[key] = self.kinds.modules.resolve(module, name)
        return self._symbols[key]

    def _symbol_nodes(self, symbol: object) -> Iterator[Node]:
        match symbol:
            case FuncOf(key=key):
                function = self.kinds.find_function(key)
                if function is not None:
                    yield self.function_node(function, function.class_key)
            case ClassOf(key=key):
                yield self._want(("c", key))
            case GlobalVar(module=module_id, name=name):
                yield self._want(("v", module_id, name))
            case _:
                pass

    def _super_nodes(self, class_key: str, name: str) -> Iterator[Node]:
        info = self.kinds.classes.get(class_key)
        for ancestor in info.mro if info else ():
            for known, found in ancestor.every():
                if known == name:
                    yield self.function_node(self.kinds.classes.method(found), class_key)

    def _fill_class(self, unit: Unit, key: str) -> None:
        info = self.kinds.classes.get(key)
        for ancestor in info.mro if info else ():
            for name in (*ancestor.class_names, *ancestor.fields):
                if not self.is_number(key, name):
                    unit.captures |= self.bits.capture(name)
            for name, method in ancestor.every():
                function = self.kinds.classes.method(method)
                unit.methods.append((name, self.function_node(function, key)))
        for ancestor in info.mro if info else ():
            unit.leads_to.extend(self._body_nodes(ancestor))
            unit.leads_to.extend(self._want(("c", nested)) for nested in ancestor.nested.values())

    def _body_nodes(self, info: ClassInfo) -> Iterator[Node]:
        """Yield what the statements of a class body mention: default values of fields."""
        for stmt in info.node.body:
            if isinstance(stmt, (ast.Assign, ast.AnnAssign)) and stmt.value is not None:
                for node in ast.walk(stmt.value):
                    if isinstance(node, ast.Name):
                        yield from self._symbol_nodes(self.symbol(info.module, node.id))

    def _fill_member(self, unit: Unit, key: str, name: str) -> None:
        info = self.kinds.classes.get(key)
        if info is None:
            return
        for method in (info.find(name), info.find_setter(name), *info.alternatives(name)):
            if method is not None:
                unit.leads_to.append(self.function_node(self.kinds.classes.method(method), key))
        for ancestor in info.mro:
            for expr, _, function in self.kinds.assigned(ancestor).get(name, ()):
                if expr is not None:
                    unit.leads_to.extend(self._expression_nodes(expr, function, key))

    def _fill_variable(self, unit: Unit, module: Module, name: str) -> None:
        body = self.kinds.module_function(module)
        for value, _ in self.scan_of(body).bound.get(name, ()):
            if value is not None:
                unit.leads_to.extend(self._expression_nodes(value, body, None))

    def _expression_nodes(
        self, expr: ir.Expr, function: ir.Function, class_key: str | None
    ) -> Iterator[Node]:
        """Yield what the value of an attribute may be made by."""
        module = self.kinds.modules.by_id[function.module]
        seen: set[str] = set()
        stack = [expr]
        while stack:
            current = stack.pop()
            stack.extend(children(current))
            match current:
                case ir.Name(name=name, scope="global"):
                    yield from self._symbol_nodes(self.symbol(module, name))
                case ir.Attr(obj=ir.Name(scope="global")):
                    yield from self._symbol_nodes(self.kinds.dotted(current, module))
                case ir.Name(name=name, scope="local") if name not in seen:
                    seen.add(name)
                    found = self.scan_of(function).bound.get(name, ())
                    stack.extend(value for value, _ in found if value is not None)
                case _:
                    pass

    def _fill_protocol(self, unit: Unit, module: Module, name: str) -> None:
        found = self.candidates(module, name)
        for key, method in found:
            unit.leads_to.append(self.function_node(self.kinds.classes.method(method), key))
        if not found:
            unit.updates |= self.bits.update("*", False)  # nobody is known: it may update anything

    def is_number(self, class_key: str | None, name: str) -> bool:
        """True if the attribute of instances of the class is known to hold no handle."""
        type_ = self.kinds.instance_member(class_key, name) if class_key else UNKNOWN
        return is_plain(type_) and type_ != NONE

    def variable_key(self, module: Module, name: str) -> str | None:
        """Return one key for a variable of a module or of an enclosing function, whoever names
        it; None for what is no variable."""
        match self.symbol(module, name[1:]):
            case GlobalVar(module=module_id, name=known):
                return f":{module_id}:{self.kinds.names_of_variable(module_id, known)[0]}"
            case None:
                return name
            case _:
                return None

    # --- updates

    def update_bits(self, update: Update, found: Scan, class_key: str | None) -> int:
        """Return which attributes an update may change, by where its target may come from.

        What is updated of an object that was made here concerns this function alone.
        """
        base, function = update.base, update.function
        if not self.may_be_array(update, class_key):
            return 0
        if self.is_of_own_object(update, found, class_key):
            return 0
        module = self.kinds.modules.by_id[function.module]
        result = 0
        for name in self.sources(base, function, found, class_key, set()):
            if name.startswith(":"):
                name = self.variable_key(module, name) or name
            if name[0] not in "=%?^":
                result |= self.bits.update(name, update.item)
        return result

    def is_of_own_object(self, update: Update, found: Scan, class_key: str | None) -> bool:
        """True for `made.x op= v` where `made` is an object that the function has made."""
        match update.base:
            case ir.Attr(obj=ir.Name() as owner):
                sources = self.sources(owner, update.function, found, class_key, set())
                return set(sources) == {"="}
            case _:
                return False

    def may_be_array(self, update: Update, class_key: str | None) -> bool:
        type_ = self.kinds.expression(update.base, update.function, class_key)
        if type_ == UNKNOWN and isinstance(update.base, ir.Attr):
            type_ = self.attribute_anywhere(update.base.name)
        if update.item and not update.axes:
            if not (holds_array(type_) if update.inside else "array" in type_):
                return False  # an element is bound
        return not is_plain(type_) if update.inside else not never_array(type_)

    def attribute_anywhere(self, name: str) -> Type:
        """Return what an attribute of this name holds in any class that was met; of a class
        that was not met, nothing is known of it later either."""
        if name not in self._anywhere:
            self._anywhere[name] = UNKNOWN
            keys = self.setters_of().get(name, ())
            found = [self.kinds.instance_member(key, name) for key in sorted(keys)]
            if any(name in scan.given for scan in self._scans.values()):
                found.append(UNKNOWN)  # set from outside, on whatever object
            self._anywhere[name] = frozenset().union(*found) or OTHER
        return self._anywhere[name]

    def setters_of(self) -> dict[str, set[str]]:
        """Return for each attribute the classes that have it."""
        if not self._setters:
            for found in self._scans.values():
                for name in found.sets if found.function.class_key else ():
                    self._setters.setdefault(name, set()).add(found.function.class_key or "")
            for unit in self.units.values():
                info = self.kinds.classes.get(unit.node[1]) if unit.node[0] == "c" else None
                if info is not None:
                    for name in (*info.fields, *info.class_names, *info.methods):
                        self._setters.setdefault(name, set()).add(info.key)
        return self._setters

    def sources(
        self,
        expr: ir.Expr,
        function: ir.Function,
        found: Scan,
        class_key: str | None,
        seen: set[str],
    ) -> Iterator[str]:
        """Yield where what `expr` holds may come from: an attribute, ":global", "*" for
        anything, "=" for a new value, "%name" for a parameter, and "^place%name" for one that is
        handed at this place to a callee that may give it back."""
        match expr:
            case ir.Attr(name="__dict__"):
                yield "*"
            case ir.Attr(name=name) if name in library.METADATA:
                yield "="
            case ir.Attr(obj=ir.Name(name=owner), name=name):
                mine = function is found.function and found.is_receiver(owner)
                yield "=" if mine and self.is_number(class_key, name) else name
            case ir.Attr(name=name):
                yield name
            case ir.Item(index=None, plain_slice=False):
                yield "="  # several axes: an array, of which this is a copy
            case ir.Item(obj=obj):
                yield from self.sources(obj, function, found, class_key, seen)
                for atom in self.kinds.expression(obj, function, class_key):
                    yield from self._element_sources(atom)
            case ir.Name(name=name, scope="global"):
                yield f":{name}"
            case ir.Name(name=name):
                if name in seen:
                    return
                seen.add(name)
                if expr.scope == "cell":
                    yield f":{name}"
                if name in found.parameters:
                    yield f"%{name}"
                for value, _ in found.bound.get(name, ()):
                    if value is None:
                        yield "?"
                    else:
                        yield from self.sources(value, function, found, class_key, seen)
                if name not in found.bound and name not in found.parameters:
                    yield "*"
            case ir.Choice(then=then, other=other):
                yield from self.sources(then, function, found, class_key, seen)
                yield from self.sources(other, function, found, class_key, seen)
            case ir.BoolOp(values=items) | ir.Build(items=items):
                yield "="
                for item in items:
                    yield from self.sources(item, function, found, class_key, seen)
            case ir.Walrus(value=value) | ir.Star(value=value):
                yield from self.sources(value, function, found, class_key, seen)
            case ir.Fresh(how="repeat", operands=operands):
                yield "*"  # one handle, many times
                for operand in operands:
                    yield from self.sources(operand, function, found, class_key, seen)
            case ir.Const() | ir.Not() | ir.Fresh() | ir.Closure():
                yield "="
            case ir.Comprehension(body=body):
                for stmt in statements(body):
                    if isinstance(stmt, ir.Emit):
                        yield from self.sources(stmt.value, function, found, class_key, seen)
            case ir.Call():
                yield from self._call_sources(expr, function, found, class_key, seen)
            case _:
                yield "*"

    def _call_sources(
        self,
        call: ir.Call,
        function: ir.Function,
        found: Scan,
        class_key: str | None,
        seen: set[str],
    ) -> Iterator[str]:
        """Yield where the result of a call comes from; "?" for what is not known here."""
        for atom in self.kinds.expression(call.fn, function, class_key):
            callees = self.callees(atom)
            for callee in callees:
                given = dict(arguments(callee.function, call, callee.bound))
                for name in sorted(self.returned(callee.function, callee.class_key)):
                    how, _, param = name.rpartition("%")
                    if param == name:
                        yield name
                    elif param in given:
                        names = self.sources(given[param], function, found, class_key, seen)
                        yield from (how + n if n.startswith("%") else n for n in names)
            if callees:
                continue
            match atom:
                case Ext(dotted="builtins.getattr") if len(call.args) > 1:
                    yield named_attribute(call)
                    for default in call.args[2:]:
                        yield from self.sources(default.value, function, found, class_key, seen)
                case Ext(dotted=dotted):
                    yield "="
                    if dotted.rpartition(".")[2] in INDIRECT_CAPTURES:
                        yield "*"
                    if gives_new(dotted):
                        continue
                    yield "?"
                    for arg in call.args:  # itself or a part of it
                        yield from self.sources(arg.value, function, found, class_key, seen)
                case ExtInst(dotted=dotted):
                    handed = library.NN_IDENTITY | library.NN_CONTAINERS
                    yield "*" if dotted in handed else "="
                case "unknown":
                    yield "=" if is_array_method(call) else "?"
                    if self.is_of_a_value(call):
                        for place, value in arguments_at(call, self.handed.given_back):
                            names = self.sources(value, function, found, class_key, seen)
                            yield from (given_back_at(place, name) for name in names)
                case ClassOf():
                    yield "="
                case _:
                    yield "?"

    def _element_sources(self, atom: object) -> Iterator[str]:
        """Yield what `o[i]` gives back for an instance that defines it."""
        info = self.kinds.classes.get(atom.key) if isinstance(atom, Inst) else None
        method = info.find("__getitem__") if info else None
        if info is not None and method is not None:
            names = self.returned(self.kinds.classes.method(method), info.key)
            yield from (name for name in sorted(names) if "%" not in name)

    def is_of_a_value(self, call: ir.Call) -> bool:
        """True for a call of what a variable, an element or an attribute of an object holds; the
        name of a method is not taken for one."""
        match call.fn:
            case ir.Name(scope=scope):
                return scope != "global"
            case ir.Item() | ir.Call():
                return True
            case ir.Attr(name=name):
                return name in self.setters_of() and name not in self.handed.methods
            case _:
                return False

    def callees(self, atom: object) -> list[Callee]:
        """Return what a call of it may run: a function, and what decorators put in its place."""
        callee = self.callee(atom)
        decoration = self.kinds.decorations.of(callee.function) if callee is not None else None
        if callee is None or decoration is None:
            return [callee] if callee is not None else []
        found = [callee]
        for stand_in in map(self.callee, decoration.stand_ins):
            if stand_in is not None:
                found.append(replace(stand_in, bound=stand_in.bound or callee.bound))
        return found

    def callee(self, atom: object) -> Callee | None:
        match atom:
            case FuncOf(key=key):
                function = self.kinds.function(key)
                if function is None:
                    return None
                return Callee(function, function.class_key, has_receiver(function))
            case Inst(key=key):
                info = self.kinds.classes.get(key)
                method = info.find("__call__") if info is not None else None
                if method is None:
                    return None
                return Callee(self.kinds.classes.method(method), key, True)
            case _:
                return None

    def returned(self, function: ir.Function, class_key: str | None) -> frozenset[str]:
        """Return where the results of a function come from, in terms of its parameters."""
        key = (function.key, class_key or "")
        if key not in self._returned:
            self._returned[key] = frozenset({"="})  # a call of itself adds nothing
            found = self.scan_of(function)
            names: set[str] = {"*"} if function.generator else set()
            for value, inner in found.returned:
                names.update(self.sources(value, inner, found, class_key, set()))
            self._returned[key] = frozenset(names or {"="})
        return self._returned[key]

    def kept(self, function: ir.Function, class_key: str | None) -> frozenset[str]:
        """Return the parameters that something may still hold when a call of the function is
        over: an object that they are stored in, or a function nested in this one."""
        key = (function.key, class_key or "")
        if key not in self._kept:
            self._kept[key] = frozenset()  # a call of itself adds nothing
            found = self.scan_of(function)
            values = list(found.stored)
            for site in found.calls:
                given = self.keeps(site.call, site.function, class_key)
                values.extend((arg, site.function) for arg in given)
            names = {
                name[1:]
                for value, inner in values
                for name in self.sources(value, inner, found, class_key, set())
                if name.startswith("%")
            }
            self._kept[key] = frozenset(names.union(function.cells).intersection(function.params))
        return self._kept[key]

    def keeps(
        self, call: ir.Call, function: ir.Function, class_key: str | None
    ) -> Iterator[ir.Expr]:
        """Yield the arguments of a call that something may still hold when it is over, whatever
        becomes of its result."""
        for atom in self.kinds.expression(call.fn, function, class_key):
            callees = self.constructors(atom) if isinstance(atom, ClassOf) else self.callees(atom)
            for callee in callees:
                kept = self.kept(callee.function, callee.class_key)
                pairs = arguments(callee.function, call, callee.bound)
                yield from (arg for param, arg in pairs if param in kept)
            if isinstance(atom, ClassOf) and not callees:  # a dataclass: its fields
                yield from (arg.value for arg in call.args)
            elif atom == "unknown" and isinstance(call.fn, ir.Attr):
                if call.fn.name in self._storing_methods():
                    yield from (arg.value for arg in call.args)

    def gives_back(
        self, call: ir.Call, function: ir.Function, class_key: str | None
    ) -> Iterator[ir.Expr]:
        """Yield the arguments of a call that its result may be, or hold."""
        for atom in self.kinds.expression(call.fn, function, class_key):
            for callee in self.callees(atom):
                returned = self.returned(callee.function, callee.class_key)
                params = {name.rpartition("%")[2] for name in returned if "%" in name}
                pairs = arguments(callee.function, call, callee.bound)
                yield from (arg for param, arg in pairs if param in params)
            if isinstance(atom, Ext) and not gives_new(atom.dotted):
                yield from (arg.value for arg in call.args)

    def constructors(self, atom: ClassOf) -> list[Callee]:
        """Return the methods of the program that making an instance runs."""
        info = self.kinds.classes.get(atom.key)
        methods = [info.find(name) for name in ("__new__", "__init__")] if info else []
        made = [self.kinds.classes.method(method) for method in methods if method is not None]
        return [Callee(function, atom.key, True) for function in made]


def handed_in(reach: Reach, found: Scan) -> Iterator[str]:
    """Yield the keys of functions that are used as values in a function: of modules by their
    names, and nested ones, of which a lambda has no other use."""
    module = reach.kinds.modules.by_id[found.function.module]
    symbols = [reach.symbol(module, name) for name in found.taken & found.globals]
    symbols += [reach.kinds.dotted(a, module) for a in found.dotted if a.name in found.loaded]
    yield from (symbol.key for symbol in symbols if isinstance(symbol, FuncOf))
    for inner in nested(found.function):
        if inner.name == "<lambda>" or inner.name in found.taken:
            yield inner.key


def given_back_at(place: Place, name: str) -> str:
    return f"^{place}{name}" if name.startswith("%") else name


def gives_new(dotted: str) -> bool:
    head, _, tail = dotted.rpartition(".")
    if head == "builtins":
        return tail in NEW_BUILTINS
    if dotted.startswith(("mlx.core.", "numpy.", "math.", "time.", "json.", "os.")):
        return tail not in KEEPING
    return False


def named_attribute(call: ir.Call) -> str:
    """Return which attribute `getattr(o, name)` gives; "*" where only running tells."""
    match call.args[1].value:
        case ir.Const(value=str() as name):
            return name
        case _:
            return "*"


def is_array_method(call: ir.Call) -> bool:
    return isinstance(call.fn, ir.Attr) and call.fn.name in library.ARRAY_METHODS


def holds_array(type_: Type) -> bool:
    """True for arrays, and for containers and objects that may hold one."""
    return any(atom not in PLAIN and atom != "unknown" for atom in type_)
