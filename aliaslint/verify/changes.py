"""Which architectures a change can touch: those whose modules import a changed file."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from aliaslint.errors import UserError
from aliaslint.verify.target import Target, defines_cache


def affected(target: Target, changed: Iterable[Path]) -> list[str]:
    """Model types whose own files, or files of the package that they import, are among `changed`.

    Every model is decoded with `models/cache.py`, whether it imports it or not.
    """
    resolved = {path.resolve() for path in changed}
    reach = _Reach(target)
    caches = target.folder / "models" / "cache.py"
    names = target.architectures()
    return [name for name in names if reach.of((*target.files(name), caches)) & resolved]


def touches_caches(target: Target, changed: Iterable[Path]) -> bool:
    """Whether a changed file defines caches of the package that no architecture has to itself.

    Nothing says which architecture is given these, and the cache contract is due.
    """
    theirs = {path for name in target.architectures() for path in target.files(name)}
    return any(
        path.suffix == ".py" and path.is_relative_to(target.folder) and defines_cache(path)
        for path in {path.resolve() for path in changed} - theirs
    )


def changed_since(target: Target, revision: str) -> list[Path]:
    """Files of the target that differ from a git revision, untracked ones too.

    Raises UserError where git cannot say.
    """
    names = ("diff", "--name-only", "-z", "--relative", "--end-of-options", revision, "--", ".")
    _git(target.folder, "rev-parse", "--git-dir")  # Outside a repository diff only lists options.
    tracked = _git(target.folder, *names)
    untracked = _git(target.folder, "ls-files", "-z", "--others", "--exclude-standard")
    return [target.folder / line for line in [*tracked, *untracked]]


def _git(folder: Path, *arguments: str) -> list[str]:
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise UserError("--changed-since needs git, which is not installed") from None
    if done.returncode:
        reason = next(iter(done.stderr.strip().splitlines()), "git failed")
        raise UserError(f"--changed-since: {reason}")
    return [name for name in done.stdout.split("\0") if name]


class _Reach:
    """What is imported from where; a file is parsed once."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.imports = cache(self._imports)

    def of(self, files: Iterable[Path]) -> set[Path]:
        """The files, and what they import from the package, directly or not."""
        found: set[Path] = set()
        waiting = set(files)
        while waiting:
            found |= waiting
            waiting = set().union(*(self.imports(path) for path in waiting)) - found
        return found

    def _imports(self, path: Path) -> set[Path]:
        try:
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError):
            return set()
        return {file for name in self._names(path, tree) for file in _files(name)}

    def _names(self, path: Path, tree: ast.Module) -> Iterator[Path]:
        """What a file names in the package: each a module, or something in one, as a path."""
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                bases = [self._absolute(alias.name) for alias in node.names]
                yield from (base for base in bases if base is not None)
            elif isinstance(node, ast.ImportFrom):
                module = node.module or ""
                if node.level:
                    base: Path | None = path.parents[node.level - 1].joinpath(*module.split("."))
                else:
                    base = self._absolute(module)
                if base is not None:
                    yield from (base, *(base / alias.name for alias in node.names))

    def _absolute(self, module: str) -> Path | None:
        package, *rest = module.split(".")
        return self.target.folder.joinpath(*rest) if package == self.target.name else None


def _files(module: Path) -> tuple[Path, Path]:
    """The files that a module may be, there or deleted."""
    return module.with_name(f"{module.name}.py"), module / "__init__.py"
