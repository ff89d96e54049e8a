"""The regression test that is written for a fork."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from aliaslint.verify.emit import regression_test

LONG = "AnExtraordinarilyLongNameOfABatchedRotatingKVCache"


def cache_class(name: str, **values: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "name": name,
        "path": "models/cache.py",
        "attributes": ["left_padding", "offset"],
        "arguments": {"left_padding": [2, 0, 1]},
        "methods": ["update_and_fetch", "trim"],
    }
    return {**base, **values}


def written_in(text: str) -> list[str]:
    lines = [line.strip() for line in text.splitlines()]
    return [line[8:].partition("(")[0] for line in lines if line.startswith("def test_")]


def test_each_method_of_a_class_has_its_tests() -> None:
    text = regression_test("pkg", [cache_class("BatchKVCache")])
    assert written_in(text) == [
        "_batch_kv_cache_prefill",
        "_batch_kv_cache_decode",
        "_batch_kv_cache_trim",
    ]
    assert "\nfrom pkg.models.cache import BatchKVCache\n" in text


def test_rotating_cache_is_rolled() -> None:
    made = {"max_size": 8, "left_padding": [2, 0, 1]}
    text = regression_test("pkg", [cache_class("R", arguments=made, methods=["update_and_fetch"])])
    assert written_in(text) == ["_r_prefill", "_r_decode", "_r_roll"]


def test_class_without_an_array_offset_has_none() -> None:
    assert regression_test("pkg", [cache_class("ArraysCache", attributes=["lengths"])]) == ""


@pytest.mark.parametrize("name", ["BatchKVCache", LONG])
def test_text_is_what_black_makes_of_it(name: str) -> None:
    black = pytest.importorskip("black")
    made = {"max_size": 8, "left_padding": [2, 0, 1]}
    every = [
        "update_and_fetch",
        "prepare",
        "prepare_left",
        "finalize",
        "trim",
        "filter",
        "extend",
        "extract",
    ]
    classes = [cache_class(name, arguments=made, methods=[*every, "merge"]), cache_class("Other")]
    text = regression_test("pkg", classes)
    assert black.format_str(text, mode=black.Mode()) == text


@pytest.mark.slow
@pytest.mark.parametrize(("in_place", "status"), [(True, 1), (False, 0)])
def test_it_fails_on_caches_that_update_in_place(
    tmp_path: Path, in_place: bool, status: int
) -> None:
    pytest.importorskip("mlx.core")
    from aliaslint.cli.verify import command

    source = Path(__file__).parent / "trees" / "tinylm" / "models" / "cache.py"
    text = source.read_text(encoding="utf-8")
    if not in_place:
        for sign in "+-":
            text = text.replace(f"self.offset {sign}= ", f"self.offset = self.offset {sign} ")
    models = tmp_path / "tinylm" / "models"
    models.mkdir(parents=True)
    (models / "cache.py").write_text(text, encoding="utf-8")
    written = tmp_path / "test_captured.py"
    done = CliRunner().invoke(command, [str(tmp_path), "--emit-test", str(written)])
    assert done.output == f"Wrote 6 tests to {written}.\n"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-m", "unittest", "test_captured"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        check=False,
    )
    assert run.returncode == status
