"""Mutants of code that already captures its offset: small changes that a port can well contain.

- `drop-copy`: `offset = mx.array(cache.offset)` loses its copy (gemma4_text hands this offset to
  the layers that share its keys).
- `moved-rotation`: a rotation that uses an offset captured before it moves behind the statement
  that updates the cache.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from benchmarks.accuracy.sites import Copy

MARK = "mutant_capture"


def is_capture(statement: ast.stmt) -> bool:
    """Whether the statement binds one name to a value that may be a live `.offset`."""
    match statement:
        case ast.Assign(targets=[ast.Name()], value=ast.Attribute(attr="offset")):
            return True
        case ast.Assign(targets=[ast.Name()], value=ast.IfExp(body=ast.Attribute(attr="offset"))):
            return True
    return False


def names(node: ast.AST) -> set[str]:
    return {item.id for item in ast.walk(node) if isinstance(item, ast.Name)}


def rename(function: ast.AST, name: str) -> None:
    """Rename one local name to the mark, so that the line of its capture can be found."""
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id == name:
            node.id = MARK


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def arguments(function: ast.FunctionDef) -> set[str]:
    return {argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)}


class DropCopy(ast.NodeTransformer):
    """Turns `mx.array(X.offset)` into `X.offset`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="mx"), attr="array"),
                args=[ast.Attribute(attr="offset") as live],
                keywords=[],
            ):
                return live
        return node


def drop_copy(tree: ast.Module) -> bool:
    """Drop the copy of the first function that has one, and mark the line of its capture."""
    for function in functions(tree):
        for statement in ast.walk(function):
            if not isinstance(statement, ast.Assign) or "mx.array(" not in ast.unparse(statement):
                continue
            before = ast.dump(statement)
            DropCopy().visit(statement)
            if ast.dump(statement) != before and isinstance(statement.targets[0], ast.Name):
                # The name itself may be a parameter: a second target bears the mark.
                statement.targets.insert(0, ast.Name(MARK, ast.Store()))
                return True
    return False


def rotation_of(statement: ast.stmt, offset: str) -> str | None:
    """Return x of `x = self.rope(x, ..., offset, ...)`, if the statement is of that form."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=target)], value=ast.Call(args=[ast.Name(id=x), *_])):
            if target == x and "rope" in ast.unparse(statement.value):
                return x if offset in names(statement.value) else None
    return None


def updates(statement: ast.stmt) -> bool:
    return "update_and_fetch" in ast.unparse(statement)


def moved_rotation(tree: ast.Module) -> bool:
    """Move the first rotation that can be moved behind the update, and mark its capture."""
    for function in functions(tree):
        for owner in ast.walk(function):
            block = getattr(owner, "body", None)
            body: list[ast.stmt] = block if isinstance(block, list) else []
            for capture in filter(is_capture, body):
                assert isinstance(capture, ast.Assign)
                assert isinstance(capture.targets[0], ast.Name)
                name = capture.targets[0].id
                if move(body, name) and name not in arguments(function):
                    rename(function, name)
                    return True
    return False


def move(body: list[ast.stmt], offset: str) -> bool:
    """Move a rotation by `offset` behind the first update, if nothing between reads it."""
    update = next((i for i, statement in enumerate(body) if updates(statement)), None)
    for index, statement in enumerate(body[:update] if update is not None else []):
        rotated = rotation_of(statement, offset)
        assert update is not None
        between = body[index + 1 : update + 1]
        if rotated is not None and not any(rotated in names(other) for other in between):
            body.insert(update + 1, statement)
            del body[index]
            return True
    return False


REWRITES: dict[str, Callable[[ast.Module], bool]] = {
    "drop-copy": drop_copy,
    "moved-rotation": moved_rotation,
}


class CopyMarked(ast.NodeTransformer):
    """Copies the offset in the statements that bind the mark."""

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        marked = any(MARK in names(target) for target in node.targets)
        return Copy().visit(node) if marked else node


def rewritten(source: str, shape: str, *, twin: bool) -> Iterator[tuple[str, str]]:
    """Yield (shape, text) of the mutant, if the file has what the shape changes."""
    tree = ast.parse(source)
    if shape in REWRITES and REWRITES[shape](tree):
        mutated = CopyMarked().visit(tree) if twin else tree
        yield shape, ast.unparse(ast.fix_missing_locations(mutated)) + "\n"
