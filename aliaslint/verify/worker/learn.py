"""Mends a synthesised configuration by what construction complains about.

Each complaint suggests a few changes; the first one that makes the complaint go away, or gives
place to another, is kept. Only fields that nobody gave are changed.
"""

from __future__ import annotations

import contextlib
import copy
import re
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any

ATTEMPTS = 60
_WRONG_KIND = re.compile(r"'(dict|list|float)' object")
Config = dict[str, Any]
Path = tuple[str, ...]


def learned(
    config: Config,
    attempt: Callable[[Config], Any],
    names: Mapping[str, Any],
    fixed: Mapping[str, Any],
    kinds: list[str],
) -> tuple[Any, Config]:
    """What `attempt` returns for the first configuration that it accepts, and that one.

    `names` are values for known names, `fixed` the values that must stay, `kinds` the layer
    kinds that the module knows. Raises the first error if no change helps.
    """
    try:
        return attempt(config), config
    except Exception as error:
        first, complaint = error, error
    start, left, seen = config, ATTEMPTS, {_text(first)}
    while left:
        for candidate in suggestions(config, complaint, names, fixed, kinds):
            left -= 1
            try:
                return attempt(candidate), candidate
            except Exception as error:
                if _text(error) not in seen and not _WRONG_KIND.search(str(error)):
                    config, complaint = candidate, error
                    seen.add(_text(error))
                    break
            if not left:
                break
        else:
            break
    for candidate in _widened(start, names, fixed):
        with contextlib.suppress(Exception):
            return attempt(candidate), candidate
    raise first


def suggestions(
    config: Config,
    complaint: Exception,
    names: Mapping[str, Any],
    fixed: Mapping[str, Any],
    kinds: list[str],
) -> Iterator[Config]:
    """Changed configurations, the likeliest first."""
    layers = int(names.get("num_hidden_layers", 4))
    free = _likeliest([path for path in _paths(config) if not _has(fixed, path)], complaint)
    text = str(complaint)
    if "million parameters" in text:
        yield from _shrunk(config, names)
    if isinstance(complaint, KeyError) and type(complaint.args[0]) is int:
        yield from _filled(config, free, dict, lambda _: _long_enough([], kinds, layers))
    elif isinstance(complaint, KeyError):
        key = str(complaint.args[0])
        yield from _filled(config, free, dict, lambda old: {**old, key: guess(key, names, layers)})
    if missing := re.search(r"'([\w-]+)' is not in list", text):
        kind = missing[1]
        yield from _filled(config, free, list, lambda old: _containing(kind, old, kinds, layers))
    if isinstance(complaint, IndexError) or "index out of range" in text:
        together = config
        for candidate in _filled(config, free, list, lambda o: _long_enough(o, kinds, layers)):
            together = {**together, **{k: v for k, v in candidate.items() if v != config.get(k)}}
            yield candidate
        yield together
    if "contain" in text:
        keys = re.findall(r"'(\w+)'", text)
        extra = {key: guess(key, names, layers) for key in keys}
        yield from _filled(config, free, dict, lambda old: {**extra, **old})
    if "NoneType" in text:
        table: Callable[[Any], Any] = lambda _: {}  # noqa: E731
        row: Callable[[Any], Any] = lambda _: _long_enough([], kinds, layers)  # noqa: E731
        for change in (row, table) if _wants_list(text) else (table, row):
            yield from _filled(config, free, type(None), change)
        yield from _filled(config, free, type(None), lambda _: 1.0)
    if "'int' object" in text or "type 'int' has no len" in text:
        mentioned = [path for path in free if _word_of(path[-1], text)] or free
        yield from _filled(config, mentioned, int, lambda old: [old] * layers)
    yield from _numbers(config, free, text)
    yield from _unnamed(config, free, names)


def _likeliest(paths: list[Path], complaint: Exception) -> list[Path]:
    """Fields that the complaining lines of source name, before the others."""
    frames = traceback.extract_tb(complaint.__traceback__)[-3:]
    lines = " ".join(frame.line or "" for frame in frames)
    return sorted(paths, key=lambda path: not _word_of(path[-1], lines))


def _wants_list(text: str) -> bool:
    """Whether what met None would have taken a list rather than a table."""
    used = re.search(r"has no attribute '(\w+)'", text)
    if used:
        return hasattr(list, used[1]) and not hasattr(dict, used[1])
    return "iterable" in text or "len()" in text


def guess(key: str, names: Mapping[str, Any], layers: int) -> Any:
    """A value for a key of a nested table that something asked for."""
    if key in names:
        return names[key]
    if key.endswith(("_layers", "_ids", "_idxs")):
        return list(range(1, layers + 1, 2))
    if "theta" in key or "base" in key:
        return names.get("rope_theta", 10000.0)
    if key.endswith("attention"):
        return {}
    if "type" in key:
        return "default"
    if "head_dim" in key or key.endswith("_dim"):
        return names.get("head_dim", 16)
    if key.endswith("heads"):
        return names.get("num_attention_heads", 4)
    if key.endswith(("size", "experts", "kernel", "kernel_size")):
        return 4
    if "factor" in key and key != "factor":
        return names.get(key, 1.0)
    return 1.0


def _filled(
    config: Config, paths: list[Path], kind: type, change: Callable[[Any], Any]
) -> Iterator[Config]:
    """One configuration for each value of a kind, with that value changed."""
    for path in paths:
        old = _get(config, path)
        if type(old) is kind:
            new = change(old)
            if new != old:
                yield _set(config, path, new)


def _containing(kind: str, old: list[Any], kinds: list[str], layers: int) -> list[Any]:
    others = [item for item in (*old, *kinds) if item != kind and isinstance(item, str)]
    pair = [others[0] if others else kind, kind]
    return [pair[i % 2] for i in range(layers)]


def _long_enough(old: list[Any], kinds: list[str], layers: int) -> list[Any]:
    """As many elements as layers: the old ones in turn, or layer kinds, or numbers."""
    pattern = old or kinds or [1]
    return [pattern[i % len(pattern)] for i in range(max(layers, len(old)))]


def _numbers(config: Config, paths: list[Path], text: str) -> Iterator[Config]:
    """Sizes that a complaint mentions by name, halved and doubled; of a division the divisor."""
    text = text.rpartition("divisible by")[2]
    for path in paths:
        old = _get(config, path)
        if type(old) is int and old > 0 and _word_of(path[-1], text):
            for new in (1, 2 * old, old // 2):
                if new and new != old:
                    yield _set(config, path, new)


def _unnamed(config: Config, paths: list[Path], names: Mapping[str, Any]) -> Iterator[Config]:
    """The last resort: small numbers whose meaning nothing tells, set to others."""
    for path in paths:
        old = _get(config, path)
        if type(old) is int and path[-1] not in names and abs(old) < 64:
            for new in (1, 2, 0):
                if new != old:
                    yield _set(config, path, new)


def _widened(
    config: Config, names: Mapping[str, Any], fixed: Mapping[str, Any]
) -> Iterator[Config]:
    """When mending led nowhere: one number whose meaning nothing tells taken for a width.

    A width that is no larger than the number of heads leaves nothing to a head.
    """
    for path in _paths(config):
        old = _get(config, path)
        if type(old) is int and 0 < old < 64 and path[-1] not in names and not _has(fixed, path):
            yield _set(config, path, 16 * old)


def _shrunk(config: Config, names: Mapping[str, Any]) -> Iterator[Config]:
    """Everything that has a small value by its name at once made small, then the rest too.

    Given values are made small as well: a released configuration is no use otherwise.
    """
    width, layers = int(names.get("hidden_size", 64)), int(names.get("num_hidden_layers", 4))
    named, every = config, config
    counts = [_get(config, path) for path in _paths(config) if "layer" in path[-1]]
    lengths = {count for count in counts if type(count) is int}
    for path in _paths(config):
        old = _get(config, path)
        small: Any = _small(path[-1], old, names, width)
        if isinstance(old, list) and len(old) in lengths and len(old) > layers:
            small = _in_turn(old, layers)
        if small is not None:
            every = _set(every, path, small)
            if path[-1] in names or isinstance(old, list):
                named = _set(named, path, small)
    yield named
    yield every


def _small(name: str, old: Any, names: Mapping[str, Any], width: int) -> int | None:
    """A smaller number for a size; None for what is small enough, or is no size."""
    if type(old) is not int or name.endswith(("_id", "_ids")):
        return None
    known = names.get(name)
    if type(known) is int:
        return known if known < old else None
    return width if old > 2 * width else None


def _in_turn(old: list[Any], layers: int) -> list[Any]:
    """A list with an element a layer made shorter, no kind of element lost."""
    kinds = [item for i, item in enumerate(old) if item not in old[:i]]
    return [kinds[i % len(kinds)] for i in range(layers)]


def _word_of(name: str, text: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", text) is not None


def _text(error: Exception) -> str:
    """What the error says, and at which line."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__}: {error} {frames[-1].lineno if frames else 0}"


def _paths(config: Mapping[str, Any], before: Path = ()) -> Iterator[Path]:
    for name, value in config.items():
        yield (*before, name)
        if isinstance(value, dict):
            yield from _paths(value, (*before, name))


def _has(fixed: Mapping[str, Any], path: Path) -> bool:
    value: Any = fixed
    for name in path:
        if not isinstance(value, Mapping) or name not in value:
            return False
        value = value[name]
    return not isinstance(value, Mapping)


def _get(config: Mapping[str, Any], path: Path) -> Any:
    value: Any = config
    for name in path:
        value = value[name]
    return value


def _set(config: Config, path: Path, value: Any) -> Config:
    changed = copy.deepcopy(config)
    inner = changed
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return changed
