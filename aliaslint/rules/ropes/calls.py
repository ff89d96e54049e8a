"""What a call means: a function of the project, RoPE, a layer, an operation of MLX, a builtin."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from aliaslint.lower.scopes import named_parameters
from aliaslint.rules.ropes import arrays, einops, sizes
from aliaslint.rules.ropes.flow import Flow, Reach
from aliaslint.rules.ropes.modules import Class, Function, Module, resolve
from aliaslint.rules.ropes.values import UNKNOWN, Callee, OffsetKind, Value, join

if TYPE_CHECKING:
    from aliaslint.rules.ropes.interpreter import Interpreter

FAST_ROPE = "mlx.core.fast.rope"
ROPE_CLASS = "mlx.nn.RoPE"
_PARTIAL = ("functools.partial", "mlx.core.compile", "mlx.core.checkpoint")
_NAMED_SO = re.compile(r"rope|rotary", re.IGNORECASE)


def call(it: Interpreter, node: ast.Call) -> Value:
    """Return what a call gives; note what reaches RoPE in it."""
    arguments, keywords, whole = _arguments(it, node)
    name = resolve(it.module, node.func) or ""
    if name.startswith("mlx.core.") and name not in (FAST_ROPE, *_PARTIAL):
        tail = name.removeprefix("mlx.core.")
        return arrays.function(tail, arguments, keywords, it.fold(node))
    if name.startswith("mlx.nn.") and name.rpartition(".")[2][:1].isupper():
        return Value(instance=name)
    if name in _PARTIAL:
        return _partial(arguments, keywords)
    if name in ("math.prod", "numpy.prod") and arguments:
        return arrays.multiplied(arguments[0])
    if name.startswith("numpy."):
        return arrays.function(name.removeprefix("numpy."), arguments, keywords, it.fold(node))
    if name.startswith("einops.") and arguments and len(node.args) > 1:
        return einops.rearranged(arguments[0], node.args[1], it.fold(node))
    if not name and isinstance(node.func, ast.Name) and node.func.id not in it.env:
        built_in = _built_in(it, node, arguments)
        if built_in is not None:
            return built_in
    target = _target(it, node, name)
    if target.callee is not None and target.callee.kernel:
        bound = target.callee
        arguments = [*bound.given, *arguments]
        return _rope(it, node, bound.kernel, arguments, {**dict(bound.keywords), **keywords}, whole)
    if target.callee is not None:
        return _enter(it, node, target.callee, arguments, keywords)
    if target.instance in (FAST_ROPE, ROPE_CLASS):
        return _rope(it, node, target.instance, arguments, keywords, whole)
    if target.instance.startswith("mlx.nn.") or name.startswith("mlx.nn."):
        return arrays.layer(arguments)
    if isinstance(node.func, ast.Attribute):
        receiver = it.value(node.func.value)
        return arrays.method(node.func.attr, receiver, arguments, keywords, it.fold(node))
    return _instance(it.flow, it.module, node)


def _arguments(it: Interpreter, node: ast.Call) -> tuple[list[Value], dict[str, Value], bool]:
    """Return the arguments, and whether these are all: no starred one of unknown length."""
    arguments: list[Value] = []
    keywords: dict[str, Value] = {}
    whole = True
    for values, all_of_it in it.unpacked(node.args):
        arguments += values
        whole = whole and all_of_it
    for keyword in node.keywords:
        value = it.value(keyword.value)
        if keyword.arg is not None:
            keywords[keyword.arg] = value
        elif value.keys and value.parts is not None:
            keywords |= dict(zip(value.keys, value.parts, strict=True))
        else:
            whole = False
    return arguments, keywords, whole


def _partial(arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    """Return `partial(f, ...)`; `mx.compile(f)` calls f as well."""
    function, *given = arguments or [UNKNOWN]
    callee = function.callee
    if callee is None and function.instance in (FAST_ROPE, ROPE_CLASS):
        callee = Callee(None, None, kernel=function.instance)
    if callee is None:
        return UNKNOWN
    both = {**dict(callee.keywords), **keywords}
    bound = replace(callee, given=(*callee.given, *given), keywords=tuple(both.items()))
    return Value(callee=bound)


def _built_in(it: Interpreter, node: ast.Call, arguments: Sequence[Value]) -> Value | None:
    """Return what a builtin function gives, None for any other."""
    assert isinstance(node.func, ast.Name)
    match node.func.id, arguments:
        case "max", [first, second, *rest] if all(a.token for a in (first, second, *rest)):
            texts = ", ".join(argument.token for argument in arguments)
            return Value(token=f"max({texts})", offset="scalar")
        case (("list" | "tuple" | "reversed" | "iter"), [sequence]):
            rows = sequence.dims is not None and not sequence.shape_of
            return Value(parts=(it.item_of(node.args[0]),) * 2) if rows else sequence
        case "dict", [] if all(keyword.arg for keyword in node.keywords):
            names = tuple(str(keyword.arg) for keyword in node.keywords)
            return Value(parts=tuple(it.value(k.value) for k in node.keywords), keys=names)
        case (("int" | "float" | "len" | "sum" | "min"), [number, *_]):
            token = number.token if node.func.id == "int" else ""
            return Value(token=token, offset="scalar")
        case "map", [function, sequence] if function.callee is not None:
            parts = sequence.parts or (it.item_of(node.args[1]),) * 2
            callee = function.callee
            return Value(parts=tuple(_enter(it, node, callee, [part], {}) for part in parts))
        case "range", _:
            return Value(offset="scalar")
    return None


def _target(it: Interpreter, node: ast.Call, name: str) -> Value:
    """Return what is called, as a value with a function or an instance, if it is known."""
    function = node.func
    if name == FAST_ROPE:
        return Value(instance=FAST_ROPE)
    if _is_super_call(function):
        assert isinstance(function, ast.Attribute)
        bases = it.owner.bases if it.owner else ()
        return _method_of(it.flow, bases, function.attr, it.owner)
    found = it.value(function)
    if found.callee is not None:
        return found
    owner = it.flow.program.classes.get(found.instance)
    if owner is not None:
        return _method_of_class(it.flow, owner, "__call__")
    if found.instance or isinstance(it.flow.program.find(name) if name else None, Class):
        return Value(instance=found.instance)
    return Value(instance=ROPE_CLASS) if _looks_like_rope(node, it.owner) else UNKNOWN


def dotted_value(flow: Flow, dotted: str) -> Value:
    if dotted == FAST_ROPE:
        return Value(instance=FAST_ROPE)
    found = flow.program.find(dotted)
    if isinstance(found, Function):
        module = flow.program.owner(found)
        return Value(callee=Callee(found, module)) if module else UNKNOWN
    if found is None and "." in dotted:
        owner = flow.program.find(dotted.rpartition(".")[0])
        if isinstance(owner, Class):
            return _method_of_class(flow, owner, dotted.rpartition(".")[2])
    return UNKNOWN


def held(it: Interpreter, node: ast.Attribute) -> Value:
    """Return what is known of `x.attr`: a method, a property, what a constructor put there."""
    dotted = resolve(it.module, node)
    if dotted:
        return dotted_value(it.flow, dotted)
    if isinstance(node.value, ast.Name) and node.value.id == "self":
        owner = it.owner
    else:
        owner = it.flow.program.classes.get(it.value(node.value).instance)
    return _held_by(it, owner, node.attr) if owner is not None else UNKNOWN


def _held_by(it: Interpreter, owner: Class, attr: str) -> Value:
    result: Value | None = None
    for holder, value in _attribute_values(it.flow, owner, attr):
        found = made(it, value, holder)
        result = found if result is None else join(result, found)
    if (result or UNKNOWN).instance == "" and attr in owner.annotations:
        result = annotated(owner.module, owner.annotations[attr])
    if result is not None:
        return replace(result, params=frozenset(), token="")
    method = _method_of_class(it.flow, owner, attr)
    if method.callee is None or method.callee.function is None:
        return UNKNOWN
    if "property" in _decorators(method.callee.function):
        return replace(it.flow.summary(method.callee).returns, params=frozenset())
    return method


def _attribute_values(flow: Flow, owner: Class, attr: str) -> Iterator[tuple[Class, ast.expr]]:
    yield from ((owner, value) for value in owner.attributes.get(attr, ()))
    for base in owner.bases:
        found = flow.program.find(base)
        if isinstance(found, Class) and found is not owner:
            yield from _attribute_values(flow, found, attr)


def made(it: Interpreter, node: ast.expr, owner: Class | None = None) -> Value:
    """Return what an expression outside this function makes: instances, and lists of them."""
    flow, module = it.flow, owner.module if owner else it.module
    match node:
        case ast.IfExp(body=body, orelse=orelse):
            return join(made(it, body, owner), made(it, orelse, owner))
        case ast.BoolOp(values=[first, *rest]):
            result = made(it, first, owner)
            for value in rest:
                result = join(result, made(it, value, owner))
            return result
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return Value(parts=tuple(made(it, part, owner) for part in parts))
        case ast.Dict(values=values) if values:
            return Value(parts=tuple(made(it, value, owner) for value in values))
        case ast.ListComp(elt=part):
            return Value(parts=(made(it, part, owner),) * 2)
        case ast.Lambda():
            return Value(callee=Callee(module.function_of(node), module, owner))
        case ast.Name(id=name) if owner is not None and name in _constructor(owner):
            return _constructed(it, owner, name)
        case ast.Name() | ast.Attribute():
            dotted = resolve(module, node)
            return dotted_value(flow, dotted) if dotted else UNKNOWN
        case ast.Call(func=function, args=arguments, keywords=keywords):
            dotted = resolve(module, function) or ""
            if dotted in _PARTIAL:
                given = {k.arg: made(it, k.value, owner) for k in keywords if k.arg}
                return _partial([made(it, a, owner) for a in arguments], given)
            if dotted == "mlx.core.array" and arguments:
                return arrays.array(made(it, arguments[0], owner))
            return _instance(flow, module, node)
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return Value(offset="zero" if number == 0 else "scalar", token=str(number))
    return UNKNOWN


def _instance(flow: Flow, module: Module, node: ast.Call) -> Value:
    """Return an instance of the class that a call makes one of, or what its function returns."""
    name = resolve(module, node.func) or ast.unparse(node.func)
    found = flow.program.find(name)
    if isinstance(found, Class):
        return Value(instance=found.key)
    if name == ROPE_CLASS or name.rpartition(".")[2] == "initialize_rope":
        return Value(instance=ROPE_CLASS)
    if isinstance(found, Function):
        owner = flow.program.owner(found)
        returned = flow.summary(Callee(found, owner)).returns if owner else UNKNOWN
        return Value(instance=returned.instance, callee=returned.callee)
    return Value(instance=name if name.startswith("mlx.nn.") else "")


def _constructor(owner: Class) -> list[str]:
    function = owner.methods.get("__init__")
    return parameters(function)[1:] if function else []


def annotated(module: Module, annotation: ast.expr | None) -> Value:
    """Return what an annotation tells: a module like RoPE, a number, a list of offsets."""
    if annotation is None:
        return UNKNOWN
    text = ast.unparse(annotation)
    if text in ("int", "float"):
        return Value(offset="scalar")
    if re.match(r"(?:\w+\.)*(?:list|sequence|tuple|iterable)\b", text, re.IGNORECASE):
        return Value(offset="vector")
    named = [n for n in ast.walk(annotation) if isinstance(n, ast.Name | ast.Attribute)]
    rope = any(resolve(module, node) == ROPE_CLASS for node in named)
    return Value(instance=ROPE_CLASS) if rope else UNKNOWN


def _constructed(it: Interpreter, owner: Class, parameter: str) -> Value:
    """Return what the project's calls of a constructor give for one parameter."""
    place = _constructor(owner).index(parameter)
    result = UNKNOWN
    for module, node in it.flow.wrapping(owner.node.name):
        named = next((k.value for k in node.keywords if k.arg == parameter), None)
        given = named or (node.args[place] if place < len(node.args) else None)
        if isinstance(given, ast.Call):
            result = join(result, _instance(it.flow, module, given))
    if not result.instance and result.callee is None:
        constructor = owner.methods["__init__"]
        result = annotated(owner.module, arguments(constructor)[place + 1].annotation)
    return Value(instance=result.instance, callee=result.callee)


def _method_of_class(flow: Flow, owner: Class, name: str) -> Value:
    if name in owner.methods:
        return Value(callee=Callee(owner.methods[name], owner.module, owner))
    return _method_of(flow, owner.bases, name, owner)


def _method_of(flow: Flow, bases: Sequence[str], name: str, below: Class | None) -> Value:
    for base in bases:
        if base == ROPE_CLASS:
            return Value(instance=ROPE_CLASS) if name == "__call__" else UNKNOWN
        found = flow.program.find(base)
        if isinstance(found, Class) and found is not below:
            return _method_of_class(flow, found, name)
    return UNKNOWN


def _rope(
    it: Interpreter,
    node: ast.Call,
    kernel: str,
    arguments: Sequence[Value],
    keywords: Mapping[str, Value],
    whole: bool,
) -> Value:
    """Note that an array reaches RoPE; the result has its shape. No offset is an offset of 0."""
    value = arguments[0] if arguments else keywords.get("x", keywords.get("a"))
    if value is None:
        return UNKNOWN
    offset = Value(offset="zero") if whole else UNKNOWN
    if kernel == ROPE_CLASS and len(arguments) > 1:
        offset = arguments[1]
    offset = keywords.get("offset", offset)
    name = ast.unparse(node.func)
    it.note(Reach(it.module.path, node, name, value, offset.offset, offset.params, it.facts))
    return replace(value, params=frozenset(), token="")


def _enter(
    it: Interpreter,
    node: ast.Call,
    callee: Callee,
    arguments: Sequence[Value],
    keywords: Mapping[str, Value],
) -> Value:
    """Apply the summary of a function of the project to the arguments.

    What only an argument tells, a module that is handed over or a product of sizes, is looked
    for inside with that argument.
    """
    bound = _bind(callee, [*callee.given, *arguments], {**dict(callee.keywords), **keywords})
    telling = {name: _bare(value) for name, value in bound.items() if _tells(value)}
    if callee.closure and callee.function is not None:
        it.flow.entered.add(callee.function)
    summary = it.flow.summary(callee, telling)
    for reach in summary.reaches:
        if not reach.value.params & bound.keys():
            if telling or callee.closure:
                facts = it.facts if callee.closure else frozenset[str]()
                it.note(replace(reach, facts=reach.facts | facts))
        elif reach.may_be_one_token():
            it.note(_reach_at(it, node, reach, bound))
    given = [bound[p] for p in summary.returns.params if p in bound]
    return _returned(replace(summary.returns, params=frozenset()), given, bound)


def _tells(value: Value) -> bool:
    """Whether an argument is worth a look at the function with it: RoPE, a function, a product."""
    rope = value.callee is not None or value.instance in (FAST_ROPE, ROPE_CLASS)
    return rope or sizes.is_product(value.token)


def _bare(value: Value) -> Value:
    """Return what a function may learn of an argument, without what belongs to the caller."""
    product = sizes.is_product(value.token)
    token = value.token if product else ""
    kind = value.offset if product else "unknown"
    return Value(instance=value.instance, callee=value.callee, token=token, offset=kind)


def _reach_at(it: Interpreter, node: ast.Call, reach: Reach, bound: Mapping[str, Value]) -> Reach:
    """Return the reach of an argument inside a callee, at the call."""
    value, *others = [bound[p] for p in sorted(reach.value.params & bound.keys())]
    for other in others:
        value = join(value, other)
    # An array of one element that is made inside is told inside.
    offset: OffsetKind = "unknown" if reach.offset == "one" else reach.offset
    params = frozenset[str]()
    from_here = sorted(reach.offset_params & bound.keys())
    if from_here:
        total = bound[from_here[0]]
        for name in from_here[1:]:
            total = arrays.elementwise(total, bound[name])
        offset, params = total.offset, total.params
    name = ast.unparse(node.func)
    return Reach(it.module.path, node, name, value, offset, params, it.facts, direct=False)


def arguments(function: Function) -> list[ast.arg]:
    """Return a function's parameters in order, starred ones left out."""
    return named_parameters(function.args)


def parameters(function: Function) -> list[str]:
    return [argument.arg for argument in arguments(function)]


def _bind(
    callee: Callee, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> dict[str, Value]:
    """Return the value of each parameter that is given, and of those with a number as default."""
    function = callee.function
    assert function is not None
    args = function.args
    names = [arg.arg for arg in (*args.posonlyargs, *args.args)]
    bound: dict[str, Value] = {}
    defaults = [
        *zip(names[len(names) - len(args.defaults) :], args.defaults, strict=True),
        *((arg.arg, d) for arg, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d),
    ]
    for name, default in defaults:
        if isinstance(default, ast.Constant) and default.value == 0:
            bound[name] = Value(offset="zero", token="0")
    method = callee.owner is not None and function in callee.owner.methods.values()
    if method and names and "staticmethod" not in _decorators(function):
        names = names[1:]
    bound.update(zip(names, arguments, strict=False))
    known = set(parameters(function))
    bound.update({name: value for name, value in keywords.items() if name in known})
    return bound


def _decorators(function: Function) -> list[str]:
    return [ast.unparse(decorator) for decorator in function.decorator_list]


def _returned(result: Value, given: Sequence[Value], bound: Mapping[str, Value]) -> Value:
    """Put the caller's values into what a function gives back; its own names mean nothing here."""
    dims = result.dims
    if dims is not None:
        kept = (d if d.isdigit() or sizes.is_product(d) else sizes.ANY for d in dims)
        result = replace(result, dims=tuple(kept))
    if result.parts is not None:
        inner = tuple(
            _returned(
                replace(part, params=frozenset()),
                [bound[p] for p in part.params if p in bound],
                bound,
            )
            for part in result.parts
        )
        result = replace(result, parts=inner)
    for value in given:
        result = replace(
            value,
            fold=value.fold or result.fold,
            dims=value.dims if result.fold is None else result.dims,
        )
    token = result.token if sizes.is_product(result.token) else ""
    return replace(result, token=token, shape_of="", step="" if not given else result.step)


def _is_super_call(function: ast.expr) -> bool:
    match function:
        case ast.Attribute(value=ast.Call(func=ast.Name(id="super"))):
            return True
    return False


def _looks_like_rope(node: ast.Call, owner: Class | None) -> bool:
    """Whether an unresolved call is one of a module like `nn.RoPE`, by name and arguments.

    In a class that is named so, whatever takes an offset is.
    """
    text = ast.unparse(node.func).rpartition(".")[2]
    if text[:1].isupper():  # It makes one.
        return False
    text = text.lower()
    offset = any(keyword.arg == "offset" for keyword in node.keywords)
    plain = not node.keywords and 1 <= len(node.args) <= 2
    if offset and owner is not None and _NAMED_SO.search(owner.node.name):
        return True
    return ("rope" in text and (offset or plain)) or ("rotary" in text and offset)
