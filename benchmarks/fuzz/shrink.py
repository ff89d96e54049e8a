"""Makes a program smaller while it keeps a property."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from benchmarks.fuzz.tree import Block, Line, Node, Program


def shrink(program: Program, keeps: Callable[[Program], bool], tries: int = 3000) -> Program:
    """Return a smaller program for which `keeps` holds, found by removing and unwrapping nodes.

    `keeps` must be false for programs that do not run.
    """
    changed = True
    while changed and tries > 0:
        changed, tried = False, 0
        while tries > 0:
            # After a success the next candidates lie about where the last one did.
            smaller = next(islice(candidates(program), tried, None), None)
            if smaller is None:
                break
            tries -= 1
            if keeps(smaller):
                program, changed = smaller, True
            else:
                tried += 1
    return program


def candidates(nodes: Program) -> Iterator[Program]:
    """Yield programs with one change: large ones first."""
    for size in (8, 4, 2, 1):
        if size <= len(nodes):
            for start in range(len(nodes) - size, -1, -1):
                yield nodes[:start] + nodes[start + size :]
    for index, node in enumerate(nodes):
        for smaller in _smaller(node):
            yield nodes[:index] + smaller + nodes[index + 1 :]


def _smaller(node: Node) -> Iterator[tuple[Node, ...]]:
    if isinstance(node, Line):
        return
    scopes = ("def ", "class ", "case ")
    if not node.clauses[0][0].startswith(scopes):
        for header, body in node.clauses:
            if not header.startswith("match "):
                yield body
    if len(node.clauses) > 1:
        for index in range(1, len(node.clauses)):
            kept = node.clauses[:index] + node.clauses[index + 1 :]
            if kept[0][0] != "try:" or len(kept) > 1:
                yield (Block(kept),)
    for index, (header, body) in enumerate(node.clauses):
        for smaller in candidates(body):
            clause = (header, smaller)
            yield (Block((*node.clauses[:index], clause, *node.clauses[index + 1 :])),)
