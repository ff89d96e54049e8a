"""Writes a regression test for a fork: captured offsets must survive what its caches do.

The test is plain unittest, which pytest runs too, needs no model and no weights, and fails on
caches that update `offset` in place. Its text is what black makes of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

LINE = 89  # What black leaves on one line, its end included.
HEAD = '''"""Offsets that are captured before an operation of a batched cache keep their value.

A model may hold `cache.offset` while the cache moves on: an update in place would change what it
holds, and batched decoding would go wrong without an error. Made by aliaslint verify --emit-test.
"""

import unittest

import mlx.core as mx

{imports}

PADDING = [2, 0, 1]


def update(cache, length):
    values = mx.ones((cache.offset.shape[0], 2, length, 4))
    cache.update_and_fetch(values, values)


class CapturedOffset(unittest.TestCase):
    def keeps(self, cache, operation):
        held = cache.offset
        before = held.tolist()
        operation()
        self.assertEqual(held.tolist(), before)
'''
TAIL = """

if __name__ == "__main__":
    unittest.main()
"""

# What each test does with a cache; the key is the method that the class must have.
OPERATIONS: Mapping[str, str] = {
    "update_and_fetch": """\
    def test_{name}_prefill(self):
{cache}        self.keeps(cache, lambda: update(cache, 5))

    def test_{name}_decode(self):
{cache}        update(cache, 5)
        self.keeps(cache, lambda: update(cache, 1))
""",
    "roll": """\
    def test_{name}_roll(self):
{cache}        update(cache, 5)
        for _ in range(8):
            self.keeps(cache, lambda: update(cache, 1))
""",
    "prepare_left": """\
    def test_{name}_prepare(self):
{cache}        self.keeps(cache, lambda: cache.prepare(left_padding=[1, 2, 3]))
""",
    "finalize": """\
    def test_{name}_finalize(self):
{cache}        cache.prepare(lengths=[3, 5, 4], right_padding=[2, 0, 1])
        update(cache, 5)
        self.keeps(cache, cache.finalize)
""",
    "trim": """\
    def test_{name}_trim(self):
{cache}        update(cache, 5)
        self.keeps(cache, lambda: cache.trim(2))
""",
    "filter": """\
    def test_{name}_filter(self):
{cache}        update(cache, 5)
        self.keeps(cache, lambda: cache.filter(mx.array([0, 2])))
        self.keeps(cache, lambda: update(cache, 1))
""",
    "extend": """\
    def test_{name}_extend(self):
{cache}{other}        update(cache, 5)
        update(other, 4)
        self.keeps(other, lambda: cache.extend(other))
        self.keeps(other, lambda: update(cache, 1))
""",
    "merge": """\
    def test_{name}_merge(self):
{cache}        update(cache, 5)
        merged = type(cache).merge([cache.extract(i) for i in range(3)])
        self.keeps(cache, lambda: update(merged, 1))
        self.keeps(merged, lambda: update(merged, 1))
""",
}
NEEDS: Mapping[str, tuple[str, ...]] = {
    "roll": ("update_and_fetch",),
    "finalize": ("finalize", "prepare"),
    "merge": ("merge", "extract"),
}


def regression_test(package: str, classes: Iterable[Mapping[str, Any]]) -> str:
    """The text of the test for the classes of a cache contract that hold an array `offset`.

    Each class has "name", "path", "arguments" and "methods". Returns "" if there is none.
    """
    exposed = [item for item in classes if "offset" in item["attributes"]]
    if not exposed:
        return ""
    body = "\n".join(part for item in exposed for part in _tests(item))
    return HEAD.format(imports=_imports(package, exposed)) + "\n" + body + TAIL


def _imports(package: str, classes: Iterable[Mapping[str, Any]]) -> str:
    names: dict[str, list[str]] = {}
    for item in classes:
        module = ".".join((package, *PurePosixPath(item["path"]).with_suffix("").parts))
        names.setdefault(module, []).append(item["name"])
    return "\n".join(_import(module, sorted(found)) for module, found in sorted(names.items()))


def _import(module: str, names: list[str]) -> str:
    line = f"from {module} import {', '.join(names)}"
    if len(line) < LINE:
        return line
    inner = "".join(f"    {name},\n" for name in names)
    return f"from {module} import (\n{inner})"


def _tests(item: Mapping[str, Any]) -> list[str]:
    methods = set(item["methods"])
    shown = {k: "PADDING" if k == "left_padding" else v for k, v in item["arguments"].items()}
    make = f"{item['name']}({', '.join(f'{k}={v}' for k, v in shown.items())})"
    wanted = [
        operation
        for operation in OPERATIONS
        if methods.issuperset(NEEDS.get(operation, (operation,)))
        and (operation != "roll" or "max_size" in shown)
    ]
    values = {
        "name": _snake(item["name"]),
        "cache": _assignment("cache", make),
        "other": _assignment("other", make),
    }
    return [OPERATIONS[operation].format(**values) for operation in wanted]


def _assignment(variable: str, make: str) -> str:
    """`variable = make` in the lines that black gives it."""
    line = f"        {variable} = {make}\n"
    if len(line) <= LINE:
        return line
    name, _, rest = make.partition("(")
    return f"        {variable} = {name}(\n            {rest[:-1]}\n        )\n"


def _snake(name: str) -> str:
    """`BatchRotatingKVCache` as `batch_rotating_kv_cache`."""
    words = re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+", name)
    return "_".join(word.lower() for word in words)
