"""Mutants over several functions: an offset that travels between the model and its layers.

The three functions are the `__call__` of the attention (which updates the cache), of the block
that owns it, and of the model that walks blocks and caches together. A mutant changes how the
position reaches the attention:

- `down`: the model captures the offset of the first cache and hands it to every layer: the
  first layer rotates with the right position, the next with what the first one has advanced.
- `down-list`, `down-self`, `down-helper`: the same, kept in a list, on the model, or captured
  by a helper function.
- `up`: the attention captures its offset and returns it beside its output; the model hands it
  to the next layers, which use it instead of their own.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmarks.accuracy.sites import Copy, Site, offset_keyword, sites

Function = ast.FunctionDef


@dataclass(frozen=True, slots=True)
class Stack:
    """The three functions of a model, and the two calls that connect them."""

    attention: Function
    site: Site
    block: Function
    inner: ast.Call
    model: Function
    loop: ast.For
    outer: ast.Call
    caches: str


def expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def method(cls: ast.ClassDef, name: str) -> Function | None:
    found = (node for node in cls.body if isinstance(node, Function) and node.name == name)
    return next(found, None)


def attribute_of(cls: ast.ClassDef, made: str) -> str | None:
    """Return the attribute to which the constructor of `cls` binds `made(...)`."""
    for node in ast.walk(cls):
        match node:
            case ast.Assign(
                targets=[ast.Attribute(value=ast.Name(id="self"), attr=attribute)],
                value=ast.Call(func=ast.Name(id=name)),
            ) if name == made:
                return attribute
    return None


def calls(root: ast.AST, function: str) -> list[ast.Call]:
    return [
        node
        for node in ast.walk(root)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == function
    ]


def layer_loop(function: Function) -> tuple[ast.For, str, str] | None:
    """Return the loop `for layer, c in zip(self.layers, cache)`: node, layer name, caches."""
    for node in ast.walk(function):
        match node:
            case ast.For(
                target=ast.Tuple(elts=[ast.Name(id=layer), ast.Name()]),
                iter=ast.Call(func=ast.Name(id="zip"), args=[_, ast.Name(id=caches)]),
            ):
                return node, layer, caches
    return None


def find_stack(tree: ast.Module) -> Stack | None:
    """Return the three functions of the model in `tree`, if they have the usual form."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    for owner in classes:
        attention = method(owner, "__call__")
        found = next(sites(attention), None) if attention else None
        if attention is None or found is None:
            continue
        for middle in classes:
            attribute, block = attribute_of(middle, owner.name), method(middle, "__call__")
            inner = calls(block, f"self.{attribute}") if block and attribute else []
            for outermost in classes:
                model = method(outermost, "__call__")
                loop = layer_loop(model) if model else None
                if block is None or model is None or loop is None or len(inner) != 1:
                    continue
                outer = calls(loop[0], loop[1])
                if len(outer) == 1:
                    return Stack(
                        attention, found, block, inner[0], model, loop[0], outer[0], loop[2]
                    )
    return None


def before_loop(stack: Stack, statements: str) -> None:
    """Insert statements before the loop, in whatever block holds it."""
    for node in ast.walk(stack.model):
        body = getattr(node, "body", None)
        if isinstance(body, list) and stack.loop in body:
            at = body.index(stack.loop)
            body[at:at] = ast.parse(statements).body
            return


def add_parameter(function: Function, name: str) -> None:
    function.args.args.append(ast.arg(name))
    function.args.defaults.append(ast.Constant(None))


def hand_down(stack: Stack, value: str, use: str) -> None:
    """Hand `value` through the block to the attention, whose rotations use `use` instead."""
    stack.outer.keywords.append(ast.keyword("mutant_offset", expression(value)))
    stack.inner.keywords.append(ast.keyword("mutant_offset", expression("mutant_offset")))
    add_parameter(stack.block, "mutant_offset")
    add_parameter(stack.attention, "mutant_offset")
    for statement in stack.site.body[stack.site.rotate : stack.site.update]:
        word = offset_keyword(statement)
        if word is not None:
            word.value = expression(use)


def captured(stack: Stack) -> str:
    return f"{stack.caches}[0].offset if {stack.caches}[0] is not None else 0"


def down(stack: Stack) -> None:
    before_loop(stack, f"mutant_capture = {captured(stack)}")
    hand_down(stack, "mutant_capture", "mutant_offset")


def down_list(stack: Stack) -> None:
    before_loop(stack, f"mutant_capture = [{captured(stack)}]")
    hand_down(stack, "mutant_capture", "mutant_offset[0]")


def down_self(stack: Stack) -> None:
    before_loop(stack, f"self.mutant_capture = {captured(stack)}")
    hand_down(stack, "self.mutant_capture", "mutant_offset")


def down_helper(stack: Stack) -> None:
    helper = "(lambda caches: caches[0].offset if caches[0] is not None else 0)"
    before_loop(stack, f"mutant_capture = {helper}({stack.caches})")
    hand_down(stack, "mutant_capture", "mutant_offset")


class ReturnBoth(ast.NodeTransformer):
    """Turns each `return x` of a function into `return x, second`."""

    def __init__(self, second: str) -> None:
        self.second = second

    def visit_Return(self, node: ast.Return) -> ast.AST:
        value = node.value or ast.Constant(None)
        return ast.Return(ast.Tuple([value, expression(self.second)], ast.Load()))


def unpack(root: ast.AST, call: ast.Call, second: str) -> bool:
    """Turn the statement `x = call(...)` into `x, second = call(...)`."""
    for node in ast.walk(root):
        if isinstance(node, ast.Assign) and node.value is call and len(node.targets) == 1:
            node.targets = [ast.Tuple([node.targets[0], ast.Name(second, ast.Store())])]
            return True
    return False


def up(stack: Stack) -> None:
    cache = ast.unparse(stack.site.cache)
    start = f"mutant_capture = 0 if {cache} is None else {cache}.offset"
    hand_down(stack, "mutant_up", "mutant_capture")
    unpack(stack.block, stack.inner, "mutant_up")
    unpack(stack.model, stack.outer, "mutant_up")
    before_loop(stack, "mutant_up = None")
    ReturnBoth("mutant_capture").visit(stack.attention)
    ReturnBoth("mutant_up").visit(stack.block)
    later = "if mutant_offset is not None:\n    mutant_capture = mutant_offset"
    stack.attention.body[:0] = ast.parse(f"{start}\n{later}").body


LAYER_SHAPES: dict[str, Callable[[Stack], None]] = {
    "down": down,
    "down-list": down_list,
    "down-self": down_self,
    "down-helper": down_helper,
    "up": up,
}


class CopyMarked(ast.NodeTransformer):
    """Copies the offset in the statement that binds `mutant_capture` from a cache."""

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        marked = ast.unparse(node.targets[0]).endswith("mutant_capture")
        return Copy().visit(node) if marked else node


def layer_mutants(source: str, shape: str, *, twin: bool) -> Iterator[tuple[str, str]]:
    """Yield (shape, text) of the mutant over several functions, if the file has the form."""
    tree = ast.parse(source)
    stack = find_stack(tree) if shape in LAYER_SHAPES else None
    if stack is not None:
        LAYER_SHAPES[shape](stack)
        mutated = CopyMarked().visit(tree) if twin else tree
        yield shape, ast.unparse(ast.fix_missing_locations(mutated)) + "\n"
