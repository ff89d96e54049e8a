"""`aliaslint explain PATH:LINE`: how a place is given, what is printed, and wrong use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from cli_tools import run, write
from referencing import Registry
from referencing.jsonschema import DRAFT202012

SCHEMAS = Path(__file__).parents[2] / "docs" / "schema"
CODE = '''\
"""A program."""
import mlx.core as mx


class SlotCache:
    def __init__(self, rows):
        self.offset = mx.array([0] * rows)

    def update_and_fetch(self, k, v):
        self.offset += k.shape[2]
        return k, v


def attend(cache, q, k, v):
    start = cache.offset
    k, v = cache.update_and_fetch(k, v)
    return mystery(q) + start
'''


def validate(document: Any) -> None:
    loaded = [json.loads(path.read_text("utf-8")) for path in SCHEMAS.glob("*.json")]
    resources = [(s["$id"], DRAFT202012.create_resource(s)) for s in loaded if "$id" in s]
    registry: Registry[Any] = Registry().with_resources(resources)
    schema = json.loads((SCHEMAS / "explain.json").read_text("utf-8"))
    jsonschema.Draft202012Validator(schema, registry=registry).validate(document)


def test_a_reported_line(place: Path) -> None:
    write(place, "a.py", CODE)
    ran = run("explain", "a.py:15")
    assert ran.status == 0
    assert ran.out.startswith("a.py:15, in attend\n    15 |     start = cache.offset\n\nverdict\n")
    for line in (
        "  AL101 `start` is the live array of `cache.offset`, not a copy: read after "
        "`self.offset += k.shape[2]` (a.py:10), it has the changed value [stale-capture]",
        "    capture   a.py:15  `cache.offset` takes the live array, not a copy",
        "    mutation  a.py:10  `self.offset += k.shape[2]` changes the array in place",
        "    read      a.py:17  `start` reads the changed value",
        f"  {'cache':<28} of unknown kind, a parameter",
        f"  {'':<28}   an array in SlotCache (a.py:5): updated in place at a.py:10",
        f"  {'start (from here on)':<28} of unknown kind, taken live on line 15",
        f"  {'':<28} the same as `cache.offset`",
    ):
        assert line in ran.out.split("\n")


def test_a_line_that_reads_and_a_call_that_did_not_resolve(place: Path) -> None:
    write(place, "a.py", CODE)
    out = run("explain", "a.py:17").out.split("\n")
    assert "  reads the changed value: part of AL101 at a.py:15:13" in out
    unresolved = "did not resolve: taken to read what it is given, and to update nothing"
    assert f"  {'mystery(q)':<28} {unresolved}" in out
    stale = "stale: `self.offset += k.shape[2]` (a.py:10), through `cache.update_and_fetch(k, v)`"
    assert f"  {'':<28} {stale} (a.py:16)" in out


def test_a_silent_line(place: Path) -> None:
    write(place, "a.py", CODE.replace("self.offset +=", "self.offset = self.offset +"))
    out = run("explain", "a.py:15").out
    assert (
        "  silent: `cache.offset` is the live array, but every update binds a new one to it "
        "(`self.offset = self.offset + k.shape[2]` (a.py:10)): what was taken keeps its value\n"
    ) in out


@pytest.mark.parametrize("name", ["a.py", "with:colon.py", "a.py:3", "folder/a b.py"])
@pytest.mark.parametrize("suffix", [":15", ":15:13"])
def test_places_as_check_prints_them(place: Path, name: str, suffix: str) -> None:
    write(place, name, CODE)
    out = run("explain", f"{name}{suffix}").out
    assert out.startswith(f"{name}:15, in attend\n")


def test_an_absolute_path(place: Path) -> None:
    path = write(place, "a.py", CODE)
    assert run("explain", f"{path}:15").out.startswith("a.py:15, in attend\n")


@pytest.mark.parametrize("line", range(1, len(CODE.split("\n")) + 1))
def test_json_has_the_public_shape(place: Path, line: int) -> None:
    write(place, "a.py", CODE)
    ran = run("explain", f"a.py:{line}", "--output-format", "json")
    if ran.status == 2:
        assert ran.err.startswith("aliaslint: error: a.py: ")
        return
    document = json.loads(ran.out)
    validate(document)
    assert (document["path"], document["line"]) == ("a.py", line)
    assert document["reported"] is (line in (10, 15))


def test_json_of_a_rule(place: Path) -> None:
    document = json.loads(run("explain", "AL101", "--output-format", "json").out)
    validate(document)
    assert document["rule"]["code"] == "AL101"


def test_the_schema_refuses_what_is_not_public_shape(place: Path) -> None:
    write(place, "a.py", CODE)
    document = json.loads(run("explain", "a.py:15", "--output-format", "json").out)
    document["mentions"][0]["kinds"][0]["name"] = "tensor"
    with pytest.raises(jsonschema.ValidationError):
        validate(document)


@pytest.mark.parametrize(
    ("subject", "message"),
    [
        ("a.py:18", "a.py: has no line 18"),
        ("a.py:0", "a.py: has no line 0"),
        ("a.py:3", "a.py: line 3 is empty; the next statement is on line 5"),
        ("a.py:1", "a.py: line 1 is text, not code; the next statement is on line 2"),
        ("a.py", "name a line of the file: aliaslint explain a.py:LINE"),
        ("a.py:", "a.py:: a line number has to follow the file: a.py:LINE"),
        ("gone.py:3", "gone.py: cannot be read: no such file or directory"),
        ("folder", "folder: is a folder; name a line of a file"),
        ("folder:3", "folder: is a folder; name a line of a file"),
        ("broken.py:2", "broken.py:1: invalid syntax: '(' was never closed"),
        ("empty.py:1", "empty.py: has no line 1"),
    ],
)
def test_wrong_use_is_one_line(place: Path, subject: str, message: str) -> None:
    write(place, "a.py", CODE)
    write(place, "folder/b.py", CODE)
    write(place, "broken.py", "x = (\ny\n")
    write(place, "empty.py", "")
    ran = run("explain", subject)
    assert (ran.out, ran.err, ran.status) == ("", f"aliaslint: error: {message}\n", 2)


def test_a_notebook_is_refused(place: Path) -> None:
    write(place, "nb.ipynb", '{"cells": [], "nbformat": 4}\n')
    ran = run("explain", "nb.ipynb:1")
    assert ran.err == (
        "aliaslint: error: nb.ipynb: is a notebook, which is not read: write its code to a Python "
        "file first (jupyter nbconvert --to script)\n"
    )
    assert ran.status == 2


def test_help_has_examples() -> None:
    out = run("explain", "--help").out
    assert "aliaslint explain models/gemma3n.py:138" in out
    assert "Exit status" in out
