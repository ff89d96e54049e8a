"""Makes the effect table of mlx_lm from real releases.

    python -m benchmarks.effect_tables --write DIR...

Each DIR is an unpacked wheel: `mlx_lm/` beside `mlx_lm-VERSION.dist-info/`. The modules are read
with `ast` and reduced to what they do to handles; computations disappear.

The table (`aliaslint/program/effect_tables/mlx_lm.json`)

    {PATH: [DEFINITION, ...]}

and, in `mlx_lm.releases.json`, what is needed more often: {VERSION: {"mlx": SPECIFIER,
"batched": whether it has caches with an array for an offset}}.

A definition holds for the releases from `first` to `last`; `lines` has the lines of its parts in
each of them, or by how much they moved since the release before. A class has `name`, `bases`,
`attributes` (class attributes and their kinds) and `methods`; a method or function has `role`
("property", "setter", "classmethod", "staticmethod" or none), `parameters` and `body`, a list of

    {"inplace": PLACE, "operator": "+="}   an augmented assignment
    {"item": VALUE, "whole": bool, "value": VALUE}   an assignment to slices or to one element
    {"rebind": PLACE, "value": VALUE}      an attribute gets another handle
    {"let": NAME, "value": VALUE}          a local name for a handle
    {"call": NAME, ...}                    a call for its effect
    {"return": VALUE}, {"raise": true}
    {"branch": [[...], [...]]}, {"loop": [...], "variable": NAME, "over": VALUE}

A place is an attribute of a value, or a name. An index is a number, or {"name": PARAMETER}. A
value is

    {"fresh": "array" | "scalar" | "none" | "list" | "range" | "other"}
    {"name": NAME}, {"attribute": NAME, "of": VALUE}, {"element": VALUE, "index": INDEX}
    {"tuple": [VALUE, ...]}, {"list": VALUE}, {"each": VALUE, "over": VALUE, "variable": NAME}
    {"either": [VALUE, ...]}, {"star": VALUE}
    {"call": NAME, "of": VALUE | null, "arguments": [VALUE | {"keyword": NAME, "value": VALUE}]}
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aliaslint.program import effect_tables
from aliaslint.program.declared import in_order

Step = dict[str, Any]
Value = dict[str, Any]
Function = ast.FunctionDef | ast.AsyncFunctionDef

MODULES = ("models/cache.py", "models/base.py")
PACKAGE = "mlx_lm"
_SCALARS = frozenset({"len", "int", "float", "bool", "isinstance", "hasattr", "all", "any"})
_ARITHMETIC = frozenset({"min", "max", "sum", "abs"})
_HANDING_ON = frozenset({"zip", "enumerate", "reversed", "list", "tuple", "iter", "next"})
_METADATA = frozenset({"shape", "dtype", "size", "ndim", "nbytes", "itemsize"})
_RANK = ("array", "list", "range", "scalar", "other", "none")
OTHER: Value = {"fresh": "other"}


@dataclass
class Names:
    """What a module defines: how a name in it is to be read."""

    classes: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    methods: set[str] = field(default_factory=set)
    attributes: dict[str, str] = field(default_factory=dict)  # name -> kind, over all classes
    own: dict[str, dict[str, str]] = field(default_factory=dict)  # the same for each class

    def learn(self, owner: str, name: str, kind: str) -> None:
        for table in (self.attributes, self.own.setdefault(owner, {})):
            table[name] = _join(table.get(name, "none"), kind)


def module_facts(source: str) -> list[dict[str, Any]]:
    """Return the definitions of a module's caches and functions, in the order of the text."""
    tree = ast.parse(source)
    names = _names(tree)
    found = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name in names.classes:
            found.append(_class_facts(node, names))
        elif isinstance(node, Function):
            found.append({"name": node.name, **_function_facts(node, names, "", "")})
    return _without_inert(found)


def _names(tree: ast.Module) -> Names:
    names = Names()
    classes = list(_caches(tree))
    names.classes = {node.name for node in classes}
    names.functions = {node.name for node in tree.body if isinstance(node, Function)}
    for node in classes:
        for method in _methods(node):
            if _role(method) == "property":
                names.learn(node.name, method.name, "other")
            elif _role(method) != "setter":
                names.methods.add(method.name)
        for name, kind in _class_attributes(node):
            names.learn(node.name, name, kind)
    for _ in range(2):  # Kinds rest on each other: `self.offset = self.offset - n`.
        for node in classes:
            for method in _methods(node):
                _collect_kinds(node.name, method, names)
    return names


def _caches(tree: ast.Module) -> Iterator[ast.ClassDef]:
    """Yield the classes that have a state or an update, of their own or from a base."""
    known: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            own = {method.name for method in _methods(node)} & {"state", "update_and_fetch"}
            if own or known & {ast.unparse(base) for base in node.bases}:
                known.add(node.name)
                yield node


def _methods(node: ast.ClassDef) -> list[Function]:
    return [item for item in node.body if isinstance(item, Function)]


def _class_attributes(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for item in node.body:
        match item:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=value)):
                yield name, "none" if value is None else "scalar"
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name, "other"


def _collect_kinds(owner: str, method: Function, names: Names) -> None:
    reader = Reader(method, names, owner)
    for node in ast.walk(method):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for place, kind in reader.target_kinds(target, node.value):
                    match place:
                        case ast.Attribute(value=ast.Name(id="self"), attr=attr):
                            names.learn(owner, attr, kind)
                        case ast.Attribute(attr=attr):
                            names.attributes.setdefault(attr, kind)


def _join(*kinds: str) -> str:
    return min(kinds, key=_RANK.index)


def _role(node: Function) -> str:
    for decorator in node.decorator_list:
        text = ast.unparse(decorator)
        if text in ("property", "classmethod", "staticmethod"):
            return text
        if text.endswith(".setter"):
            return "setter"
    return ""


def _class_facts(node: ast.ClassDef, names: Names) -> dict[str, Any]:
    methods = {}
    for item in node.body:
        if isinstance(item, Function):
            key = item.name + (":setter" if _role(item) == "setter" else "")
            methods[key] = _function_facts(item, names, _role(item), node.name)
    bases = [ast.unparse(base) for base in node.bases if ast.unparse(base) in names.classes]
    return {
        "line": node.lineno,
        "name": node.name,
        "bases": bases,
        "attributes": dict(_class_attributes(node)),
        "methods": methods,
    }


def _function_facts(node: Function, names: Names, role: str, owner: str) -> dict[str, Any]:
    reader = Reader(node, names, owner)
    body = _live(reader.body(node.body))
    line = node.lineno
    return {"line": line, "role": role, "parameters": _parameters(node.args), "body": body}


def _parameters(args: ast.arguments) -> list[str]:
    """Return the parameters by name; defaults are only told to be there."""
    plain = [*args.posonlyargs, *args.args]
    first = len(plain) - len(args.defaults)
    found = [arg.arg + ("=None" if i >= first else "") for i, arg in enumerate(plain)]
    if args.vararg:
        found.append("*" + args.vararg.arg)
    elif args.kwonlyargs:
        found.append("*")
    for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        found.append(arg.arg + ("=None" if default is not None else ""))
    return [*found, *(["**" + args.kwarg.arg] if args.kwarg else [])]


class Reader:
    """Reads one function. Locals that may hold a handle of somebody's get a neutral name."""

    def __init__(self, node: Function, names: Names, owner: str) -> None:
        self.names = names
        self.owner = names.own.get(owner, {})
        self.parameters = {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
        self.kinds: dict[str, str] = {}
        self.locals: dict[str, str] = {}
        self.steps: list[Step] = []
        self.line = node.lineno
        self.temporaries = 0
        self._learn(node)

    def _learn(self, node: Function) -> None:
        """Find the kinds of locals, and the locals that may hold a handle of somebody's."""
        for _ in range(3):
            for item in ast.walk(node):
                if isinstance(item, ast.Assign):
                    for target in item.targets:
                        self._learn_target(target, item.value)
                elif isinstance(item, ast.For | ast.comprehension) and not self._is_fresh(
                    self.value(item.iter, inline=True)
                ):
                    self._keep(item.target)

    def _learn_target(self, target: ast.expr, value: ast.expr) -> None:
        for place, kind in self.target_kinds(target, value):
            if isinstance(place, ast.Name):
                self.kinds[place.id] = _join(self.kinds.get(place.id, "none"), kind)
        for place, part in self._pairs(target, self.value(value, inline=True)):
            if isinstance(place, ast.Name) and not self._is_fresh(part):
                self._keep(place)

    def _keep(self, target: ast.expr) -> None:
        for node in ast.walk(target):
            if isinstance(node, ast.Name) and node.id not in self.parameters:
                self.locals.setdefault(node.id, f"v{len(self.locals) + 1}")

    def target_kinds(self, target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, str]]:
        """Yield each place that an assignment sets, with the kind of what it gets."""
        if not isinstance(target, ast.Tuple | ast.List):
            yield target, self.kind(value)
        elif isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
            for part, item in zip(target.elts, value.elts, strict=True):
                yield from self.target_kinds(part, item)
        else:
            for part in target.elts:
                yield part, self._element_kind(value)

    def _element_kind(self, node: ast.expr) -> str:
        match node:
            case ast.Attribute(attr="shape"):
                return "scalar"
            case ast.Call(func=ast.Name(id="map"), args=[function, *_]):
                text = ast.unparse(function)
                return "array" if text.startswith("mx.") else "scalar" if text == "int" else "other"
            case ast.IfExp(body=body, orelse=orelse):
                return _join(self._element_kind(body), self._element_kind(orelse))
        return "array" if self.kind(node) == "array" else "other"

    def kind(self, node: ast.expr) -> str:
        """Return the kind of what an expression gives, as far as plain rules can tell."""
        match node:
            case ast.Constant(value=None):
                return "none"
            case ast.Constant(value=value):
                return "scalar" if isinstance(value, int | float) else "other"
            case ast.List() | ast.Tuple() | ast.ListComp() | ast.Dict():
                return "list"
            case ast.Name(id=name):
                return "other" if name in self.parameters else self.kinds.get(name, "other")
            case ast.Attribute(attr=attr):
                if attr in _METADATA:
                    return "list" if attr == "shape" else "scalar"
                known = self.names.attributes
                own = isinstance(node.value, ast.Name) and node.value.id == "self"
                return (self.owner if own and attr in self.owner else known).get(attr, "other")
            case ast.Subscript(value=ast.Attribute(attr="shape")):
                return "scalar"
            case ast.Subscript(value=value):
                return "array" if self.kind(value) == "array" else "other"
            case ast.Call():
                return self._call_kind(node)
            case ast.BinOp(left=left, right=right):
                return self._operator_kind(left, right)
            case ast.UnaryOp(operand=operand):
                return self.kind(operand)
            case ast.IfExp(body=body, orelse=orelse):
                return _join(self.kind(body), self.kind(orelse))
            case ast.BoolOp(values=values):
                return _join(*map(self.kind, values))
            case ast.Compare(ops=[ast.Is() | ast.IsNot() | ast.In() | ast.NotIn()]):
                return "scalar"
            case ast.Compare(left=left, comparators=[right, *_]):
                return "array" if "array" in (self.kind(left), self.kind(right)) else "scalar"
        return "other"

    def _operator_kind(self, left: ast.expr, right: ast.expr) -> str:
        kinds = {self.kind(left), self.kind(right)}
        for kind in ("array", "list", "scalar"):
            if kind in kinds:
                return kind
        return "other"

    def _call_kind(self, node: ast.Call) -> str:
        text = ast.unparse(node.func)
        if text in _SCALARS or text.endswith(".item"):
            return "scalar"
        if text in _ARITHMETIC:
            return _join("scalar", *(self.kind(a) for a in node.args if self.kind(a) == "array"))
        if text.startswith("mx."):
            return "array"
        if isinstance(node.func, ast.Attribute) and self.kind(node.func.value) == "array":
            return "array"
        return "other"

    def add(self, step: Step) -> None:
        self.steps.append({**step, "line": self.line})

    # Values

    def value(self, node: ast.expr | None, *, inline: bool = False) -> Value:
        """Return what an expression stands for, and note the calls in it as steps.

        `inline`: calls stay inside the value, as they have to in a part that may not run.
        """
        match node:
            case None:
                return {"fresh": "none"}
            case ast.Name(id=name):
                if name in self.parameters or name in self.names.classes:
                    return {"name": name}
                return {"name": self.locals[name]} if name in self.locals else self._fresh(node)
            case ast.Attribute(value=value, attr=attr):
                return self._attribute(self.value(value, inline=inline), attr)
            case ast.Subscript(value=value, slice=index):
                return self._subscript(node, self.value(value, inline=inline), index)
            case ast.Tuple(elts=parts):
                return self._tuple([self.value(part, inline=inline) for part in parts])
            case ast.List(elts=[part]):
                return self._listed(self.value(part, inline=inline))
            case ast.Starred(value=value):
                return {"star": self.value(value, inline=inline)}
            case ast.IfExp(body=body, orelse=orelse, test=test):
                self.value(test, inline=inline)
                return self._either(
                    [self.value(body, inline=True), self.value(orelse, inline=True)]
                )
            case ast.BoolOp(op=ast.Or(), values=values):
                return self._either([self.value(part, inline=True) for part in values])
            case ast.ListComp() | ast.GeneratorExp():
                return self._comprehension(node)
            case ast.Call():
                return self._call(node, inline)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr) and not isinstance(node, ast.Lambda):
                self.value(child, inline=inline)
        return self._fresh(node)

    def _fresh(self, node: ast.expr) -> Value:
        return {"fresh": self.kind(node)}

    def _attribute(self, base: Value, attr: str) -> Value:
        if self._is_fresh(base) or attr not in self.names.attributes:
            return {"fresh": "list" if attr == "shape" else "other"}
        return {"attribute": attr, "of": base}

    def _subscript(self, node: ast.Subscript, base: Value, index: ast.expr) -> Value:
        kind = self.kind(node.value)
        sliced = any(isinstance(n, ast.Slice) or _is_ellipsis(n) for n in ast.walk(index))
        if self._is_fresh(base) or kind == "array" or sliced or isinstance(index, ast.Tuple):
            return {"fresh": "array" if kind == "array" else "other"}
        if isinstance(index, ast.Name) and index.id in self.parameters:
            return {"element": base, "index": {"name": index.id}}
        number = index.value if isinstance(index, ast.Constant) else 0
        return {"element": base, "index": number if isinstance(number, int) else 0}

    def _tuple(self, parts: list[Value]) -> Value:
        return {"tuple": parts}

    def _listed(self, part: Value) -> Value:
        return {"fresh": "list"} if self._is_fresh(part) else {"list": part}

    def _either(self, parts: list[Value]) -> Value:
        if all(map(self._is_fresh, parts)):
            return {"fresh": _join(*(part.get("fresh", "list") for part in parts))}
        return {"either": parts}

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> Value:
        generator = node.generators[0]
        over = self.value(generator.iter, inline=True)
        part = self.value(node.elt, inline=True)
        if len(node.generators) > 1 or (self._is_fresh(over) and self._is_fresh(part)):
            return {"fresh": "list"}
        over = {"fresh": "range"} if self._is_fresh(over) else over
        return {"each": part, "over": over, "variable": self._variable(generator.target)}

    def _variable(self, target: ast.expr) -> str:
        if isinstance(target, ast.Tuple):
            return "(" + ", ".join(map(self._variable, target.elts)) + ")"
        return self.locals.get(target.id, "_") if isinstance(target, ast.Name) else "_"

    def _call(self, node: ast.Call, inline: bool) -> Value:
        arguments: list[Value] = [self.value(a, inline=inline) for a in node.args]
        for keyword in node.keywords:
            part = self.value(keyword.value, inline=inline)
            arguments.append({"keyword": keyword.arg or "**", "value": part})
        call = self._called(node, arguments, inline)
        if call is None:
            return self._fresh(node)
        if inline or call["call"] in _HANDING_ON:
            return call
        self.temporaries += 1
        name = f"t{self.temporaries}"
        self.add({"let": name, "value": call})
        return {"name": name}

    def _called(self, node: ast.Call, arguments: list[Value], inline: bool) -> Value | None:
        """Return the call if it is one of the module's own functions, classes or methods."""
        match node.func:
            case ast.Name(id=name) if name in _HANDING_ON:
                if all(map(self._is_fresh, arguments)):
                    return None
                return {"call": name, "of": None, "arguments": arguments}
            case ast.Name(id="cls") if "cls" in self.parameters:
                return {"call": "cls", "of": None, "arguments": arguments}
            case ast.Name(id=name) if name in self.names.classes | self.names.functions:
                return {"call": name, "of": None, "arguments": arguments}
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=attr):
                return {"call": attr, "of": {"name": "super()"}, "arguments": arguments}
            case ast.Attribute(value=base, attr=attr):
                of = self.value(base, inline=inline)
                known = attr in self.names.methods or attr == "__new__"
                if known and not self._is_fresh(of) and self.kind(base) != "array":
                    return {"call": attr, "of": of, "arguments": arguments}
        return None

    def _is_fresh(self, value: Value) -> bool:
        if "tuple" in value:
            return all(map(self._is_fresh, value["tuple"]))
        return "fresh" in value

    # Statements

    def body(self, nodes: Sequence[ast.stmt]) -> list[Step]:
        """Return the steps of a list of statements."""
        before, self.steps = self.steps, []
        for node in nodes:
            self._statement(node)
        steps, self.steps = self.steps, before
        return steps

    def _statement(self, node: ast.stmt) -> None:
        self.line = node.lineno
        match node:
            case ast.Expr(value=value):
                self.value(value)
            case ast.Assign(targets=targets, value=value):
                got = self.value(value)
                for target in targets:
                    self._assign(target, value, got)
            case ast.AnnAssign(target=target, value=value) if value is not None:
                self._assign(target, value, self.value(value))
            case ast.AugAssign():
                self._augmented(node)
            case ast.Return(value=value):
                self.add({"return": self.value(value)})
            case ast.Raise():
                self.add({"raise": True})
            case ast.If(test=test, body=body, orelse=orelse):
                self.value(test)
                self._branch(node, self.body(body), self.body(orelse))
            case ast.For(target=target, iter=over, body=body):
                self._loop(node, self._variable(target), self.value(over, inline=True), body)
            case ast.While(body=body):
                self._loop(node, "_", {"fresh": "list"}, body)
            case ast.With(body=body):
                self.steps += self.body(body)
            case ast.Try():
                self._branch(node, self.body(node.body), [])
                for handler in node.handlers:
                    self._branch(node, self.body(handler.body), [])
            case ast.FunctionDef():
                self._nested(node)

    def _nested(self, node: ast.FunctionDef) -> None:
        """Calls of nested functions count as fresh, so one that changes a handle is refused."""
        for item in ast.walk(node):
            if isinstance(item, ast.AugAssign) and not isinstance(item.target, ast.Name):
                raise NotImplementedError(f"line {item.lineno}: a nested function with an effect")

    def _branch(self, node: ast.stmt, first: list[Step], second: list[Step]) -> None:
        self.line = node.lineno
        if first or second:
            self.add({"branch": [first, second]})

    def _loop(self, node: ast.stmt, variable: str, over: Value, nodes: Sequence[ast.stmt]) -> None:
        steps = self.body(nodes)
        self.line = node.lineno
        if steps:
            over = {"fresh": "range"} if self._is_fresh(over) else over
            self.add({"loop": steps, "variable": variable, "over": over})

    def _pairs(self, target: ast.expr, value: Value) -> Iterator[tuple[ast.expr, Value]]:
        if not isinstance(target, ast.Tuple | ast.List):
            yield target, value
            return
        parts = value.get("tuple")
        for index, place in enumerate(target.elts):
            if parts is not None and len(parts) == len(target.elts):
                yield from self._pairs(place, parts[index])
            elif self._is_fresh(value):
                yield place, OTHER
            else:
                yield place, {"element": value, "index": index}

    def _assign(self, target: ast.expr, node: ast.expr, value: Value) -> None:
        kinds = dict(self.target_kinds(target, node))
        for place, part in self._pairs(target, value):
            if self._is_fresh(part) and "tuple" not in part:
                part = {"fresh": kinds.get(place, "other")}
            self._store(place, part)

    def _store(self, place: ast.expr, value: Value) -> None:
        match place:
            case ast.Name(id=name) if name in self.locals:
                self.add({"let": self.locals[name], "value": value})
            case ast.Name(id=name) if name in self.parameters:
                self.add({"let": name, "value": value})
            case ast.Attribute(value=base, attr=attr):
                of = self.value(base, inline=True)
                if not self._is_fresh(of):
                    self.add({"rebind": {"attribute": attr, "of": of}, "value": value})
            case ast.Subscript(value=base):
                of = self.value(base, inline=True)
                if not self._is_fresh(of):
                    whole = self.kind(base) == "array" or _is_sliced(place.slice)
                    self.add({"item": of, "whole": whole, "value": value})

    def _augmented(self, node: ast.AugAssign) -> None:
        self.value(node.value)
        operator = ast.unparse(node).removeprefix(ast.unparse(node.target)).split()[0]
        place = self.value(node.target, inline=True)
        if "attribute" in place or "name" in place:
            self.add({"inplace": place, "operator": operator})
        elif isinstance(node.target, ast.Subscript):
            of = self.value(node.target.value, inline=True)
            if not self._is_fresh(of):
                self.add({"item": of, "whole": True, "value": OTHER})


def _is_ellipsis(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _is_sliced(index: ast.expr) -> bool:
    return any(isinstance(n, ast.Slice) or _is_ellipsis(n) for n in ast.walk(index))


def _live(steps: list[Step]) -> list[Step]:
    """Drop names that nothing uses; a call among them stays for its effect."""
    while True:
        slim = _drop(_substituted(steps), set(_used(steps)))
        if slim == steps:
            return steps
        steps = slim


def _substituted(steps: list[Step]) -> list[Step]:
    """Put what is fresh in the place of the temporary that holds it."""
    fresh = {
        step["let"]: step["value"]
        for step in _flat(steps)
        if step.get("let", "").startswith("t") and "fresh" in step["value"]
    }
    return _replaced(steps, fresh) if fresh else steps


def _replaced(item: Any, fresh: dict[str, Value]) -> Any:
    if isinstance(item, list):
        return [_replaced(part, fresh) for part in item]
    if isinstance(item, dict):
        if item.get("name") in fresh:
            return fresh[item["name"]]
        return {key: _replaced(part, fresh) for key, part in item.items()}
    return item


def _used(item: Any) -> Iterator[str]:
    if isinstance(item, list):
        for part in item:
            yield from _used(part)
    elif isinstance(item, dict):
        if isinstance(item.get("name"), str):
            yield item["name"]
        for part in item.values():
            yield from _used(part)


def _drop(steps: list[Step], used: set[str]) -> list[Step]:
    kept: list[Step] = []
    for step in steps:
        if "let" in step and step["let"] not in used:
            if "call" in step["value"]:
                kept.append({**step["value"], "line": step["line"]})
        elif "branch" in step:
            branches = [_drop(part, used) for part in step["branch"]]
            kept += [{**step, "branch": branches}] if any(branches) else []
        elif "loop" in step:
            body = _drop(step["loop"], used)
            kept += [{**step, "loop": body}] if body else []
        else:
            kept.append(step)
    return kept


def _without_inert(definitions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Drop calls of names that have no effect wherever they are defined, and give nothing live."""
    while True:
        inert = _inert(definitions)
        before = json.dumps(definitions)
        for entry in definitions:
            for facts in entry["methods"].values() if "methods" in entry else [entry]:
                facts["body"] = _live(_prune(facts["body"], inert))
        if json.dumps(definitions) == before:
            return definitions


def _inert(definitions: list[dict[str, Any]]) -> dict[str, Value]:
    """Return the names without effect, with the fresh value that a call of them gives."""
    bodies: dict[str, list[list[Step]]] = {}
    for entry in definitions:
        members = entry["methods"].items() if "methods" in entry else [(entry["name"], entry)]
        for name, facts in members:
            bodies.setdefault(name, []).append(facts["body"])
    return {
        name: {"fresh": _join("none", *map(_given, found))}
        for name, found in bodies.items()
        if not name.startswith("__") and all(map(_is_inert, found))
    }


def _is_inert(body: list[Step]) -> bool:
    return all("raise" in s or set(s.get("return", {})) == {"fresh"} for s in _flat(body))


def _given(body: list[Step]) -> str:
    return _join("none", *(s["return"]["fresh"] for s in _flat(body) if "return" in s))


def _flat(steps: list[Step]) -> Iterator[Step]:
    for step in steps:
        for branch in step.get("branch", ()):
            yield from _flat(branch)
        yield from _flat(step.get("loop", []))
        if "branch" not in step and "loop" not in step:
            yield step


def _prune(steps: list[Step], inert: dict[str, Value]) -> list[Step]:
    """Drop steps that are inert calls, and put a fresh value for those inside values."""
    kept: list[Step] = []
    for step in steps:
        if "branch" in step:
            branches = [_prune(part, inert) for part in step["branch"]]
            kept.append({**step, "branch": branches})
        elif "loop" in step:
            over = _without_calls(step["over"], inert)
            kept.append({**step, "over": over, "loop": _prune(step["loop"], inert)})
        elif step.get("call") not in inert:
            kept.append(_without_calls(step, inert))
    return kept


def _without_calls(item: Any, inert: dict[str, Value]) -> Any:
    if isinstance(item, list):
        return [_without_calls(part, inert) for part in item]
    if isinstance(item, dict):
        if item.get("call") in inert:
            return inert[item["call"]]
        return {key: _without_calls(part, inert) for key, part in item.items()}
    return item


def build(folders: Sequence[Path]) -> dict[str, Any]:
    """Return the table of the releases that are unpacked in `folders`."""
    found = {version_of(folder): folder for folder in folders}
    versions = in_order(found)
    modules: dict[str, list[dict[str, Any]]] = {module: [] for module in MODULES}
    releases = {}
    for version in versions:
        batched = False
        for module, entries in modules.items():
            source = (found[version] / PACKAGE / module).read_text(encoding="utf-8")
            facts = module_facts(source)
            batched |= any(map(_makes_array_offset, facts))
            _merge(entries, facts, version, versions)
        releases[version] = {"mlx": required_mlx(found[version]), "batched": batched}
    return {"releases": releases, "modules": modules}


def _makes_array_offset(entry: dict[str, Any]) -> bool:
    """Whether a definition is a class whose constructor makes its `offset` an array."""
    constructor = entry.get("methods", {}).get("__init__", {"body": []})
    return any(
        step.get("rebind", {}).get("attribute") == "offset" and step["value"] == {"fresh": "array"}
        for step in constructor["body"]
    )


def _merge(
    entries: list[dict[str, Any]], facts: list[dict[str, Any]], version: str, versions: list[str]
) -> None:
    """Add one release: a definition that the release before had too only lasts longer."""
    previous = versions[versions.index(version) - 1] if version != versions[0] else None
    for fact in facts:
        lines = [node.pop("line") for node in effect_tables.nodes(fact)]
        lasting = (e for e in entries if e["last"] == previous and _facts_of(e) == fact)
        entry = next(lasting, None)
        if entry is None:
            entries.append({"first": version, "last": version, "lines": {version: lines}, **fact})
        else:
            old = effect_tables.lines_of(entry, version, versions)
            shift = lines[0] - old[0]
            same = [line + shift for line in old] == lines
            entry["lines"][version] = shift if same else lines
            entry["last"] = version


def _facts_of(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key not in ("first", "last", "lines")}


def _metadata(folder: Path) -> str:
    path = next(folder.glob(f"{PACKAGE}-*.dist-info")) / "METADATA"
    return path.read_text(encoding="utf-8").partition("\n\n")[0]


def version_of(folder: Path) -> str:
    """Return the version of the release in `folder`."""
    return re.search(r"^Version: (\S+)", _metadata(folder), re.MULTILINE)[1]  # type: ignore[index]


def required_mlx(folder: Path) -> str:
    """Return the specifier of the release's requirement on mlx, extras apart."""
    match = re.search(r"^Requires-Dist: mlx\s*([<>=!~][^;\n]*)", _metadata(folder), re.MULTILINE)
    return match[1].strip() if match else ""


def text_of(modules: dict[str, Any]) -> str:
    """Return the modules as JSON with a line for each method, so that changes can be reviewed."""
    texts = []
    for module, entries in modules.items():
        rows = [_entry_text(entry) for entry in entries]
        texts.append(f"{json.dumps(module)}: [\n" + ",\n".join(rows) + "\n]")
    return "{\n" + ",\n".join(texts) + "\n}\n"


def releases_text(releases: dict[str, Any]) -> str:
    """Return the releases as JSON with a line for each."""
    rows = [f" {json.dumps(version)}: {json.dumps(entry)}" for version, entry in releases.items()]
    return "{\n" + ",\n".join(rows) + "\n}\n"


def _entry_text(entry: dict[str, Any]) -> str:
    if "methods" not in entry:
        return " " + json.dumps(entry)
    head = json.dumps({k: v for k, v in entry.items() if k != "methods"})[:-1]
    rows = [f"  {json.dumps(name)}: {json.dumps(m)}" for name, m in entry["methods"].items()]
    return f' {head}, "methods": {{\n' + ",\n".join(rows) + "}}"


def main(arguments: Sequence[str]) -> int:
    """Print the table of the given folders, or write it to its place."""
    folders = [Path(a) for a in arguments if a != "--write"]
    if not folders:
        print(__doc__)
        return 2
    table = build(folders)
    texts = {
        f"{PACKAGE}.json": text_of(table["modules"]),
        f"{PACKAGE}.releases.json": releases_text(table["releases"]),
    }
    for name, text in texts.items():
        if "--write" in arguments:
            (Path(effect_tables.__file__).parent / name).write_text(text, encoding="utf-8")
        else:
            print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
