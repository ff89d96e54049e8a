"""Make mutants of real model files: programs with one stale capture, and their healthy twins.

A mutant is one file of an unpacked release with new text. Nothing of a release is kept in this
repository: the text is made from the release at hand and lives in a temporary folder.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.accuracy.layers import layer_mutants
from benchmarks.accuracy.rewrites import rewritten
from benchmarks.accuracy.shapes import SHAPES, Shape
from benchmarks.accuracy.sites import Copy, Site, offset_keyword, sites

MARK = "mutant_capture"


@dataclass(frozen=True, slots=True)
class Mutant:
    """New text for one file. `lines` are those at which a finding of the capture is expected.

    `path` is relative to the package folder. A twin has no stale read: it expects silence.
    """

    shape: str
    path: str
    text: str
    lines: tuple[int, ...]
    twin: bool = False

    @property
    def name(self) -> str:
        return f"{self.shape}{' (twin)' if self.twin else ''} in {self.path}"


class Fill(ast.NodeTransformer):
    """Puts the statements of a site into the placeholders of a shape."""

    def __init__(self, site: Site) -> None:
        self.site = site

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return copy.deepcopy(self.site.cache) if node.id == "CACHE" else node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | list[ast.stmt]:
        site = self.site
        match node.value:
            case ast.Name(id="BETWEEN"):
                return site.body[site.rotate + 1 : site.update]
            case ast.Name(id="UPDATE"):
                return site.body[site.update]
            case ast.Call(func=ast.Name(id="UPDATE_BY"), args=[ast.Name() as function]):
                return self.update_by(function)
            case ast.Call(func=ast.Name(id="ROTATE"), args=[offset]):
                return self.rotation(offset)
        return self.generic_visit(node)

    def update_by(self, function: ast.Name) -> ast.stmt:
        statement = copy.deepcopy(self.site.body[self.site.update])
        assert isinstance(statement, ast.Assign)
        assert isinstance(statement.value, ast.Call)
        statement.value.func = function
        statement.value.args.insert(0, copy.deepcopy(self.site.cache))
        return statement

    def rotation(self, offset: ast.expr) -> ast.stmt:
        statement = copy.deepcopy(self.site.body[self.site.rotate])
        word = offset_keyword(statement)
        assert word is not None
        word.value = offset
        return statement


def with_prelude(tree: ast.Module, prelude: ast.Module) -> None:
    """Insert `prelude` after the last import at the top of the module."""
    imports = (ast.Import, ast.ImportFrom)
    last = max((i for i, node in enumerate(tree.body) if isinstance(node, imports)), default=-1)
    tree.body[last + 1 : last + 1] = prelude.body


def capture_lines(text: str) -> tuple[int, ...]:
    """Return where the live handle is captured: the first line that binds the mark.

    A helper of the shape that reads the offset comes after it: where the helper binds the live
    handle to a name of its own, that is the place of the capture as well.
    """
    tree = ast.parse(text)
    marks = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and (node.id if isinstance(node, ast.Name) else node.attr) == MARK
    ]
    definitions = (ast.FunctionDef, ast.ClassDef)
    helpers = [
        inner.lineno
        for node in tree.body
        if isinstance(node, definitions) and node.name.lower().startswith("mutant")
        for inner in ast.walk(node)
        if isinstance(inner, ast.Attribute) and inner.attr == "offset"
    ]
    return (min(marks), *sorted(set(helpers)))


def apply(shape: Shape, source: str, path: str, *, twin: bool = False) -> Mutant | None:
    """Return the mutant of the first site in `source`, or None if the file has no site."""
    tree = ast.parse(source)
    site = next(sites(tree), None)
    if site is None:
        return None
    body, prelude = ast.parse(shape.body), ast.parse(shape.prelude)
    if twin:
        body, prelude = Copy().visit(body), Copy().visit(prelude)
    filled = Fill(site).visit(body)
    site.body[site.rotate : site.update + 1] = filled.body
    with_prelude(tree, prelude)
    text = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    return Mutant(shape.name, path, text, capture_lines(text), twin)


def model_files(package: Path) -> Iterator[tuple[str, str]]:
    """Yield path and text of the model files of a package folder, in order."""
    for path in sorted((package / "models").glob("*.py")):
        if path.stem not in ("cache", "base", "__init__"):
            yield path.relative_to(package).as_posix(), path.read_text("utf-8")


def mutants(package: Path, shape: str, *, twin: bool = False) -> Iterator[Mutant]:
    """Yield the mutants of one shape for every model file to which it applies."""
    for path, source in model_files(package):
        for known in SHAPES:
            made = apply(known, source, path, twin=twin) if known.name == shape else None
            if made is not None:
                yield made
        across = (layer_mutants, rewritten)
        for name, text in (found for make in across for found in make(source, shape, twin=twin)):
            yield Mutant(name, path, text, capture_lines(text), twin)
