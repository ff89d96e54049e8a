"""In-place updates through names: of parameters, of second names, of what somebody else holds.

An update of a parameter is followed to the callers: it matters where one of them goes on using
what it has passed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from aliaslint.program.fates import ARRAY_MEMBERS, Fate, Fates, View, bound_values, position
from aliaslint.program.kinds import ARRAY_TAKERS
from aliaslint.program.library import ARRAY_METHODS
from aliaslint.program.reach import Backward
from aliaslint.program.units import Unit

if TYPE_CHECKING:
    from aliaslint.program.relevance import Search


class OwnNames:
    """Sorts the updated names: `seeds` matter with all that leads to them, `attributes` are
    updated through another name."""

    def __init__(self, search: Search, names: dict[Unit, dict[str, int]]) -> None:
        self.search = search
        self.names = names
        self.seeds: set[Unit] = set()
        self.alone: set[Unit] = set()
        self.following: set[str] = set()
        self.attributes: list[tuple[str, Unit]] = []
        self.pending: list[tuple[Unit, str]] = []
        self.params: set[tuple[Unit, str]] = set()
        self.given: dict[str, frozenset[str]] = {}
        self.weak: set[tuple[Unit, str]] = set()

    def run(self) -> None:
        for unit, names in self.names.items():
            for name, augmented in names.items():
                self.updated(unit, name, augmented)
        while self.pending:
            unit, name = self.pending.pop()
            self.callers(unit, name)

    # --- one updated name

    def updated(self, unit: Unit, name: str, augmented: int) -> None:
        if is_container(unit.text, name):
            return
        view = self.search.view(unit)
        if not augmented and is_parameter(unit, name) and not shows_array(name, view):
            self.param(unit, name, weak=True)
            if self.held(name, view):
                self.seeds.add(unit)
            return
        if not unit.first:
            self.seeds.add(unit)
            return
        if not self.origin(unit, name, view, augmented):
            return
        if self.held(name, view):
            self.matters(unit, name, view)

    def matters(self, unit: Unit, name: str, view: View) -> None:
        """The unit matters; where only a caller may show that it is an array, so do callers."""
        if known_array(name, view):
            self.alone.add(unit)
        else:
            self.seeds.add(unit)

    def origin(self, unit: Unit, name: str, view: View, augmented: int) -> bool:
        """Follow where the name's values come from; False if no array can be among them."""
        some = False
        values = list(bound_values(name, view))
        if not values:
            self.seeds.add(unit)
        for value in values:
            if value is None:
                some = True
                if is_parameter(unit, name):
                    self.param(unit, name)
                else:
                    self.seeds.add(unit)
            elif isinstance(value, (ast.Constant, ast.JoinedStr)):
                continue
            elif isinstance(value, ast.Name):
                some = True
                self.matters(unit, name, view)
                if value.id != name and value.id not in self.following:
                    self.following.add(value.id)
                    self.origin(unit, value.id, view, augmented)
                    self.following.discard(value.id)
            elif augmented == 2 and not (isinstance(value, ast.Call) and view.is_outside(value)):
                some = True
                self.seeds.add(unit)
            elif is_display(value):
                some |= False
            elif self.search.is_new_for(name, value, view):
                some = True
            else:
                some = True
                self.shared_value(unit, value, view)
        return some

    def shared_value(self, unit: Unit, value: ast.expr, view: View) -> None:
        """The name is bound to what may be held elsewhere: an attribute, an element, a result."""
        attrs = set(self.attributes_of(value, 0)) - ARRAY_MEMBERS
        if attrs and all(self.search.possible.plain(attr) for attr in attrs):
            return
        self.seeds.add(unit)
        self.attributes.extend((a, unit) for a in attrs if not self.search.possible.plain(a))

    def attributes_of(self, value: ast.expr, depth: int) -> Iterator[str]:
        """Yield the attributes whose very handle, or an element of it, the value may be."""
        match value:
            case ast.Attribute(attr=attr):
                yield attr
                yield from self.given_back(attr, depth)
            case ast.Subscript(value=inner) | ast.NamedExpr(value=inner) | ast.Await(value=inner):
                yield from self.attributes_of(inner, depth)
            case ast.IfExp(body=body, orelse=orelse):
                yield from self.attributes_of(body, depth)
                yield from self.attributes_of(orelse, depth)
            case ast.BoolOp(values=values):
                for item in values:
                    yield from self.attributes_of(item, depth)
            case ast.Call():
                yield from self.given_back(called_name(value), depth)
            case _:
                pass

    def given_back(self, name: str, depth: int) -> frozenset[str]:
        """Return the attributes that functions of this name may give back."""
        if name not in self.given:
            self.given[name] = frozenset()  # a recursive call gives what the others give
            found: set[str] = set()
            program = self.search.program
            for unit in (*program.methods.get(name, ()), *program.functions.get(name, ())):
                for value in self.search.view(unit).returns:
                    for part in value.elts if isinstance(value, ast.Tuple) else [value]:
                        found.update(self.attributes_of(part, depth + 1))
            self.given[name] = frozenset(found)
        return self.given[name]

    def held(self, name: str, view: View) -> bool:
        """True if something beside the name may hold what it holds."""
        scopes = {id(view.scope(n)) for n in view.names.get(name, ())}
        if len(scopes) > 1:
            return True
        keep = self.search.callees.may_keep
        fates = Fates(view, lambda call: False, lambda call: keep(call, view), strict=True)
        return any(
            fates.of(load) is Fate.HELD and not rebinds(load, name, view)
            for load in view.loads(name)
        )

    # --- parameters

    def param(self, unit: Unit, name: str, weak: bool = False) -> None:
        """Follow a parameter to the callers. A weak one is stored to by plain indices only, as
        lists are: it counts where a caller shows that it passes an array."""
        if weak and unit.special:
            return
        if (unit, name) not in self.params:
            self.params.add((unit, name))
            if weak:
                self.weak.add((unit, name))
            self.pending.append((unit, name))

    def callers(self, unit: Unit, name: str) -> None:
        """Look at each call that may pass something for an updated parameter."""
        if unit.special or unit.words & {"property", "setter"}:
            self.seeds.add(unit)
            return
        index = parameter_index(unit, name)
        weak = (unit, name) in self.weak
        for caller in self.search.mentioning(unit.name):
            view = self.search.view(caller)
            for call in view.calls:
                if called_name(call) == unit.name:
                    for value in passed(call, index, name, unit):
                        if weak and not self.may_be_array(caller, value, view):
                            continue
                        self.argument(caller, view, call, value)
            uses = sum(
                1
                for n in (*view.names.get(unit.name, ()), *view.attributes.get(unit.name, ()))
                if isinstance(n.ctx, ast.Load) and not is_called(n, view)
            )
            if not weak and caller is not unit and uses:
                self.seeds.update({unit, caller})
        for module in self.search.program.modules:
            for local, (kind, value) in module.names.items():
                if kind == "import" and local != unit.name and str(value).endswith(f":{unit.name}"):
                    self.seeds.add(unit)

    def may_be_array(self, caller: Unit, value: ast.expr | None, view: View) -> bool:
        """True if something shows that an argument is an array; a parameter is followed on."""
        if not isinstance(value, ast.Name):
            return value is not None and self.search.is_new(value, view)
        name = value.id
        if is_container(caller.text, name):
            return False
        if shows_array(name, view):
            return True
        if is_parameter(caller, name):
            self.param(caller, name, weak=True)
        return any(
            isinstance(v, (ast.BinOp, ast.Call))
            and self.search.is_new(v, view)
            and not is_display(v)
            for v in bound_values(name, view)
            if v is not None
        )

    def argument(self, caller: Unit, view: View, call: ast.Call, value: ast.expr | None) -> None:
        if value is None:
            self.seeds.add(caller)
            return
        if isinstance(value, ast.Name):
            name = value.id
            if self.used_after(name, call, value, view) or self.held_but(name, value, view):
                self.matters(caller, name, view)
            for bound in bound_values(name, view):
                if bound is None and is_parameter(caller, name):
                    self.param(caller, name)
                elif bound is None:
                    self.seeds.add(caller)
                elif not (
                    isinstance(bound, ast.Constant)
                    or self.search.is_new_for(name, bound, view)
                    or bound is call
                ):
                    self.shared_value(caller, bound, view)
            return
        if isinstance(value, ast.Constant) or self.search.is_new(value, view):
            return
        self.shared_value(caller, value, view)

    def used_after(self, name: str, call: ast.Call, value: ast.Name, view: View) -> bool:
        """True if the name is read again after the call, unless the call's result replaces it."""
        parent = view.parents.get(call)
        if any(isinstance(a, ast.Return) for a in view.ancestors(call)):
            return False
        if isinstance(parent, ast.Assign):
            targets = [n for t in parent.targets for n in ast.walk(t) if isinstance(n, ast.Name)]
            if any(t.id == name for t in targets):
                return False
        loop = view.loop(call)
        inside = {id(n) for n in ast.walk(loop)} if loop is not None else set()
        for load in view.loads(name):
            if load is value or (loop is None and apart(call, load, view)):
                continue
            if position(load) > position(value) or id(load) in inside:
                return True
        return loop is not None and not self.bound_inside(name, inside, view)

    def bound_inside(self, name: str, inside: set[int], view: View) -> bool:
        return any(
            isinstance(n.ctx, ast.Store) and id(n) in inside for n in view.names.get(name, ())
        )

    def held_but(self, name: str, value: ast.Name, view: View) -> bool:
        scopes = {id(view.scope(n)) for n in view.names.get(name, ())}
        if len(scopes) > 1:
            return True
        keep = self.search.callees.may_keep
        fates = Fates(view, lambda call: False, lambda call: keep(call, view), strict=True)
        return any(
            fates.of(load) is Fate.HELD and not rebinds(load, name, view)
            for load in view.loads(name)
            if load is not value
        )


def apart(one: ast.AST, other: ast.AST, view: View) -> bool:
    """True if two nodes stand in different branches of one `if`."""
    branches = {}
    node = one
    for ancestor in view.ancestors(one):
        if isinstance(ancestor, ast.If):
            branches[ancestor] = node in ancestor.body
        node = ancestor
    node = other
    for ancestor in view.ancestors(other):
        if isinstance(ancestor, ast.If) and ancestor in branches:
            if (node in ancestor.body) != branches[ancestor] and node is not ancestor.test:
                return True
        node = ancestor
    return False


def is_container(text: str, name: str) -> bool:
    """True if the text uses the name as no array can be used."""
    if re.search(rf"\bisinstance\(\s*{name}\b", text):
        return False
    if re.search(rf"(?<![\w.]){name}\[[fr]?[\"']", text):
        return True
    members = re.findall(rf"(?<![\w.]){name}\.(\w+)", text)
    return any(member not in ARRAY_MEMBERS for member in members)


def known_array(name: str, view: View) -> bool:
    """True if the unit itself tells the analysis that the name holds an array."""
    for node in view.names.get(name, ()):
        match view.parents.get(node):
            case ast.Attribute(attr=attr) as member:
                outer = view.parents.get(member)
                if attr in ARRAY_METHODS and isinstance(outer, ast.Call) and outer.func is member:
                    return True
            case ast.BinOp(op=ast.MatMult()) | ast.Subscript(slice=ast.Tuple()):
                return True
            case ast.Call(args=[first, *_], func=ast.Attribute(attr=tail)) as call:
                if first is node and tail in ARRAY_TAKERS and view.is_outside(call):
                    return True
            case _:
                pass
    annotated = [n for n in view.binders.get(name, ()) if isinstance(n, ast.arg)]
    if any(n.annotation is not None and "array" in ast.dump(n.annotation) for n in annotated):
        return True
    return any(
        isinstance(v, ast.Call) and isinstance(v.func, ast.Attribute) and view.is_outside(v)
        for v in bound_values(name, view)
    )


def shows_array(name: str, view: View) -> bool:
    """True if something in the unit suggests that the name holds an array."""
    for node in view.names.get(name, ()):
        match view.parents.get(node):
            case ast.Attribute(attr=attr):
                if attr in ARRAY_MEMBERS and attr not in {"copy", "all", "any", "sort", "split"}:
                    return True
            case ast.BinOp() | ast.UnaryOp() | ast.AugAssign():
                return True
            case ast.Subscript(slice=ast.Tuple() | ast.Slice()):
                return True
            case ast.Subscript(slice=ast.Constant(value=value)) if value is ...:
                return True
            case ast.Call() as call if view.is_outside(call) and isinstance(
                call.func, ast.Attribute
            ):
                return True
            case _:
                pass
    return any(
        isinstance(n, ast.arg)
        and n.arg == name
        and n.annotation is not None
        and "array" in ast.dump(n.annotation)
        for n in view.nodes
    )


def is_display(node: ast.expr) -> bool:
    match node:
        case ast.List() | ast.Dict() | ast.Set() | ast.ListComp() | ast.DictComp() | ast.SetComp():
            return True
        case ast.Tuple():
            return True
        case ast.Call(func=ast.Name(id=name)):
            return name in {
                "list",
                "dict",
                "set",
                "tuple",
                "len",
                "int",
                "float",
                "str",
                "bool",
                "range",
            }
        case ast.BinOp(left=left, op=ast.Mult()):
            return isinstance(left, ast.List)
        case _:
            return False


def is_parameter(unit: Unit, name: str) -> bool:
    node = unit.nodes[0]
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    args = node.args
    return any(a.arg == name for a in (*args.posonlyargs, *args.args, *args.kwonlyargs))


def parameter_index(unit: Unit, name: str) -> int:
    """Return the position of a parameter as a caller counts, -1 for keyword-only ones."""
    node = unit.nodes[0]
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    names = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
    if name not in names:
        return -1
    return names.index(name)


def passed(call: ast.Call, index: int, name: str, unit: Unit) -> list[ast.expr | None]:
    """Return what a call may pass for a parameter; None for what cannot be told."""
    if any(isinstance(a, ast.Starred) for a in call.args) or any(
        k.arg is None for k in call.keywords
    ):
        return [None]
    found: list[ast.expr | None] = [k.value for k in call.keywords if k.arg == name]
    bound = bool(unit.owner) and isinstance(call.func, ast.Attribute)
    if bound and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
        bound = not call.func.value.id[:1].isupper()  # not `Class.method(obj, ...)`
    place = index - bound
    found.extend(call.args[i] for i in (place,) if 0 <= i < len(call.args))
    return found


def called_name(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def is_called(node: ast.AST, view: View) -> bool:
    outer = view.parents.get(node)
    return isinstance(outer, ast.Call) and outer.func is node


def rebinds(load: ast.Name, name: str, view: View) -> bool:
    """True for `x = f(x)`: what comes of it is the same name again."""
    node: ast.AST = load
    while not isinstance(node, ast.stmt):
        node = view.parents[node]
    return isinstance(node, ast.Assign) and all(
        isinstance(t, ast.Name) and t.id == name for t in node.targets
    )


__all__ = ["Backward", "OwnNames"]
