"""Find the usual three lines in a model file: rotate queries, rotate keys, update the cache."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Site:
    """The usual lines in one block: `body[rotate]` turns the queries, `body[update]` follows."""

    body: list[ast.stmt]
    rotate: int
    update: int
    cache: ast.expr


def offset_keyword(statement: ast.stmt) -> ast.keyword | None:
    """Return the `offset=X.offset` of `q = self.rope(q, offset=X.offset)`, if it is one."""
    match statement:
        case ast.Assign(
            targets=[ast.Name(id=target)], value=ast.Call(args=[ast.Name(id=name), *_]) as call
        ) if target == name:
            for word in call.keywords:
                if isinstance(word.value, ast.Attribute) and word.value.attr == "offset":
                    return word
    return None


def is_update(statement: ast.stmt, cache: str) -> bool:
    match statement:
        case ast.Assign(value=ast.Call(func=ast.Attribute(value=owner, attr="update_and_fetch"))):
            return ast.unparse(owner) == cache
    return False


def sites(tree: ast.AST) -> Iterator[Site]:
    """Yield each place where a rotation reads the offset and the update follows in its block."""
    for node in ast.walk(tree):
        block = getattr(node, "body", None)
        body: list[ast.stmt] = block if isinstance(block, list) else []
        for index, statement in enumerate(body):
            word = offset_keyword(statement)
            if word is None or not isinstance(word.value, ast.Attribute):
                continue
            cache = word.value.value
            for later in range(index + 1, len(body)):
                if is_update(body[later], ast.unparse(cache)):
                    yield Site(body, index, later, cache)
                    break


class Copy(ast.NodeTransformer):
    """Makes the healthy twin of a shape: every captured offset is copied at once."""

    @staticmethod
    def copied(value: ast.expr) -> ast.expr:
        function = ast.Attribute(ast.Name("mx", ast.Load()), "array", ast.Load())
        return ast.Call(function, [value], [])

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        captured = node.attr == "offset" and isinstance(node.ctx, ast.Load)
        return self.copied(node) if captured else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        named = isinstance(node.func, ast.Name) and node.func.id == "getattr"
        return self.copied(node) if named else node
