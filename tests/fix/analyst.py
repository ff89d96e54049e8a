"""A small analysis for the tests of fix: it knows updates of `.offset` and captures of it.

It is wrong about everything else; what `aliaslint.analysis` says is tested elsewhere.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from pathlib import Path

from aliaslint.findings import FileError, Finding, Repair, Result, Span, Step
from aliaslint.source.files import SourceFile, from_bytes


def source(name: str, text: str, folder: Path = Path("/project")) -> SourceFile:
    made = from_bytes(folder / name, text.encode())
    assert isinstance(made, SourceFile)
    return made


def span(node: ast.stmt | ast.expr) -> Span:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return Span(node.lineno, node.col_offset + 1, node.end_lineno, node.end_col_offset + 1)


def finding(code: str, path: Path, repair: Repair, trace: tuple[Step, ...] = ()) -> Finding:
    return Finding(code, "name", "message", "error", path, repair.span, trace, repair)


def analyse(files: Sequence[SourceFile]) -> Result:
    """AL001: `x.offset op= e`; AL101: `y = x.offset` while there is an update or a `setattr`.

    A comment `# unsafe` or `# unsafe: why` on its line makes a repair unsafe.
    """
    result = Result()
    trees = {file.path: ast.parse(file.text) for file in files}
    updates = [
        (path, node)
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if _is_update(node) or _is_setattr(node)
    ]
    for file in files:
        for node in ast.walk(trees[file.path]):
            if _is_update(node):
                assert isinstance(node, ast.AugAssign)
                repair = Repair("rebind", span(node), *_safety(file, node.lineno))
                result.findings.append(finding("AL001", file.path, repair))
            elif isinstance(node, ast.Assign) and _is_offset(node.value) and updates:
                path, update = updates[0]
                steps = (
                    Step("capture", file.path, span(node.value), "captured"),
                    Step("mutation", path, span(update), "updated"),  # type: ignore[arg-type]
                )
                repair = Repair("snapshot", span(node.value), *_safety(file, node.lineno))
                result.findings.append(finding("AL101", file.path, repair, steps))
    result.findings.sort(key=Finding.sort_key)
    return result


def _is_offset(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "offset"


def _is_update(node: ast.AST) -> bool:
    return isinstance(node, ast.AugAssign) and _is_offset(node.target)


def _is_setattr(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "setattr"
    )


def _safety(file: SourceFile, line: int) -> tuple[str, str]:
    text = file.text.splitlines()[line - 1]
    _, mark, reason = text.partition("# unsafe")
    return ("unsafe", reason.removeprefix(":").strip()) if mark else ("safe", "")


def with_error(error: FileError) -> Callable[[Sequence[SourceFile]], Result]:
    """Return an analysis that cannot read one of its files."""

    def analysis(files: Sequence[SourceFile]) -> Result:
        result = analyse([file for file in files if file.path != error.path])
        result.errors.append(error)
        return result

    return analysis
