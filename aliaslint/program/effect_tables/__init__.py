"""What the cache classes of released packages do to handles, for packages whose source is absent.

A table is data: for each range of releases and each class, its bases and methods, and for each
method what it does to handles, in order. `skeleton` writes the table out as a small Python
module, which the analysis reads like the source of any dependency. The tables are made by
`python -m benchmarks.effect_tables` from real releases; their format is described there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

CACHE_MODULE = "models/cache.py"
_FRESH = {
    "array": "mx.zeros((1,))",
    "scalar": "0",
    "none": "None",
    "list": "[]",
    "range": "range(2)",
    "other": "object()",
}
_HEADER = ("import mlx.core as mx", "_either = len(__name__) > 0")


def known(name: str) -> bool:
    """Whether there is a table for the package of this import name."""
    return _path(name, "releases.json").is_file()


def _path(name: str, suffix: str) -> Path:
    return Path(__file__).parent / f"{name}.{suffix}"


@cache
def facts(name: str) -> Mapping[str, Mapping[str, Any]]:
    """Return what is known of each release, lowest first; nothing without a table."""
    if not known(name):
        return {}
    content: Mapping[str, Mapping[str, Any]] = json.loads(_path(name, "releases.json").read_bytes())
    return content


@cache
def table(name: str) -> Mapping[str, list[dict[str, Any]]]:
    """Return the definitions of each module of a package. Raises KeyError without a table."""
    if not known(name):
        raise KeyError(name)
    content: Mapping[str, list[dict[str, Any]]] = json.loads(_path(name, "json").read_bytes())
    return content


def releases(name: str) -> tuple[str, ...]:
    """Return the releases that the table was made from, lowest first; none without a table."""
    return tuple(facts(name))


def nearest(name: str, version: str) -> str:
    """Return the release whose effects stand for `version`: the last one that is not newer.

    A version older than the whole table gets the first release.
    """
    from packaging.version import InvalidVersion, Version

    every = releases(name)
    try:
        wanted = Version(version)
    except InvalidVersion:
        return every[-1]
    older = [release for release in every if Version(release) <= wanted]
    return older[-1] if older else every[0]


def batched(name: str, version: str) -> bool:
    """Whether the release has caches for batches: an `offset` that its constructor makes an array.

    Earlier releases hold only plain ones, against which no capture can be stale.
    """
    return bool(facts(name)[nearest(name, version)]["batched"])


def distinct(name: str, versions: Sequence[str]) -> list[str]:
    """Return the first of each run of versions that have the same effects, in the given order."""
    found: list[str] = []
    previous: list[list[dict[str, Any]]] = []
    for version in versions:
        entries = [_definitions(name, version, module) for module in table(name)]
        if entries != previous:
            found.append(version)
        previous = entries
    return found


def requirement(name: str, version: str, of: str = "mlx") -> str:
    """Return the specifier that the release declares for `of` (">=0.31.2"), "" if it has none."""
    return str(facts(name)[nearest(name, version)].get(of, ""))


def skeletons(name: str, version: str) -> dict[str, str]:
    """Return a Python text for each module of the table, by its path inside the package."""
    return {
        module: _module(name, version, module)
        for module in table(name)
        if _definitions(name, version, module)
    }


def skeleton(name: str, version: str) -> str:
    """Return the text that stands for the package's cache module, `models/cache.py`.

    What changes a handle stands on the line on which it stands in the release, so that a trace
    names lines that can be looked up. Raises KeyError if there is no table for the package.
    """
    return _module(name, version, CACHE_MODULE)


def nodes(entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the parts of a definition that have a line, in order: itself, methods, steps."""
    yield entry
    for method in entry["methods"].values() if "methods" in entry else [entry]:
        if method is not entry:
            yield method
        yield from _steps(method["body"])


def _steps(body: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for step in body:
        yield step
        for branch in step.get("branch", ()):
            yield from _steps(branch)
        yield from _steps(step.get("loop", ()))


def lines_of(entry: Mapping[str, Any], version: str, versions: Sequence[str]) -> list[int]:
    """Return the lines of a definition's parts in a release, in the order of `nodes`.

    For a release that the definition does not know yet, those of its last one.
    """
    found: list[int] = []
    for release in versions:
        known_lines = entry["lines"].get(release)
        if isinstance(known_lines, list):
            found = known_lines
        elif known_lines is not None:
            found = [line + known_lines for line in found]
        if release == version:
            break
    return found


def _definitions(name: str, version: str, module: str) -> list[dict[str, Any]]:
    """Return the definitions that a module has in a release."""
    every = releases(name)
    index = every.index(nearest(name, version))
    return [
        entry
        for entry in table(name).get(module, [])
        if every.index(entry["first"]) <= index <= every.index(entry["last"])
    ]


@dataclass(frozen=True, slots=True)
class _Row:
    """A line of text and where it stands in the release, 0 where it has no place of its own."""

    line: int
    indent: int
    text: str

    @property
    def simple(self) -> bool:
        """Whether it may share a line with another statement."""
        return not self.text.endswith(":") and not self.text.startswith("@")


def _module(name: str, version: str, module: str) -> str:
    every = releases(name)
    rows = [_Row(number, 0, text) for number, text in enumerate(_HEADER, start=1)]
    placed = []
    for entry in _definitions(name, version, module):
        lines = lines_of(entry, nearest(name, version), every)
        own = deepcopy(entry)
        for node, line in zip(nodes(own), lines, strict=True):
            node["line"] = line
        placed.append(own)
    for entry in sorted(placed, key=lambda entry: int(entry["line"])):
        rows += _class(entry) if "methods" in entry else _function(entry["name"], entry, 0)
    return _laid_out(rows)


def _laid_out(rows: Sequence[_Row]) -> str:
    """Put rows on their lines; one that is late goes on the next line, or shares one."""
    lines: list[str] = []
    last: _Row | None = None
    for row in rows:
        same = last is not None and last.simple and row.simple and last.indent == row.indent
        if same and row.line and row.line <= len(lines):
            lines[-1] += f"; {row.text}"
        else:
            lines += [""] * (row.line - 1 - len(lines))
            lines.append("    " * row.indent + row.text)
        last = row
    return "\n".join(lines) + "\n"


def _class(entry: Mapping[str, Any]) -> Iterator[_Row]:
    bases = f"({', '.join(entry['bases'])})" if entry["bases"] else ""
    yield _Row(entry["line"], 0, f"class {entry['name']}{bases}:")
    for attribute, kind in entry["attributes"].items():
        yield _Row(0, 1, f"{attribute} = {_FRESH[kind]}")
    for key, method in entry["methods"].items():
        yield from _function(key.partition(":")[0], method, 1)
    if not entry["methods"] and not entry["attributes"]:
        yield _Row(0, 1, "pass")


def _function(name: str, method: Mapping[str, Any], indent: int) -> Iterator[_Row]:
    decorators = {"property": "property", "setter": f"{name}.setter"}
    role, line = method["role"], method["line"]
    if role:
        yield _Row(line - 1, indent, f"@{decorators.get(role, role)}")
    yield _Row(line, indent, f"def {name}({', '.join(method['parameters'])}):")
    yield from _body(method["body"], indent + 1)


def _body(steps: Sequence[Mapping[str, Any]], indent: int) -> Iterator[_Row]:
    if not steps:
        yield _Row(0, indent, "pass")
    for step in steps:
        yield from _step(step, indent)


def _step(step: Mapping[str, Any], indent: int) -> Iterator[_Row]:
    line = step["line"]
    match step:
        case {"branch": [first, second]}:
            yield _Row(line, indent, "if _either:")
            yield from _body(first, indent + 1)
            if second:
                yield _Row(0, indent, "else:")
                yield from _body(second, indent + 1)
        case {"loop": steps, "over": over, "variable": variable}:
            yield _Row(line, indent, f"for {variable} in {_value(over)}:")
            yield from _body(steps, indent + 1)
        case _:
            yield _Row(line, indent, _statement(step))


def _statement(step: Mapping[str, Any]) -> str:
    match step:
        case {"inplace": place, "operator": operator}:
            return f"{_value(place)} {operator} 1"
        case {"item": base, "whole": whole, "value": value}:
            return f"{_value(base)}[{'...' if whole else 0}] = {_value(value)}"
        case {"rebind": place, "value": value}:
            return f"{_value(place)} = {_value(value)}"
        case {"let": name, "value": value}:
            return f"{name} = {_value(value)}"
        case {"call": _}:
            return _value(step)
        case {"return": value}:
            return f"return {_value(value)}"
        case {"raise": True}:
            return "raise ValueError"
    raise ValueError(f"the effect table has an unknown step: {step}")


def _value(value: Any) -> str:
    match value:
        case {"fresh": kind}:
            return _FRESH[kind]
        case {"name": name}:
            return str(name)
        case {"attribute": attribute, "of": of}:
            return f"{_value(of)}.{attribute}"
        case {"element": of, "index": {"name": index}} | {"element": of, "index": index}:
            return f"{_value(of)}[{index}]"
        case {"tuple": parts}:
            return f"({', '.join(map(_value, parts))}{',' * (len(parts) == 1)})"
        case {"list": part}:
            return f"[{_value(part)}]"
        case {"each": part, "over": over, "variable": variable}:
            return f"[{_value(part)} for {variable} in {_value(over)}]"
        case {"either": parts}:
            *first, last = map(_value, parts)
            return "".join(f"({part} if _either else " for part in first) + last + ")" * len(first)
        case {"star": part}:
            return f"*{_value(part)}"
        case {"call": name, "of": of, "arguments": arguments}:
            on = f"{_value(of)}." if of else ""
            return f"{on}{name}({', '.join(map(_argument, arguments))})"
        case _:
            raise ValueError(f"the effect table has an unknown value: {value}")


def _argument(argument: Mapping[str, Any]) -> str:
    match argument:
        case {"keyword": "**", "value": value}:
            return f"**{_value(value)}"
        case {"keyword": keyword, "value": value}:
            return f"{keyword}={_value(value)}"
        case _:
            return _value(argument)
