"""Which files of a project matter to the RoPE rules, and whether the project decodes batches.

Screens by bytes keep most files from being parsed; what they let through is looked at as code.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from aliaslint.findings import Span
from aliaslint.program.requirements import Declared
from aliaslint.rules.ropes.flow import Flow
from aliaslint.rules.ropes.values import Value
from aliaslint.source.files import SourceFile, split_lines

_ROPE = re.compile(rb"rope|rotary", re.IGNORECASE)
_FOLD = re.compile(
    rb"reshape\(\s*(?:[\w.]+\s*,\s*)?(?:shape\s*=\s*)?[(\[]?\s*(?:-1\b|[\w.\[\]-]+\s*\*)"
    rb"|flatten\((?:[\w.]+,\s*)?(?:0\s*,|start_axis\s*=\s*0|end_axis)"
    rb"|squeeze\([^)\n]*\b0\b"
    rb"|concatenate\((?=[^\n]*axis\s*=\s*0)"
    rb"|concatenate\((?![^\n]*(?:axis\s*=|,)\s*(?:-\d|[1-9])\s*\))"
    rb"|rope\w*\(\s*\w+\[\w+\]"
)
_PRODUCT = re.compile(rb"^\s*(\w+)\s*=\s*[\w.]+\s*\*\s*[\w.]+\s*$", re.MULTILINE)
_POSITION = rb"(?:offset|pos|start)"
_MADE_ONE = rb"(?:array\(\s*\[|\(1,\)|expand_dims|\[None\]|atleast_1d|reshape\(-?1\))"
_ONE_ELEMENT = re.compile(
    rb"%b[^\n]*%b|%b[^\n]*%b" % (_POSITION, _MADE_ONE, _MADE_ONE, _POSITION), re.IGNORECASE
)
_BATCH = re.compile(
    r"^(?:Batch\w*(?:Cache|Generator)|batch(?:ed)?_(?:generate|decode|forward|step)|"
    r"(?:generate|decode)_batch(?:ed)?|left_padding|continuous_batching)$"
)
_BATCH_BYTES = re.compile(
    rb"\b(?:Batch\w*(?:Cache|Generator)|batch(?:ed)?_(?:generate|decode|forward|step)|"
    rb"(?:generate|decode)_batch(?:ed)?|left_padding|continuous_batching)\b"
)


def with_rope(files: Iterable[SourceFile]) -> list[SourceFile]:
    """Return the files that speak of RoPE."""
    return [source for source in files if _ROPE.search(source.data)]


def that_may_fold(files: Sequence[SourceFile]) -> list[SourceFile]:
    """Return the files in which a folded array may reach RoPE, in themselves or by an import."""
    ropes = {source.path: source for source in with_rope(files)}
    folds = {source.path: source for source in files if _may_fold(source.data)}
    found = {path: ropes[path] for path in ropes.keys() & folds.keys()}
    helpers = [folds[path] for path in folds.keys() - ropes.keys()]
    if helpers:
        giving = [source for source in helpers if gives_folded(source)]
        found |= {s.path: s for s in _importing(ropes.values(), giving)}
        found |= {s.path: s for s in _importing(helpers, ropes.values())}
    return sorted(found.values(), key=lambda source: source.path)


def gives_folded(source: SourceFile) -> bool:
    """Whether a function of the file gives back a folded array, so that its importers matter."""
    flow = Flow([source])
    return any(_is_folded(value) for value in flow.returned(source.path))


def _is_folded(value: Value) -> bool:
    return value.fold is not None or any(map(_is_folded, value.parts or ()))


def with_one_element_offset(files: Iterable[SourceFile]) -> list[SourceFile]:
    """Return the files that may give RoPE an offset of shape (1,)."""
    return [source for source in with_rope(files) if _ONE_ELEMENT.search(source.data)]


def decodes_batches(files: Iterable[SourceFile], *, through: str = "") -> bool:
    """Whether code names batched decoding: caches, generators or steps of a batch, or padding.

    `through`: only files count that import this package; using its server counts as well.
    """
    imports = re.compile(rf"^\s*(?:from|import)\s+{through}\b".encode(), re.MULTILINE)
    server = re.compile(rf"^\s*(?:from|import)\s+{through}\.server\b".encode(), re.MULTILINE)
    for source in files:
        if through and server.search(source.data):
            return True
        if not _BATCH_BYTES.search(source.data) or (through and not imports.search(source.data)):
            continue
        if any(_BATCH.match(name) for name in _names(source)):
            return True
    return False


def place_of(declared: Declared) -> Span:
    """Return where a declaration stands in its file: its text, or else its line."""
    try:
        text = declared.path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return Span(declared.line, 1, declared.line, 1)
    lines = split_lines(text)
    line = lines[declared.line - 1] if declared.line <= len(lines) else ""
    column = line.find(declared.text) + 1
    if column:
        return Span(declared.line, column, declared.line, column + len(declared.text))
    start = len(line) - len(line.lstrip()) + 1
    return Span(declared.line, start, declared.line, len(line) + 1)


def _may_fold(data: bytes) -> bool:
    if _FOLD.search(data):
        return True
    if b"reshape(" not in data:
        return False
    return any(
        re.search(rb"reshape\(\s*(?:[\w.]+\s*,\s*)?[(\[]?\s*" + name + rb"\b", data)
        for name in _PRODUCT.findall(data)
    )


def _importing(files: Iterable[SourceFile], modules: Iterable[SourceFile]) -> Iterator[SourceFile]:
    """Yield the files that seem to import one of the modules, by the module's own name."""
    stems = {(s.path.parent if s.path.stem == "__init__" else s.path).stem for s in modules}
    if not stems:
        return
    names = b"|".join(re.escape(stem.encode()) for stem in sorted(stems))
    pattern = re.compile(
        rb"^\s*(?:from\s+[\w.]*\b(?:"
        + names
        + rb")\s+import|from\s+[\w.]+\s+import[^\n]*\b(?:"
        + names
        + rb")\b|import\s+[\w., ]*\b(?:"
        + names
        + rb")\b)",
        re.MULTILINE,
    )
    yield from (source for source in files if pattern.search(source.data))


def _names(source: SourceFile) -> Iterator[str]:
    try:
        tree = ast.parse(source.text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                yield name.rpartition(".")[2]
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name) | ast.arg(arg=name):
                yield name
            case ast.keyword(arg=str(name)):
                yield name
