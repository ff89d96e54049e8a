"""The self-test: puts the bug back into a healthy tree, so that a green result means something.

Two faults: the caches update `offset` in place, and one model rotates its queries after the
update with an offset that it captured before. The first must break the cache contract, the
second must break decoding, and value semantics must cure both.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from aliaslint.errors import UserError
from aliaslint.verify.model import VerifyReport, VerifyRequest
from aliaslint.verify.session import require_known, run
from aliaslint.verify.sweep import Progress
from aliaslint.verify.target import Target, find_target

OPERATORS: dict[type[ast.operator], str] = {ast.Add: "+=", ast.Sub: "-="}
CAUGHT = frozenset({"fixed", "broken"})


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault that was put in: what it is, where, and whether it was caught."""

    what: str
    path: str
    caught: bool = False
    found: str = ""


def self_test(
    request: VerifyRequest, progress: Progress | None = None
) -> tuple[list[Fault], VerifyReport]:
    """Run the self-test on the target; raises UserError where no fault can be put in."""
    target = find_target(request.target)
    cache_path = target.folder / "models" / "cache.py"
    if not cache_path.exists():
        raise UserError(f"{target.folder} has no models/cache.py to put a fault into")
    require_known(target, request.architectures)
    cache = inplace_caches(_text(cache_path))
    name, text = late_capture(target, request.architectures)
    model = target.module(name)
    contents = {cache_path: cache.encode(), model: text.encode()}
    healthy = {path: path.read_bytes() for path in contents}
    report = run(
        replace(
            request,
            injected=contents,
            rewritten=healthy,
            architectures=(name,),
            nothing_changed=False,
        ),
        progress,
    )
    return [_cache_fault(report), _model_fault(report, model, target)], report


def _cache_fault(report: VerifyReport) -> Fault:
    caught = [c for c in report.caches if any(x.startswith("offset ") for x in c.changed)]
    names = ", ".join(cache.name for cache in caught)
    found = f"offset changes in {names}" if caught else "no held offset changed"
    return Fault("in-place update of offset in the caches", "models/cache.py", bool(caught), found)


def _model_fault(report: VerifyReport, model: Path, target: Target) -> Fault:
    verdicts = {result.verdict for result in report.architectures}
    found = ", ".join(sorted(verdicts))
    what = "queries rotated after the update with an offset captured before it"
    return Fault(what, model.relative_to(target.folder).as_posix(), bool(verdicts & CAUGHT), found)


def _text(path: Path) -> str:
    """The text of a file; "" where it is no Python, so that no fault can be put in."""
    try:
        text = path.read_text(encoding="utf-8")
        ast.parse(text)
    except (SyntaxError, ValueError):
        return ""
    return text


def inplace_caches(source: str) -> str:
    """Turn every `x.offset = x.offset ± e` of the source into an in-place update."""
    lines = source.splitlines(keepends=True)
    for node in _rebindings(ast.parse(source)):
        target, value = ast.unparse(node.targets[0]), node.value
        assert isinstance(value, ast.BinOp)
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        indent = " " * node.col_offset
        sign = OPERATORS[type(value.op)]
        lines[first] = f"{indent}{target} {sign} {ast.unparse(value.right)}\n"
        lines[first + 1 : last + 1] = [""] * (last - first)
    return "".join(lines)


def _rebindings(tree: ast.Module) -> Iterator[ast.Assign]:
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp)):
            continue
        target = node.targets[0]
        named = isinstance(target, ast.Attribute) and target.attr == "offset"
        same = ast.unparse(target) == ast.unparse(node.value.left)
        if named and same and type(node.value.op) in OPERATORS:
            yield node


def late_capture(target: Target, wanted: tuple[str, ...]) -> tuple[str, str]:
    """A model in which the query rotation can be moved, and the text of its file with the fault."""
    for name in wanted or target.architectures():
        text = moved_rotation(_text(target.module(name)))
        if text is not None:
            return name, text
    raise UserError(f"{target.folder}: no model with the usual lines to put a fault into")


def moved_rotation(source: str) -> str | None:
    """Rotate the queries after the update through a captured offset; None where it cannot be."""
    for node in ast.walk(ast.parse(source)):
        for body in (getattr(node, "body", None), getattr(node, "orelse", None)):
            if isinstance(body, list) and (found := _three_lines(body)):
                return _moved(source, *found)
    return None


def _three_lines(body: list[ast.stmt]) -> tuple[ast.stmt, ast.stmt] | None:
    """The rotation of the queries and the update behind it, both in one block."""
    rotation = None
    for statement in body:
        if not isinstance(statement, ast.Assign):
            continue
        text = ast.unparse(statement)
        if text.startswith("queries = self.rope(queries, offset=cache.offset"):
            rotation = statement
        elif rotation is not None and "cache.update_and_fetch(" in text:
            return rotation, statement
    return None


def _moved(source: str, rotation: ast.stmt, update: ast.stmt) -> str:
    lines = source.splitlines(keepends=True)
    first, last = rotation.lineno - 1, rotation.end_lineno or rotation.lineno
    end = update.end_lineno or update.lineno
    indent = " " * rotation.col_offset
    moved = "".join(lines[first:last]).replace("cache.offset", "captured_offset")
    capture = f"{indent}captured_offset = cache.offset\n"
    return "".join([*lines[:first], capture, *lines[last:end], moved, *lines[end:]])
