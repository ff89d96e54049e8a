"""The configuration: `[tool.aliaslint]` of the nearest pyproject.toml that has one."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aliaslint.errors import UserError
from aliaslint.source.files import read_bytes

_TABLE = "tool.aliaslint"
_SPECIAL = frozenset("[\\!")
# Brackets hold something and are closed (a `]` that comes first is held), and no backslash is last.
_HELD = r"(?:[!^]|(?![!^]))(?:\][^\]]*|[^\]]+)"
_CLOSED = re.compile(rf"(?:\\.|[^\[\\]|\[{_HELD}\])*", re.DOTALL)


class ConfigError(UserError):
    """A configuration that cannot be used; the message is one line and names the file."""


@dataclass(frozen=True, slots=True)
class Config:
    """The keys of `[tool.aliaslint]`, checked; None and empty mean that a key is absent.

    `root` is the folder that patterns and relative paths are relative to: the one of `source`,
    the configuration file. `mlx_lm` is a version or the path of a package folder.
    `per_file_ignores` maps patterns to rule selectors.
    """

    root: Path
    source: Path | None = None
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    exclude: tuple[str, ...] | None = None
    extend_exclude: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    exposed_attributes: tuple[str, ...] = ("offset",)
    shared_attributes: tuple[str, ...] = ()
    cache_protocol: tuple[str, ...] = ()
    python: Path | None = None
    mlx_lm: str | None = None
    unsafe_fixes: bool = False


def find(start: Path) -> Config:
    """Return the configuration for `start`, a file or a folder; the default one if there is none.

    The root of the default one is the working directory if `start` lies below it.
    Raises ConfigError for a file that is not TOML, an unknown key or a wrong type.
    """
    folder = start if start.is_dir() else start.parent
    for place in (folder, *folder.parents):
        config = _read(place / "pyproject.toml")
        if config is not None:
            return config
    here = Path.cwd()
    return Config(here if here in folder.parents else folder)


def load_toml(path: Path, data: bytes) -> dict[str, Any]:
    """Parse TOML. Raises ConfigError, one line with the place of the error."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: is not UTF-8, which TOML has to be") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: is not valid TOML: {error}") from None


def line_of(data: bytes, key: str) -> int | None:
    """Return the line (from 1) on which a TOML text sets `key`, as far as text can tell."""
    pattern = rf"""^\s*(?:[\w.-]+\.)?["']?{re.escape(key)}["']?\s*="""
    lines = data.decode("utf-8", "replace").splitlines()
    return next((n for n, line in enumerate(lines, 1) if re.match(pattern, line)), None)


def _read(path: Path) -> Config | None:
    """Return the configuration in `path`, None if there is none.

    A file that is not TOML might have one, so it is an error whatever it holds.
    """
    try:
        data = read_bytes(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    tool = load_toml(path, data).get("tool", {})
    if not isinstance(tool, dict):
        raise ConfigError(f"{path}: [tool] must be a table")
    if "aliaslint" not in tool:
        return None
    table = tool["aliaslint"]
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: [{_TABLE}] must be a table")
    return _from_table(path, data, table)


def _from_table(path: Path, data: bytes, table: Mapping[str, Any]) -> Config:
    values: dict[str, Any] = {"root": path.parent, "source": path}
    for key, value in table.items():
        line = line_of(data, key)
        place = f"{path}:{line}" if line else str(path)
        reader = _READERS.get(key)
        if reader is None:
            raise ConfigError(f"{place}: unknown key {key!r} in [{_TABLE}]{_suggest(key)}")
        try:
            values[key.replace("-", "_")] = reader(value)
        except TypeError as error:
            raise ConfigError(f"{place}: {key} must be {error}, not {value!r}") from None
        except ValueError as error:
            raise ConfigError(f"{place}: {key}: {error}") from None
    if (python := values.get("python")) is not None:
        values["python"] = path.parent / Path(python).expanduser()
    if (wanted := values.get("mlx_lm")) is not None and not _is_version(wanted):
        folder = path.parent / Path(wanted).expanduser()
        if not folder.is_dir():
            raise ConfigError(f"{path}: mlx-lm must be a version or a folder; {folder} is neither")
        values["mlx_lm"] = str(folder)
    return Config(**values)


def _suggest(key: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(key.replace("_", "-"), _READERS, n=1)
    known = ", ".join(_READERS)
    return f"; did you mean {close[0]!r}?" if close else f"; the keys are {known}"


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError("a string")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError("true or false")
    return value


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TypeError("a list of strings")
    return tuple(value)


def _patterns(value: object) -> tuple[str, ...]:
    patterns = _texts(value)
    for pattern in patterns:
        _require_pattern(pattern)
    return patterns


def _require_pattern(text: str) -> None:
    """Raise ValueError for what matches nothing, as a line of a `.gitignore`, or is refused."""
    if _SPECIAL.isdisjoint(text):
        return
    from pathspec import GitIgnoreSpec  # Its import costs as much as click's.

    expected = ValueError(f"{text!r} is not a pattern as in a .gitignore")
    if not _CLOSED.fullmatch(text):
        raise expected
    try:
        GitIgnoreSpec.from_lines([text])
    except (ValueError, re.error):
        raise expected from None


def _is_version(text: str) -> bool:
    if not text[0].isdigit():
        return False
    from packaging.version import InvalidVersion, Version

    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def _names(value: object) -> tuple[str, ...]:
    names = _texts(value)
    if not all(name.isidentifier() for name in names):
        raise TypeError("a list of names (offset, lengths, …)")
    return names


def _mapping(value: object) -> dict[str, tuple[str, ...]]:
    expected = TypeError('a table of patterns and lists ("tests/**" = ["AL001"])')
    if not isinstance(value, dict):
        raise expected
    try:
        found = {pattern: _texts(codes) for pattern, codes in value.items()}
    except TypeError:
        raise expected from None
    for pattern in found:
        _require_pattern(pattern.removeprefix("!"))
    return found


_READERS: dict[str, Callable[[object], object]] = {
    "select": _texts,
    "ignore": _texts,
    "extend-select": _texts,
    "exclude": _patterns,
    "extend-exclude": _patterns,
    "per-file-ignores": _mapping,
    "exposed-attributes": _names,
    "shared-attributes": _names,
    "cache-protocol": _names,
    "python": _text,
    "mlx-lm": _text,
    "unsafe-fixes": _flag,
}
KEYS = tuple(_READERS)
