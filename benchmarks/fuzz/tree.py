"""A program as a tree of lines, each written as it is and with value semantics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

HEADER = (
    "import copy",
    "from dataclasses import dataclass",
    "from functools import partial",
    "import mlx.core as mx",
    "from probe import coin, few, some, use",
)


@dataclass(frozen=True, slots=True)
class Line:
    """A simple statement. `value` is the same with value semantics, where that differs."""

    text: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """A compound statement: clauses such as `if coin():` and `else:` with their bodies."""

    clauses: tuple[tuple[str, tuple[Node, ...]], ...]


Node = Line | Block
Program = tuple[Node, ...]


def block(header: str, body: list[Node], *more: tuple[str, list[Node]]) -> Block:
    """Return a compound statement of one or more clauses."""
    return Block(tuple((h, tuple(b)) for h, b in ((header, body), *more)))


def _write(nodes: Program, indent: str, value: bool) -> Iterator[str]:
    if not nodes:
        yield f"{indent}pass"
    for node in nodes:
        if isinstance(node, Line):
            yield indent + (node.value if value and node.value else node.text)
        else:
            for header, body in node.clauses:
                yield indent + header
                yield from _write(body, indent + "    ", value)


def as_written(program: Program) -> str:
    """Return the source as the analysis and MLX see it."""
    return "\n".join([*HEADER, *_write(program, "", False), ""])


def with_value_semantics(program: Program) -> str:
    """Return the source in which each update rebinds the place that it is written to."""
    return "\n".join([*HEADER, *_write(program, "", True), ""])


def update(place: str, operator: str, operand: str) -> Line:
    """Return `place op= operand`, which value semantics writes as `place = place op operand`."""
    return Line(f"{place} {operator}= {operand}", f"{place} = {place} {operator} ({operand})")


def put(place: str, index: str, operand: str) -> Line:
    """Return `place[index] = operand`, which value semantics writes as a new array."""
    return Line(f"{place}[{index}] = {operand}", f"{place} = put({place}, {index}, {operand})")
