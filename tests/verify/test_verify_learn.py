"""Mending configurations by what construction complains about: no MLX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from aliaslint.verify.worker.learn import Config, guess, learned

NAMES = {"num_hidden_layers": 4, "hidden_size": 64, "rope_theta": 10000.0, "vocab_size": 128}
KINDS = ["sliding_attention", "full_attention"]


def mended(
    config: Config, attempt: Callable[[Config], Any], fixed: dict[str, Any] | None = None
) -> Config:
    return learned(config, attempt, NAMES, fixed or {}, KINDS)[1]


def nested_key(config: Config) -> None:
    config["rope"]["rope_theta"]
    config["rope"]["factor"]


def missing_table(config: Config) -> None:
    config["rope_scaling"]["alpha"]


def missing_list(config: Config) -> None:
    list(config["layer_types"])
    config["layer_types"].index("full_attention")


def short_lists(config: Config) -> None:
    [(config["heads"][i], config["widths"][i]) for i in range(4)]


def list_of_numbers(config: Config) -> None:
    len(config["pattern"])


def divisor(config: Config) -> None:
    if config["width"] % config["groups"]:
        raise ValueError("width must be divisible by groups")


def wanted_keys(config: Config) -> None:
    if not {"type", "factor"} <= config["scaling"].keys():
        raise ValueError("scaling must contain keys {'type', 'factor'}")


def offset_below_period(config: Config) -> None:
    kinds = ["attention" if i % 4 == config["attn_offset"] else "mamba" for i in range(4)]
    kinds.index("attention")


def nothing_for_a_head(config: Config) -> None:
    """Each number made smaller gives another complaint that nothing mends."""
    each = config["across"] // config["split"]
    if each < 8 or config["split"] < 4:
        raise ValueError(f"dims must be at least 8 but got {each}")


@pytest.mark.parametrize(
    ("config", "attempt", "expected"),
    [
        ({"rope": {}}, nested_key, {"rope": {"rope_theta": 10000.0, "factor": 1.0}}),
        ({"rope_scaling": None}, missing_table, {"rope_scaling": {"alpha": 1.0}}),
        ({"layer_types": None}, missing_list, {"layer_types": KINDS * 2}),
        (
            {"heads": [2], "widths": []},
            short_lists,
            {"heads": [2] * 4, "widths": KINDS * 2},
        ),
        ({"pattern": 3}, list_of_numbers, {"pattern": [3] * 4}),
        ({"width": 64, "groups": 5}, divisor, {"width": 64, "groups": 1}),
        ({"scaling": {}}, wanted_keys, {"scaling": {"type": "default", "factor": 1.0}}),
        ({"attn_offset": 4}, offset_below_period, {"attn_offset": 1}),
        ({"across": 4, "split": 4}, nothing_for_a_head, {"across": 64, "split": 4}),
    ],
)
def test_complaint_is_mended(
    config: Config, attempt: Callable[[Config], None], expected: Config
) -> None:
    assert mended(config, attempt) == expected


def test_accepted_configuration_stays() -> None:
    assert mended({"a": 1}, lambda config: None) == {"a": 1}


def test_given_values_stay() -> None:
    with pytest.raises(ValueError, match="divisible"):
        mended({"width": 64, "groups": 5}, divisor, {"width": 64, "groups": 5})


def test_first_complaint_is_raised_where_nothing_helps() -> None:
    def attempt(config: Config) -> None:
        raise RuntimeError("no Metal back-end")

    with pytest.raises(RuntimeError, match="no Metal back-end"):
        mended({"a": None, "b": [], "c": 3}, attempt)


def test_too_big_is_made_small_given_values_too() -> None:
    def attempt(config: Config) -> None:
        if config["hidden_size"] * config["unheard_of"] * len(config["layer_types"]) > 20_000:
            raise ValueError("has 900 million parameters even when made small")

    given = {
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "layer_types": ["s", "s", "f", "s"] * 8,
        "unheard_of": 9999,
        "eos_token_id": 128001,
    }
    assert mended(given, attempt, given) == {
        "hidden_size": 64,
        "num_hidden_layers": 4,
        "layer_types": ["s", "f", "s", "f"],
        "unheard_of": 64,
        "eos_token_id": 128001,
    }


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("vocab_size", 128),
        ("kda_layers", [1, 3]),
        ("rope_type", "default"),
        ("swa_rope_theta", 10000.0),
        ("sliding_attention", {}),
        ("anything", 1.0),
    ],
)
def test_guess(key: str, value: Any) -> None:
    assert guess(key, NAMES, 4) == value
