"""Which files of a project matter to the RoPE rules, and whether the project decodes batches.

Screens by bytes keep most files from being parsed; what they let through is looked at as code.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from aliaslint.findings import Span
from aliaslint.program.declared import Declared
from aliaslint.rules.ropes.flow import Flow, Reach
from aliaslint.source.files import SourceFile, split_lines

_ROPE = re.compile(rb"rope|rotary", re.IGNORECASE)
_ROTATES = re.compile(
    rb"rope\w*(?:\[\w+\])?\s*\(|\bnn\.RoPE\b|fast\.rope|import rope", re.IGNORECASE
)
_ROTARY = re.compile(rb"rotary\w*\s*\((?=[^)]*\boffset)", re.IGNORECASE)
_FOLDS = re.compile(
    rb"reshape|flatten|squeeze|concatenate|stack|take\(|rearrange|\[\s*\w+\s*[\],]|\bfor\b"
)
_MADE_ONE = re.compile(
    rb"array\(\s*[\[(]|\(\s*1\s*,\s*\)|\[\s*1\s*\]|expand_dims|\[\s*None\b|atleast_1d"
    rb"|arange|(?:full|zeros|ones)\(\s*1\s*,|reshape\(\s*-?1\s*\)|:\s*1\s*\]|\+\s*1\s*\]"
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


def reaches(
    flow: Flow, files: Sequence[SourceFile], wanted: Callable[[SourceFile], bool]
) -> list[Reach]:
    """Return what reaches RoPE: in files that call it, and in wanted files that import those.

    Only imports of files matter in which a parameter of a function reaches RoPE.
    """
    rotating = [source for source in with_rope(files) if rotates(source.data)]
    found = flow.reaches([source.path for source in rotating])
    inside = {source.path for source in rotating}
    wrappers = {reach.path for reach in found if reach.value.params}
    others = [s for s in files if s.path not in inside and wanted(s)]
    callers = _importing(others, [s for s in rotating if s.path in wrappers])
    return [*found, *flow.reaches([source.path for source in callers])]


def rotates(data: bytes) -> bool:
    """Whether a file calls RoPE, or something named like it, as far as its bytes tell."""
    return _ROTATES.search(data) is not None or _ROTARY.search(data) is not None


def may_fold(source: SourceFile) -> bool:
    """Whether a file has an operation that can put heads or batch into dimension 0."""
    return _FOLDS.search(source.data) is not None


def may_make_one(source: SourceFile) -> bool:
    """Whether a file may make an array of shape (1,)."""
    return _MADE_ONE.search(source.data) is not None


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
