"""Follows arrays to RoPE through the functions of the project."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from aliaslint.findings import Span
from aliaslint.rules.ropes.modules import Class, Function, Module, Program, resolve
from aliaslint.rules.ropes.values import UNKNOWN, Callee, Fold, OffsetKind, Texts, Value
from aliaslint.source.files import SourceFile, split_lines

_DEPTH = 8  # Calls nested deeper than this are not followed.
_HANDED_OVER = re.compile(r"[(,]\s*(?:\w+\s*=\s*)?[\w.]*rope\w*\(", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reach:
    """An array that reaches RoPE at a call, directly or inside what is called.

    `facts`: what is known of sizes there (see `guards`). `offset_params`: parameters of the
    function that the offset comes from.
    """

    path: Path
    node: ast.Call
    name: str
    value: Value
    offset: OffsetKind
    offset_params: Texts = frozenset()
    facts: Texts = frozenset()
    direct: bool = True

    def may_be_one_token(self) -> bool:
        """Whether the sequence length may be 1, as far as sizes and guards tell."""
        return not self.value.longer_than_one(self.facts)


@dataclass(frozen=True, slots=True)
class Summary:
    """What a call of a function does: what it gives back, and which arrays reach RoPE in it."""

    returns: Value = UNKNOWN
    reaches: tuple[Reach, ...] = ()


Given = Mapping[str, Value]


class Flow:
    """Summaries of the project's functions, made as they are asked for."""

    def __init__(self, files: Sequence[SourceFile]) -> None:
        self.program = Program({source.path: source.text for source in files})
        self._texts = {source.path: source.text for source in files}
        self._lines: dict[Path, list[str]] = {}
        self._summaries: dict[tuple[ast.AST, frozenset[tuple[str, Value]]], Summary] = {}
        self._active: list[ast.AST] = []
        self._recursive: set[ast.AST] = set()
        self.entered: set[ast.AST] = set()  # Functions that were looked into where they are made.
        self._defined: dict[tuple[Path, str], Value] = {}
        self.undone: dict[Fold, Span] = {}  # Where a folded array gets its shape back.

    def reaches(self, paths: Sequence[Path]) -> list[Reach]:
        """Return what reaches RoPE in the functions of these files, and in their own code."""
        found: list[Reach] = []
        for path in paths:
            module = self.program.module(path)
            if module is None:
                continue
            for function, owner in _functions(module):
                found += self.summary(Callee(function, module, owner)).reaches
            for function in _anonymous(module, self._texts[path]):
                if function not in self.entered:
                    found += self.summary(Callee(function, module)).reaches
        return found

    def returned(self, path: Path) -> list[Value]:
        """Return what the functions of a file give back."""
        module = self.program.module(path)
        functions = _functions(module) if module else ()
        return [self.summary(Callee(f, module, owner)).returns for f, owner in functions]

    def summary(self, callee: Callee, given: Given | None = None) -> Summary:
        """Return the summary of a function; where it calls itself, that of a first look at it.

        `given`: what is known of arguments, where the function is looked at for one caller.
        Beyond a great depth of calls the summary is empty.
        """
        from aliaslint.rules.ropes.interpreter import Interpreter

        function = callee.function
        if function is None or callee.module is None:
            return Summary()
        key = (function, frozenset((given or {}).items()))
        if key in self._summaries:
            return self._summaries[key]
        if function in self._active or len(self._active) >= _DEPTH:
            self._recursive.add(function)
            return Summary()
        self._active.append(function)
        try:
            result = Interpreter(self, callee, given or {}).run()
            if function in self._recursive:
                self._summaries[key] = result
                result = Interpreter(self, callee, given or {}).run()
        finally:
            self._active.pop()
        self._summaries[key] = result
        return result

    def defined(self, module: Module, name: str) -> Value:
        """Return what a global name means: a function of the project or of MLX, or nothing known.

        Its token is the name.
        """
        from aliaslint.rules.ropes.calls import dotted_value

        key = (module.path, name)
        if key not in self._defined:
            dotted = resolve(module, ast.Name(name))
            value = dotted_value(self, dotted) if dotted else UNKNOWN
            self._defined[key] = replace(value, token=name)
        return self._defined[key]

    def wrapping(self, name: str) -> list[tuple[Module, ast.Call]]:
        """Return the calls of a name that hand over a RoPE module made in place."""
        return self._wrapping.get(name, [])

    @cached_property
    def _wrapping(self) -> Mapping[str, list[tuple[Module, ast.Call]]]:
        found: dict[str, list[tuple[Module, ast.Call]]] = {}
        for path in [path for path, text in self._texts.items() if _HANDED_OVER.search(text)]:
            module = self.program.module(path)
            for node in ast.walk(module.tree) if module else ():
                if isinstance(node, ast.Call) and module and any(map(_makes_rope, _given(node))):
                    found.setdefault(_last_name(node.func), []).append((module, node))
        return found

    def text(self, path: Path) -> str:
        return self._texts[path]

    def span(self, path: Path, node: ast.expr | ast.stmt) -> Span:
        """Return where a node stands, in characters."""
        if path not in self._lines:
            self._lines[path] = split_lines(self._texts[path])
        lines = self._lines[path]
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return Span(
            node.lineno,
            _column(lines[node.lineno - 1], node.col_offset),
            node.end_lineno,
            _column(lines[node.end_lineno - 1], node.end_col_offset),
        )


def _given(node: ast.Call) -> list[ast.expr]:
    return [*node.args, *(keyword.value for keyword in node.keywords)]


def _makes_rope(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and "rope" in _last_name(node.func).lower()


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _column(line: str, offset: int) -> int:
    return len(line.encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "replace")) + 1


def _anonymous(module: Module, text: str) -> Iterator[Function]:
    """Yield the lambdas of a module, wherever they stand."""
    for node in ast.walk(module.tree) if "lambda" in text else ():
        if isinstance(node, ast.Lambda):
            yield module.function_of(node)


def _functions(module: Module) -> Iterator[tuple[Function, Class | None]]:
    yield from ((function, None) for function in module.functions.values())
    for owner in (*module.classes.values(), *module.inner):
        for method in owner.methods.values():
            yield method, owner
    yield module.code, None
