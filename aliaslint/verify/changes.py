"""Which architectures a change can touch: those whose module imports a changed file."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterable
from pathlib import Path

from aliaslint.errors import UserError
from aliaslint.verify.target import Target

ALWAYS = ("cache",)  # Every model is decoded with the caches, whether it imports them or not.


def affected(target: Target, changed: Iterable[Path]) -> list[str]:
    """Model types whose own file, or a file that it imports from `models/`, is among `changed`."""
    models = target.folder / "models"
    resolved = [path.resolve() for path in changed]
    stems = {path.stem for path in resolved if path.parent == models}
    imports = {path.stem: _imports(path) for path in sorted(models.glob("*.py"))}
    return [name for name in target.architectures() if _closure(name, imports) & stems]


def changed_since(target: Target, revision: str) -> list[Path]:
    """Files of the target that differ from a git revision, untracked ones too.

    Raises UserError where git cannot say.
    """
    tracked = _git(target.folder, "diff", "--name-only", "--relative", revision, "--", ".")
    untracked = _git(target.folder, "ls-files", "--others", "--exclude-standard")
    return [target.folder / line for line in [*tracked, *untracked]]


def _git(folder: Path, *arguments: str) -> list[str]:
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise UserError("--changed-since needs git, which is not installed") from None
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["git failed"])[0]
        raise UserError(f"--changed-since: {reason}")
    return done.stdout.splitlines()


def _closure(name: str, imports: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = {name, *ALWAYS}
    while waiting:
        found |= waiting
        waiting = set().union(*(imports.get(item, set()) for item in waiting)) - found
    return found


def _imports(path: Path) -> set[str]:
    """Names of modules beside `path` that it may import."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return set()
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found |= {alias.name for alias in node.names}
            found |= set((node.module or "").split("."))
        elif isinstance(node, ast.Import):
            found |= {alias.name.rpartition(".")[2] for alias in node.names}
    return found
