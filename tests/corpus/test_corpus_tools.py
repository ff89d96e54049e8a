"""The measuring tools measure what they say: labels, sites, mutants."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.accuracy import capture_sites, mutate, packages, score
from benchmarks.accuracy.layers import LAYER_SHAPES, layer_mutants
from benchmarks.accuracy.rewrites import rewritten
from benchmarks.accuracy.shapes import SHAPES
from benchmarks.fix_releases.__main__ import BEHAVIOUR, Row, batches, judged

ATTENTION = """\
import mlx.core as mx

class Attention:
    def __call__(self, x, mask=None, cache=None):
        q, k, v = self.q(x), self.k(x), self.v(x)
        if cache is not None:
            q = self.rope(q, offset=cache.offset)
            k = self.rope(k, offset=cache.offset)
            k, v = cache.update_and_fetch(k, v)
        return self.o(attend(q, k, v))

class Block:
    def __init__(self):
        self.attn = Attention()

    def __call__(self, x, mask=None, cache=None):
        r = self.attn(x, mask, cache)
        return x + r

class Model:
    def __call__(self, x, cache=None):
        cache = cache or [None] * len(self.layers)
        for layer, c in zip(self.layers, cache):
            x = layer(x, None, c)
        return x
"""
CAPTURED = """\
import mlx.core as mx

class Attention:
    def __call__(self, q, k, v, cache):
        position = cache.offset
        k = self.rope(k, offset=position)
        q = self.rope(q, offset=position)
        k, v = cache.update_and_fetch(k, v)
        return attend(q, k, v)
"""
by_name = {shape.name: shape for shape in SHAPES}


def lines_of(text: str, part: str) -> list[int]:
    return [number for number, line in enumerate(text.splitlines(), 1) if part in line]


def test_the_plain_mutant_rotates_the_queries_after_the_update() -> None:
    mutant = mutate.apply(by_name["plain"], ATTENTION, "models/a.py")
    assert mutant is not None
    body = [line.strip() for line in mutant.text.splitlines()]
    start = body.index("mutant_capture = cache.offset")
    assert body[start : start + 4] == [
        "mutant_capture = cache.offset",
        "k = self.rope(k, offset=cache.offset)",
        "k, v = cache.update_and_fetch(k, v)",
        "q = self.rope(q, offset=mutant_capture)",
    ]
    assert mutant.lines == (start + 1,)


@pytest.mark.parametrize("shape", [shape.name for shape in SHAPES])
def test_a_mutant_and_its_twin_differ_only_by_the_copy(shape: str) -> None:
    mutant = mutate.apply(by_name[shape], ATTENTION, "models/a.py")
    twin = mutate.apply(by_name[shape], ATTENTION, "models/a.py", twin=True)
    assert mutant is not None
    assert twin is not None
    pairs = zip(mutant.text.splitlines(), twin.text.splitlines(), strict=True)
    changed = [(one, other) for one, other in pairs if one != other]
    assert len(changed) == 1
    assert "mx.array(" in changed[0][1]
    assert "mx.array(" not in changed[0][0]


@pytest.mark.parametrize("shape", list(LAYER_SHAPES))
def test_a_mutant_over_layers_marks_its_capture(shape: str) -> None:
    [(name, text)] = layer_mutants(ATTENTION, shape, twin=False)
    assert name == shape
    assert mutate.capture_lines(text)[0] in lines_of(text, "mutant_capture =")
    assert "mutant_offset=mutant_offset" in text


def test_a_moved_rotation_stands_behind_the_update() -> None:
    [(_, text)] = rewritten(CAPTURED, "moved-rotation", twin=False)
    [update] = lines_of(text, "update_and_fetch")
    assert lines_of(text, "q = self.rope(q") == [update + 1]


def test_a_file_without_the_usual_lines_has_no_mutant() -> None:
    assert mutate.apply(by_name["plain"], "x = 1\n", "models/a.py") is None
    assert list(layer_mutants("x = 1\n", "down", twin=False)) == []


def test_the_labelled_sites_hold_two_stale_captures() -> None:
    sites = capture_sites.read_sites()
    stale = [(site.file, site.line) for site in sites if site.stale]
    assert stale == [("bailing_moe_linear.py", 500), ("gemma3n.py", 138)]


def test_a_score_names_what_is_missed_wrong_and_unlabelled() -> None:
    sites = [
        capture_sites.Site("a.py", 1, "f", "c.offset", True, ""),
        capture_sites.Site("a.py", 2, "f", "c.offset", True, ""),
        capture_sites.Site("a.py", 3, "f", "c.offset", False, ""),
    ]
    result = capture_sites.score(sites, {("a.py", 2), ("a.py", 3), ("b.py", 9)})
    assert [site.line for site in result.missed] == [1]
    assert [site.line for site in result.wrong] == [3]
    assert result.unlabelled == ("models/b.py:9",)


def test_every_label_belongs_to_a_listed_package_and_names_its_place_once() -> None:
    for package in packages.read_packages():
        places = [label.place for label in score.read_labels(package)]
        assert len(places) == len(set(places))
        assert all(path.startswith(f"{package.import_name}/") for path, _, _ in places)


def test_mutants_are_programs() -> None:
    for shape in SHAPES:
        mutant = mutate.apply(shape, ATTENTION, "models/a.py")
        assert mutant is not None
        ast.parse(mutant.text)


TREE = {
    "imports": {"pkg": "ok", "pkg.cache": "ok"},
    "caches": {"BatchKVCache": [1]},
    "models": {"llama": {"alone": ["1 2"], "batch": ["1 2"]}},
}


def test_a_fixed_release_that_does_what_it_did_passes() -> None:
    row = judged(Row("pkg 1", fixed=2), TREE, TREE)

    assert row.wrong == ()
    assert (row.imports, row.caches, row.batch) == ("2 of 2", "BatchKVCache", "llama =")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"imports": {"pkg": "ok", "pkg.cache": "ERROR: TypeError: x"}},
            "pkg.cache cannot be imported any more: ERROR: TypeError: x",
        ),
        ({"caches": {"BatchKVCache": [2]}}, "the caches give back something else"),
        (
            {"models": {"llama": {"alone": ["1 3"], "batch": ["1 2"]}}},
            "llama generates something else",
        ),
        ({"models": {"llama": {"alone": ["1 2"], "batch": ["1 3"]}}}, "llama: batch =→≠!"),
        ({"models": {"llama": "ERROR: TypeError: x"}}, "llama generates something else"),
    ],
)
def test_a_fixed_release_that_does_something_else_is_wrong(
    change: dict[str, object], reason: str
) -> None:
    assert judged(Row("pkg 1"), TREE, {**TREE, **change}).wrong == (reason,)


def test_a_release_whose_models_cannot_be_made_is_wrong() -> None:
    tree = {**TREE, "models": {"llama": "ERROR: TypeError: x"}}

    assert judged(Row("pkg 1"), tree, tree).wrong == ("llama was not tried: ERROR: TypeError: x",)


@pytest.mark.slow
def test_the_tiny_models_of_the_installed_release_can_be_made() -> None:
    package = pytest.importorskip("mlx_lm")
    root = Path(package.__file__).parents[1]
    command = [sys.executable, BEHAVIOUR, root, "mlx_lm"]

    done = subprocess.run(command, capture_output=True, text=True, check=True)

    models = json.loads(done.stdout.splitlines()[-1])["models"]
    assert {"llama", "gemma3_text", "gemma3n"} == set(models)
    for made in models.values():
        assert made["batch"] == made["alone"]


def test_a_release_with_a_safe_fix_left_is_wrong() -> None:
    assert judged(Row("pkg 1", left=3, safe_left=1), TREE, TREE).wrong == ("1 safe fixes left",)


def test_a_batch_may_only_change_to_what_its_prompts_give_alone() -> None:
    right, other = {"alone": ["1"], "batch": ["1"]}, {"alone": ["1"], "batch": ["2"]}
    worse = {"alone": ["1"], "batch": ["3"]}

    assert batches(other, right) == "≠→="
    assert batches(right, other) == "=→≠!"
    assert batches(other, worse) == "≠→≠!"
    assert batches(other, other) == "≠"
