"""What stands on a line, by its syntax: a function, a class body, or nothing that runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aliaslint.errors import UserError
from aliaslint.lower.ir import At
from aliaslint.lower.lowering import at
from aliaslint.lower.scopes import parameters

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a line lies.

    `chain` are the definitions around it, outermost first. `header` is the definition whose
    `def` or `class` line (parameters and bases included) it is; `decorator` is the decorator
    that stands on it. `declares`: the line is an annotation without a value.
    """

    line: int
    chain: tuple[Definition, ...]
    header: Definition | None = None
    decorator: ast.expr | None = None
    declares: bool = False

    @property
    def unit(self) -> str:
        return ".".join(node.name for node in self.chain) or "the module"

    @property
    def function(self) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The outermost function around the line: what is analysed on its own."""
        for node in self.chain:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return node
        return None

    @property
    def root(self) -> str:
        """The name of that function, with the classes around it."""
        function = self.function
        if function is None:
            return self.unit
        return ".".join(node.name for node in self.chain[: self.chain.index(function) + 1])

    @property
    def parameters(self) -> dict[str, At]:
        """The parameters that stand on the line of a function's head, with their places."""
        if not isinstance(self.header, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return {}
        named = [arg for arg, _ in parameters(self.header.args)]
        return {
            arg.arg: at(arg) for arg in named if arg.lineno <= self.line <= (arg.end_lineno or 0)
        }

    @property
    def owner(self) -> str:
        """The class that holds the outermost function, or that the line stands in."""
        if self.chain and isinstance(self.chain[0], ast.ClassDef):
            return self.chain[0].name
        return ""


def locate(tree: ast.Module, lines: Sequence[str], line: int) -> Spot:
    """Say what stands on a line. Raises UserError (without a path) where nothing runs there."""
    chain: list[Definition] = []
    body: list[ast.stmt] = tree.body
    while True:
        node = next((s for s in body if first_line(s) <= line <= (s.end_lineno or 0)), None)
        if node is None:
            raise UserError(nothing(lines, line, following(tree, line)))
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inner = [s for block in blocks(node) for s in block]
            if any(first_line(s) <= line <= (s.end_lineno or 0) for s in inner):
                body = inner
                continue
            return simple(tree, lines, line, node, tuple(chain))
        for decorator in node.decorator_list:
            if decorator.lineno <= line <= (decorator.end_lineno or 0):
                return Spot(line, tuple(chain), decorator=decorator)
        chain.append(node)
        if line < first_line(node.body[0]) and line <= header_end(node):
            return Spot(line, tuple(chain), header=node)
        body = node.body


def simple(
    tree: ast.Module,
    lines: Sequence[str],
    line: int,
    node: ast.stmt,
    chain: tuple[Definition, ...],
) -> Spot:
    """A statement that holds no definition around the line, or the head of one with blocks."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        raise UserError(nothing(lines, line, following(tree, line), "is text, not code"))
    if isinstance(node, ast.Match) and any(in_pattern(case, line) for case in node.cases):
        return Spot(line, chain)
    if any(True for _ in blocks(node)) and line > head_end(node):
        raise UserError(nothing(lines, line, following(tree, line)))
    return Spot(line, chain, declares=isinstance(node, ast.AnnAssign) and node.value is None)


def in_pattern(case: ast.match_case, line: int) -> bool:
    last = case.guard or case.pattern
    return case.pattern.lineno <= line <= (last.end_lineno or 0)


def first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def header_end(node: Definition) -> int:
    """The last line of a definition's head, as far as its parts tell."""
    if isinstance(node, ast.ClassDef):
        parts: list[ast.AST] = [*node.bases, *node.keywords]
    else:
        parts = [arg for arg, _ in parameters(node.args)]
        parts += [d for d in (*node.args.defaults, *node.args.kw_defaults, node.returns) if d]
    return max([node.lineno, *(getattr(p, "end_lineno", 0) or 0 for p in parts)])


def head_end(node: ast.stmt) -> int:
    """The last line of what a compound statement evaluates in front of its blocks."""
    parts: list[ast.AST] = []
    for name in ("test", "target", "iter", "subject"):
        part = getattr(node, name, None)
        if isinstance(part, ast.AST):
            parts.append(part)
    for item in getattr(node, "items", ()):
        parts += [item.context_expr, *([item.optional_vars] if item.optional_vars else [])]
    head = [getattr(p, "end_lineno", 0) or 0 for p in parts]
    return max([node.lineno if parts else 0, *head])


def blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    """Yield the blocks of a compound statement."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list) and block:
            yield block
    for handler in getattr(node, "handlers", ()):
        yield handler.body
    for case in getattr(node, "cases", ()):
        yield case.body


def following(tree: ast.Module, line: int) -> int | None:
    """Return the line of the first statement behind `line`."""
    later = [
        first_line(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and first_line(node) > line and not is_text(node)
    ]
    return min(later, default=None)


def is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def nothing(lines: Sequence[str], line: int, after: int | None, what: str = "") -> str:
    """Say that nothing runs on a line, and where the next statement is."""
    text = lines[line - 1].strip()
    if not what:
        what = "is empty" if not text else "is a comment" if text.startswith("#") else ""
        what = what or f"holds only `{text}`"
    hint = f"; the next statement is on line {after}" if after else ""
    return f"line {line} {what}{hint}"
