"""`aliaslint doctor`: what it shows, and its exit status."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner, Result

mx = pytest.importorskip("mlx.core")

from aliaslint.cli.main import cli  # noqa: E402
from aliaslint.errors import UserError  # noqa: E402
from aliaslint.verify import cache_probe, diagnosis, rope_kernels  # noqa: E402

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "schema" / "doctor.json"


class InPlace:
    """A batched cache that moves its offset in place."""

    def __init__(self, padding: list[int]) -> None:
        self.left_padding = mx.array(padding)
        self.offset = mx.array([-p for p in padding])

    def update_and_fetch(self, keys: Any, values: Any) -> Any:
        self.offset += keys.shape[2]
        return keys, values

    def trim(self, n: int) -> int:
        self.offset -= n
        return n


class Rebinding(InPlace):
    """A batched cache that gives its offset a new array."""

    def update_and_fetch(self, keys: Any, values: Any) -> Any:
        self.offset = self.offset + keys.shape[2]
        return keys, values

    def trim(self, n: int) -> int:
        self.offset = self.offset - n
        return n


def module_with(cache: type) -> ModuleType:
    module = ModuleType("cache")
    module.BatchKVCache = cache  # type: ignore[attr-defined]
    return module


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["doctor", *arguments], standalone_mode=False)


@pytest.fixture
def healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mx.fast, "rope", rope_kernels.rope)
    monkeypatch.setattr(cache_probe, "probe_installed", list)


@pytest.fixture
def defective(healthy: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mx.fast, "rope", rope_kernels.single_token_defect)


def test_healthy_environment_exits_zero(healthy: None) -> None:
    assert run().return_value == 0


def test_defective_kernel_exits_one(defective: None) -> None:
    assert run().return_value == 1


def test_defective_kernel_is_explained_on_one_screen(defective: None) -> None:
    output = run().output
    assert "single-token" in output
    assert "ml-explore/mlx#3498" in output
    assert "MLX 0.32.0 is the first good version" in output
    assert len(output.splitlines()) <= 24


def test_failing_calls_are_tabled_with_rank_batch_and_length(defective: None) -> None:
    rows = [line.split() for line in run().output.splitlines()]
    assert ["int", "3", "3", "1", "contiguous", "1,2"] in [row[:6] for row in rows]


@pytest.mark.parametrize("kernel", ["rope", "single_token_defect", "one_element_offset_defect"])
def test_json_follows_the_schema(
    healthy: None, monkeypatch: pytest.MonkeyPatch, kernel: str
) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    monkeypatch.setattr(mx.fast, "rope", getattr(rope_kernels, kernel))
    document = json.loads(run("--output-format", "json").output)
    jsonschema.validate(document, json.loads(SCHEMA.read_text()))
    assert document["ok"] is (kernel == "rope")


def test_json_has_every_failing_call(defective: None) -> None:
    document = json.loads(run("--output-format", "json").output)
    (pattern,) = document["rope"]["patterns"]
    assert {call["length"] for call in pattern["mismatches"]} == {1}
    assert len(pattern["mismatches"]) == 408


def test_cache_probe_sees_an_in_place_update() -> None:
    changed = {
        (h.attribute, h.operation) for h in cache_probe.probe(module_with(InPlace)) if h.changed
    }
    operations = ("prefill", "decode", "decode of a full window", "trim")
    assert changed == {("offset", operation) for operation in operations}


def test_cache_probe_sees_that_rebinding_keeps_what_is_held() -> None:
    assert not any(h.changed for h in cache_probe.probe(module_with(Rebinding)))


def test_cache_probe_of_a_module_without_batched_caches_is_empty() -> None:
    assert cache_probe.probe(ModuleType("cache")) == []


def test_in_place_caches_without_known_captures_are_a_warning(
    healthy: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = cache_probe.probe(module_with(InPlace))
    monkeypatch.setattr(cache_probe, "probe_installed", lambda: found)
    monkeypatch.setattr(diagnosis, "stale_captures", lambda version: ())
    result = run()
    assert result.return_value == 0
    assert "warning: mlx-lm" in result.output


def test_in_place_caches_with_known_captures_exit_one(
    healthy: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = cache_probe.probe(module_with(InPlace))
    monkeypatch.setattr(cache_probe, "probe_installed", lambda: found)
    monkeypatch.setattr(diagnosis, "stale_captures", lambda version: ("models/a.py:3",))
    result = run()
    assert result.return_value == 1
    assert "models/a.py:3" in result.output


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ImportError("no module named x"), "imported: no module named x"),
        (ZeroDivisionError("division by zero"), "imported: ZeroDivisionError: division by zero"),
    ],
    ids=["missing", "raises"],
)
def test_broken_mlx_lm_is_a_warning(
    healthy: None, monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str
) -> None:
    def broken() -> list[cache_probe.Held]:
        raise error

    monkeypatch.setattr(cache_probe, "probe_installed", broken)
    result = run()
    assert (result.return_value, reason in result.output) == (0, True)


def test_probing_the_installed_mlx_lm_leaves_no_stub_behind() -> None:
    import sys

    pytest.importorskip("mlx_lm")
    before = sys.modules["mlx_lm"]
    assert cache_probe.probe_installed() != []
    assert sys.modules["mlx_lm"] is before


def test_environment_without_mlx_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "mlx.core", None)
    result = run()
    assert "aliaslint[verify]" in str(result.exception)


def test_mlx_that_holds_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    import mlx

    monkeypatch.setitem(sys.modules, "mlx.core", ModuleType("mlx.core"))
    monkeypatch.setattr(mlx, "core", sys.modules["mlx.core"])
    result = run()
    assert isinstance(result.exception, UserError)
    assert "cannot be imported here (AttributeError: " in str(result.exception)
