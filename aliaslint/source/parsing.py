"""Parsing one file with `ast`: a tree, or one clear line about why there is none."""

from __future__ import annotations

import ast
import sys
import warnings

from aliaslint.findings import FileError
from aliaslint.source.files import SourceFile

# Words by which CPython's parser names syntax of a version newer than `feature_version`.
NEWEST = sys.version_info[:2]
DEEP = 150  # levels of the tree; those of mlx-lm have at most some thirty
TOO_DEEP = "cannot be analysed: it is nested too deeply"


def parse(source: SourceFile) -> ast.Module | FileError:
    """Return the tree of a file; a syntax error is told with its line and column."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source.text)
    except SyntaxError as error:
        line, column = error.lineno, error.offset
        return FileError(source.path, line, column or None, explain(error))
    except ValueError as error:
        return FileError(source.path, None, None, f"cannot be parsed: {error}")
    except (RecursionError, MemoryError):
        return FileError(source.path, None, None, "cannot be parsed: it is nested too deeply")


def is_deep(source: SourceFile) -> bool:
    """True if the tree of a file that parses is nested deeper than code that people write."""
    tree = parse(source)
    level: list[ast.AST] = [] if isinstance(tree, FileError) else [tree]
    for _ in range(DEEP):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return False
    return True


def explain(error: SyntaxError) -> str:
    """Say whether the file is broken, or only newer than the Python that runs."""
    text = (error.text or "").strip()
    running = f"Python {NEWEST[0]}.{NEWEST[1]}"
    needs = needed_version(text, error.msg)
    if needs is not None and needs > NEWEST:
        return f"needs Python {needs[0]}.{needs[1]} syntax, aliaslint runs on {running}"
    return f"invalid syntax: {error.msg}" if error.msg != "invalid syntax" else "invalid syntax"


def needed_version(line: str, message: str) -> tuple[int, int] | None:
    """Guess which version first had the syntax of a line that does not parse."""
    if line.startswith(("type ", "def ", "class ")) and ("[" in line or line.startswith("type ")):
        return (3, 12)
    if line.startswith("except*"):
        return (3, 11)
    if "f-string" in message:
        return (3, 12)
    if line.startswith("except ") and "," in line and "(" not in line:
        return (3, 14)
    return None
