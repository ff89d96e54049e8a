"""The whole way on a small package, with the real analysis and the real fixer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_tools import run, write

CACHE = """\
import mlx.core as mx


class PlainCache:
    def __init__(self):
        self.offset = 0

    def update_and_fetch(self, keys, values):
        self.offset += keys.shape[2]
        return keys, values


class BatchCache:
    def __init__(self, left_padding):
        self._idx = 0
        self.offset = mx.array([-p for p in left_padding])

    def update_and_fetch(self, keys, values):
        self._idx += keys.shape[2]
        self.offset += keys.shape[2]  # one step on
        return keys, values
"""
MODEL = """\
class Attention:
    def __init__(self, rope):
        self.rope = rope

    def __call__(self, x, cache):
        offset = cache.offset
        keys, values = cache.update_and_fetch(x, x)
        return self.rope(x, offset=offset) @ keys
"""
FIXED = CACHE.replace(
    "self.offset += keys.shape[2]  # one", "self.offset = self.offset + keys.shape[2]  # one"
)


@pytest.fixture
def package(place: Path) -> Path:
    write(place, "pkg/__init__.py", "")
    write(place, "pkg/cache.py", CACHE)
    write(place, "pkg/model.py", MODEL)
    return place / "pkg"


def test_check_finds_the_capture_and_the_update(package: Path) -> None:
    ran = run("check", "pkg", "--output-format", "json")
    findings = json.loads(ran.out)["findings"]
    assert [(f["code"], f["path"], f["line"], f["column"]) for f in findings] == [
        ("AL001", "pkg/cache.py", 20, 9),
        ("AL101", "pkg/model.py", 6, 18),
    ]
    steps = [(step["role"], step["path"], step["line"]) for step in findings[1]["trace"]]
    assert steps == [
        ("capture", "pkg/model.py", 6),
        ("call", "pkg/model.py", 7),
        ("mutation", "pkg/cache.py", 20),
        ("read", "pkg/model.py", 8),
    ]
    assert ran.status == 1


def test_one_file_is_checked_with_the_package_around_it(package: Path) -> None:
    findings = json.loads(run("check", "pkg/model.py", "--output-format", "json").out)["findings"]
    assert [(f["code"], f["path"]) for f in findings] == [("AL101", "pkg/model.py")]


def test_standard_input_is_checked_with_the_package_around_it(package: Path) -> None:
    arguments = ("check", "-", "--stdin-filename", "pkg/model.py", "--output-format", "json")
    write(package, "model.py", "")
    text = "from .cache import BatchCache\n\n\n" + MODEL.replace("cache):", "cache: BatchCache):")
    findings = json.loads(run(*arguments, stdin=text.encode()).out)["findings"]
    assert [(f["code"], f["path"]) for f in findings] == [("AL101", "pkg/model.py")]


def test_fix_rebinds_and_nothing_is_left(package: Path) -> None:
    ran = run("fix", "pkg")
    assert (package / "cache.py").read_text() == FIXED
    assert (package / "model.py").read_text() == MODEL
    assert ran.out == "pkg/cache.py: fixed 1 × AL001\nFixed 1 finding in 1 file.\n"
    assert run("check", "pkg").status == 0


def test_a_second_fix_changes_nothing(package: Path) -> None:
    run("fix", "pkg")
    assert run("fix", "pkg", "--diff").out == ""


def test_a_suppressed_finding_stays(package: Path) -> None:
    text = MODEL.replace("cache.offset\n", "cache.offset  # aliaslint: ignore[AL101] meant\n")
    write(package, "model.py", text)
    assert run("check", "pkg/model.py").status == 0


def test_a_suppression_that_a_fix_made_useless_is_removed(package: Path) -> None:
    write(package.parent, "pyproject.toml", '[tool.aliaslint]\nmlx-lm = "0.32.2"\n')
    text = MODEL.replace("cache.offset\n", "cache.offset  # aliaslint: ignore[AL101] meant\n")
    write(package, "model.py", text)
    assert run("fix", "pkg").status == 0
    assert (package / "model.py").read_text() == MODEL


LOOP = """\
class Model:
    def __init__(self, rope):
        self.layers = [Attention(rope) for _ in range(3)]

    def __call__(self, x, cache):
        for i, layer in enumerate(self.layers):
            x = layer(x, cache[self.index[i]])
        return x
"""


def test_a_rebinding_cache_does_not_make_an_int_of_another_class_an_array(package: Path) -> None:
    write(package, "cache.py", FIXED)
    write(package, "model.py", f"{MODEL}\n\n{LOOP}")
    ran = run("check", "pkg", "--output-format", "json")
    assert json.loads(ran.out)["findings"] == []
