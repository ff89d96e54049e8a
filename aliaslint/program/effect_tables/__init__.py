"""What the cache classes of released packages do to handles, for packages whose source is absent.

A table is data: for each range of releases and each class, its bases and methods, and for each
method what it does to handles, in order. `skeleton` writes the table out as a small Python
module, which the analysis reads like the source of any dependency. The tables are made by
`python -m benchmarks.effect_tables` from real releases; their format is described there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
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
_HEADER = """\
import mlx.core as mx

_either = len(__name__) > 0
"""


def known(name: str) -> bool:
    """Whether there is a table for the package of this import name."""
    return (Path(__file__).parent / f"{name}.json").is_file()


@cache
def table(name: str) -> Mapping[str, Any]:
    """Return the table of a package. Raises KeyError if there is none."""
    if not known(name):
        raise KeyError(name)
    path = Path(__file__).parent / f"{name}.json"
    content: Mapping[str, Any] = json.loads(path.read_bytes())
    return content


@cache
def releases(name: str) -> tuple[str, ...]:
    """Return the releases that the table was made from, lowest first; none without a table."""
    return tuple(table(name)["releases"]) if known(name) else ()


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
    return any(
        _makes_array(method["body"], "offset")
        for entry in _definitions(name, version, CACHE_MODULE)
        for key, method in entry.get("methods", {}).items()
        if key == "__init__"
    )


def distinct(name: str, versions: Sequence[str]) -> list[str]:
    """Return the first of each run of versions that have the same effects, in the given order."""
    found: list[str] = []
    previous: list[list[dict[str, Any]]] = []
    for version in versions:
        entries = [_definitions(name, version, module) for module in table(name)["modules"]]
        if entries != previous:
            found.append(version)
        previous = entries
    return found


def requirement(name: str, version: str, of: str = "mlx") -> str:
    """Return the specifier that the release declares for `of` (">=0.31.2"), "" if it has none."""
    entry: Mapping[str, str] = table(name)["releases"][nearest(name, version)]
    return entry.get(of, "")


def skeletons(name: str, version: str) -> dict[str, str]:
    """Return a Python text for each module of the table, by its path inside the package."""
    return {
        module: _module(name, version, module)
        for module in table(name)["modules"]
        if _definitions(name, version, module)
    }


def skeleton(name: str, version: str) -> str:
    """Return the text that stands for the package's cache module, `models/cache.py`.

    Raises KeyError if there is no table for the package.
    """
    return _module(name, version, CACHE_MODULE)


def _definitions(name: str, version: str, module: str) -> list[dict[str, Any]]:
    """Return the definitions of a module in the order of the file."""
    release = nearest(name, version)
    every = releases(name)
    index = every.index(release)
    return [
        entry
        for entry in table(name)["modules"].get(module, [])
        if every.index(entry["first"]) <= index <= every.index(entry["last"])
    ]


def _makes_array(body: Sequence[Mapping[str, Any]], attribute: str) -> bool:
    return any(
        step.get("rebind", {}).get("attribute") == attribute and step["value"] == {"fresh": "array"}
        for step in body
    )


def _module(name: str, version: str, module: str) -> str:
    parts = [_HEADER]
    for entry in _definitions(name, version, module):
        lines = _class(entry) if "methods" in entry else _function(entry["name"], entry, "")
        parts.append("\n".join(lines) + "\n")
    return "\n\n".join(parts)


def _class(entry: Mapping[str, Any]) -> Iterator[str]:
    bases = ", ".join(entry["bases"])
    yield f"class {entry['name']}({bases}):" if bases else f"class {entry['name']}:"
    for attribute, kind in entry["attributes"].items():
        yield f"    {attribute} = {_FRESH[kind]}"
    for key, method in entry["methods"].items():
        yield from _function(key.partition(":")[0], method, "    ")
    if not entry["methods"] and not entry["attributes"]:
        yield "    pass"


def _function(name: str, facts: Mapping[str, Any], indent: str) -> Iterator[str]:
    decorators = {"property": "property", "setter": f"{name}.setter"}
    role = facts.get("role", "")
    if role:
        yield f"{indent}@{decorators.get(role, role)}"
    yield f"{indent}def {name}({', '.join(facts['parameters'])}):"
    yield from _body(facts["body"], indent + "    ")


def _body(steps: Sequence[Mapping[str, Any]], indent: str) -> Iterator[str]:
    if not steps:
        yield f"{indent}pass"
    for step in steps:
        yield from _step(step, indent)


def _step(step: Mapping[str, Any], indent: str) -> Iterator[str]:
    match step:
        case {"inplace": place, "operator": operator}:
            yield f"{indent}{_value(place)} {operator} 1"
        case {"item": base, "whole": whole, "value": value}:
            yield f"{indent}{_value(base)}[{'...' if whole else 0}] = {_value(value)}"
        case {"rebind": place, "value": value}:
            yield f"{indent}{_value(place)} = {_value(value)}"
        case {"let": name, "value": value}:
            yield f"{indent}{name} = {_value(value)}"
        case {"call": _}:
            yield f"{indent}{_value(step)}"
        case {"return": value}:
            yield f"{indent}return {_value(value)}"
        case {"raise": True}:
            yield f"{indent}raise ValueError"
        case {"branch": [first, second]}:
            yield f"{indent}if _either:"
            yield from _body(first, indent + "    ")
            if second:
                yield f"{indent}else:"
                yield from _body(second, indent + "    ")
        case {"loop": steps, "over": over, "variable": variable}:
            yield f"{indent}for {variable} in {_value(over)}:"
            yield from _body(steps, indent + "    ")
        case _:
            raise ValueError(f"the effect table has an unknown step: {step}")


def _value(value: Any) -> str:
    match value:
        case {"fresh": kind}:
            return _FRESH[kind]
        case {"name": name}:
            return str(name)
        case {"attribute": attribute, "of": of}:
            return f"{_value(of)}.{attribute}"
        case {"element": of, "index": index}:
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
