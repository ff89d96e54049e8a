"""How long the lines of a project may be, by the configuration of its formatter."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from aliaslint.source.config import ConfigError, load_toml

DEFAULT = 88


def line_length(path: Path, chosen: int | None = None) -> int:
    """Return the line length for a file: `chosen`, else what the nearest configuration says.

    As black and ruff do it: the nearest pyproject.toml that configures either, black first, or
    a ruff.toml; without one, 88.
    """
    return chosen if chosen is not None else _of_folder(Path(path).parent)


@cache
def _of_folder(folder: Path) -> int:
    for name in ("pyproject.toml", ".ruff.toml", "ruff.toml"):
        length = _configured(folder / name)
        if length is not None:
            return length
    if (folder / ".git").exists() or folder.parent == folder:
        return DEFAULT
    return _of_folder(folder.parent)


def _configured(path: Path) -> int | None:
    """Return the line length in one file; None if it says nothing or cannot be read."""
    if not path.is_file():
        return None
    try:
        data = load_toml(path, path.read_bytes())
    except (OSError, ConfigError):
        return None
    tool = data.get("tool", {}) if path.name == "pyproject.toml" else {"ruff": data}
    for name in ("black", "ruff"):
        section = tool.get(name)
        if isinstance(section, Mapping):
            length = section.get("line-length", DEFAULT)
            return length if isinstance(length, int) else DEFAULT
    return None
