"""Puts an import where a maintainer would: sorted among its kind, in the first block of imports."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import libcst as cst

_FUTURE, _STANDARD, _THIRD_PARTY, _OWN = range(4)
_Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement
_BLANK = cst.EmptyLine(indent=False)


def add(module: cst.Module, source: str) -> cst.Module:
    """Return the module with the import `source` (`import a.b as c`).

    It comes after the docstring and `__future__`; beside other imports of its kind in the order
    of isort, else in a block of its own: the standard library, third parties, relative imports.
    """
    line = cst.parse_statement(source)
    assert isinstance(line, cst.SimpleStatementLine)
    body = list(module.body)
    kind = _section(line)
    assert kind is not None
    first = _after_docstring(body)
    last = first
    while last < len(body) and _section(body[last]) is not None:
        last += 1
    index = _place(body, first, last, source, kind)
    if any(_section(s) == kind for s in body[max(first, index - 1) : min(last, index + 1)]):
        _insert_in_block(body, index, line, kind)
    else:
        _insert_as_block(body, index, line)
    return module.with_changes(body=body)


def _after_docstring(body: Sequence[_Statement]) -> int:
    """Return the index after the line of the docstring, which may hold other statements too."""
    match body[:1]:
        case [
            cst.SimpleStatementLine(
                body=[cst.Expr(value=cst.SimpleString() | cst.ConcatenatedString()), *_]
            )
        ]:
            return 1
    return 0


def _section(statement: _Statement) -> int | None:
    """Return the block of imports that a statement belongs to, None if it is no import."""
    if not isinstance(statement, cst.SimpleStatementLine):
        return None
    sections = []
    for part in statement.body:
        if isinstance(part, cst.ImportFrom):
            sections.append(_OWN if part.relative else _of(part.module))
        elif isinstance(part, cst.Import):
            sections.append(_of(part.names[0].name))
        else:
            return None
    return max(sections)


def _of(name: cst.BaseExpression | None) -> int:
    while isinstance(name, cst.Attribute):
        name = name.value
    root = name.value if isinstance(name, cst.Name) else ""
    if root == "__future__":
        return _FUTURE
    return _STANDARD if root in sys.stdlib_module_names else _THIRD_PARTY


def _place(body: Sequence[_Statement], first: int, last: int, source: str, kind: int) -> int:
    """Return the index before which the import goes."""
    place = first
    for index in range(first, last):
        section = _section(body[index])
        if section is None or section > kind:
            break
        if section == kind and _sorts_after(body[index], source):
            return index
        place = index + 1
    return place


def _sorts_after(statement: _Statement, source: str) -> bool:
    """isort puts `import x` before `from x import y`, each by name."""
    assert isinstance(statement, cst.SimpleStatementLine)
    if isinstance(statement.body[0], cst.ImportFrom):
        return True
    return cst.Module([]).code_for_node(statement.body[0]).lower() > source.lower()


def _insert_in_block(
    body: list[_Statement], index: int, line: cst.SimpleStatementLine, kind: int
) -> None:
    """Insert into a block: the blank lines above the block stay above it."""
    if index < len(body) and _section(body[index]) == kind:
        above, own = _split(body[index].leading_lines)
        line = line.with_changes(leading_lines=above)
        body[index] = body[index].with_changes(leading_lines=own)
    body.insert(index, line)


def _insert_as_block(body: list[_Statement], index: int, line: cst.SimpleStatementLine) -> None:
    """Insert with a blank line above, if anything is above, and below what formatters want."""
    if index > 0:
        line = line.with_changes(leading_lines=[_BLANK])
    if index < len(body):
        below = body[index]
        wanted = 2 if isinstance(below, cst.FunctionDef | cst.ClassDef) else 1
        missing = wanted - len(_split(below.leading_lines)[0])
        lines = [*[_BLANK] * missing, *below.leading_lines]
        body[index] = below.with_changes(leading_lines=lines)
    body.insert(index, line)


def _split(lines: Sequence[cst.EmptyLine]) -> tuple[list[cst.EmptyLine], list[cst.EmptyLine]]:
    """Split leading lines into the blank ones and those from the first comment on."""
    for index, line in enumerate(lines):
        if line.comment is not None:
            return list(lines[:index]), list(lines[index:])
    return list(lines), []
