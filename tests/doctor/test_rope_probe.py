"""The RoPE probe passes a right kernel, names the two known defects, and can fail otherwise."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

mx = pytest.importorskip("mlx.core")

from aliaslint.verify import rope_kernels, rope_probe  # noqa: E402
from aliaslint.verify.rope_probe import Call, Mismatch, ProbeResult  # noqa: E402

Kernel = Callable[..., Any]


@cache
def probe_with(kernel: Kernel) -> ProbeResult:
    """Probe once for each kernel, in the place of the real one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mx.fast, "rope", kernel)
        return rope_probe.probe()


def names(result: ProbeResult) -> list[str]:
    return [pattern.name for pattern in result.patterns]


def swapped_halves(x: Any, dims: int, **options: Any) -> Any:
    return rope_kernels.rope(x, dims, **{**options, "traditional": not options["traditional"]})


def late_by_one(x: Any, dims: int, **options: Any) -> Any:
    return rope_kernels.rope(x, dims, **{**options, "offset": options["offset"] + 1})


def ignores_scale(x: Any, dims: int, **options: Any) -> Any:
    return rope_kernels.rope(x, dims, **{**options, "scale": 1.0})


def ignores_base(x: Any, dims: int, **options: Any) -> Any:
    plain = {} if options["base"] is None else {"base": 1e4}
    return rope_kernels.rope(x, dims, **{**options, **plain})


def takes_frequencies_for_rates(x: Any, dims: int, **options: Any) -> Any:
    freqs = options.pop("freqs", None)
    return rope_kernels.rope(x, dims, **options, freqs=None if freqs is None else 1 / freqs)


def spoils_features_beyond_dims(x: Any, dims: int, **options: Any) -> Any:
    result = rope_kernels.rope(x, dims, **options)
    return mx.concatenate([result[..., :dims], result[..., dims:] + 1], axis=-1)


def ignores_batch_at_any_length(x: Any, dims: int, **options: Any) -> Any:
    result = rope_kernels.rope(x, dims, **options)
    return mx.concatenate([result[:1], x[1:]])


def wrong_only_for_bfloat16(x: Any, dims: int, **options: Any) -> Any:
    result = rope_kernels.rope(x, dims, **options)
    return result + 0.5 if x.dtype == mx.bfloat16 else result


def wrong_only_for_float16(x: Any, dims: int, **options: Any) -> Any:
    result = rope_kernels.rope(x, dims, **options)
    return result + 0.1 if x.dtype == mx.float16 else result


def not_a_number(x: Any, dims: int, **options: Any) -> Any:
    return rope_kernels.rope(x, dims, **options) * mx.array(float("nan"))


def test_grid_holds_every_offset_and_form() -> None:
    seen = {(call.form, call.value) for call in rope_probe.grid()}
    forms = ("int", "()", "(1,)", "(B,)")
    assert seen == {(form, value) for form in forms for value in (0, 1, 39, 100_000)}


def test_grid_holds_every_shape_in_every_layout() -> None:
    seen = {(c.function, c.rank, c.batch, c.length, c.layout) for c in rope_probe.grid()}
    assert len(seen) == 2 * 2 * 2 * 3 * 3


def test_grid_holds_every_variant_and_type_for_both_functions() -> None:
    seen = {(call.function, call.variant, call.dtype) for call in rope_probe.grid()}
    both = [("plain", "float32"), ("plain", "float16"), ("plain", "bfloat16")]
    both += [("base", "float32"), ("scale", "float32"), ("partial", "float32")]
    functions = ("mx.fast.rope", "nn.RoPE")
    # nn.RoPE takes no freqs.
    wanted = {(f, *pair) for f in functions for pair in both}
    assert seen == {*wanted, ("mx.fast.rope", "freqs", "float32")}


def test_grid_has_no_call_twice() -> None:
    calls = list(rope_probe.grid())
    assert len(set(calls)) == len(calls)


def test_reference_kernel_is_right() -> None:
    result = probe_with(rope_kernels.rope)
    assert (result.ok, result.calls) == (True, len(list(rope_probe.grid())))


def test_installed_kernel_on_cpu_is_right() -> None:
    if mx.default_device().type != mx.cpu:
        pytest.skip("says what the CPU does")
    assert rope_probe.probe().mismatches == ()


def test_single_token_defect_is_named() -> None:
    assert names(probe_with(rope_kernels.single_token_defect)) == ["single-token"]


def test_single_token_defect_shows_in_exactly_the_calls_it_reaches() -> None:
    found = {m.call for m in probe_with(rope_kernels.single_token_defect).mismatches}
    reached = {
        call
        for call in rope_probe.grid()
        if call.length == 1
        and call.batch > 1
        and call.form != "(B,)"
        and call.layout != "strided"
        and call.value != 0
    }
    assert found == reached


def test_single_token_defect_spares_the_first_row() -> None:
    result = probe_with(rope_kernels.single_token_defect)
    assert {m.rows for m in result.mismatches} == {(1, 2)}


def test_one_element_offset_defect_is_named() -> None:
    result = probe_with(rope_kernels.one_element_offset_defect)
    assert names(result) == ["one-element-offset"]


def test_one_element_offset_defect_shows_in_all_batched_calls_with_it() -> None:
    found = probe_with(rope_kernels.one_element_offset_defect).mismatches
    wanted = {c for c in rope_probe.grid() if c.form == "(1,)" and c.batch > 1}
    assert {m.call for m in found} == wanted


def test_both_known_defects_at_once_are_both_named() -> None:
    calls = [{"length": 1}, {"form": "(1,)", "length": 1}, {"form": "(1,)", "length": 5}]
    found = rope_probe.classify([mismatch(**changes) for changes in calls])
    assert [(p.name, len(p.mismatches)) for p in found] == [
        ("single-token", 1),
        ("one-element-offset", 2),
    ]


@pytest.mark.parametrize(
    "kernel",
    [
        swapped_halves,
        late_by_one,
        ignores_scale,
        ignores_base,
        takes_frequencies_for_rates,
        spoils_features_beyond_dims,
        ignores_batch_at_any_length,
        wrong_only_for_bfloat16,
        wrong_only_for_float16,
        not_a_number,
    ],
)
def test_other_defect_is_unknown(kernel: Kernel) -> None:
    assert names(probe_with(kernel)) == ["unknown"]


def mismatch(**changes: Any) -> Mismatch:
    call = Call("mx.fast.rope", 3, 3, 1, "int", 39, "contiguous", False)
    facts = {"difference": 1.0, "rows": (1, 2), "row_contiguous": True}
    facts |= {key: changes.pop(key) for key in list(changes) if key in facts}
    from dataclasses import replace

    return Mismatch(call=replace(call, **changes), **facts)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "single-token"),
        ({"form": "()"}, "single-token"),
        ({"form": "(1,)"}, "single-token"),
        ({"form": "(B,)"}, "unknown"),
        ({"length": 2}, "unknown"),
        ({"rows": (0, 1)}, "unknown"),
        ({"row_contiguous": False}, "unknown"),
        ({"form": "(1,)", "length": 5}, "one-element-offset"),
        ({"form": "(1,)", "length": 5, "rows": (0, 1, 2)}, "unknown"),
        ({"form": "(1,)", "length": 5, "batch": 1, "rows": (0,)}, "unknown"),
    ],
)
def test_one_mismatch_is_classified(changes: dict[str, Any], name: str) -> None:
    assert [p.name for p in rope_probe.classify([mismatch(**changes)])] == [name]


def test_known_part_of_a_wider_defect_is_not_called_known() -> None:
    found = rope_probe.classify([mismatch(), mismatch(length=2)])
    assert [(p.name, len(p.mismatches)) for p in found] == [("unknown", 2)]


def test_summary_of_a_defect_names_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mx.fast, "rope", rope_kernels.single_token_defect)
    summary = rope_probe.summary()
    assert (summary["ok"], summary["patterns"]) == (False, ["single-token"])
    assert "ml-explore/mlx#3498" in summary["message"]
    assert "0.32.0" in summary["message"]


@pytest.mark.parametrize("traditional", [False, True])
def test_reference_turns_a_pair_by_its_angle(traditional: bool) -> None:
    """Position 2, four features: the pairs turn by 2 and by 2 / 100 (base 10,000)."""
    from math import cos, sin

    x = mx.array([[[1.0, 0.0, 1.0, 0.0]]]) if traditional else mx.array([[[1.0, 1.0, 0.0, 0.0]]])
    given = rope_kernels.rope(x, 4, traditional=traditional, base=1e4, scale=1.0, offset=2)
    first, second = (cos(2), sin(2)), (cos(0.02), sin(0.02))
    wanted = [*first, *second] if traditional else [first[0], second[0], first[1], second[1]]
    assert given.reshape(-1).tolist() == pytest.approx(wanted, abs=1e-6)


TURN = {"traditional": False, "base": 1e4, "scale": 1.0}


def right(kernel: Kernel, x: Any, offset: Any) -> bool:
    given = kernel(x, 8, **TURN, offset=offset)
    return bool(mx.allclose(given, rope_kernels.rope(x, 8, **TURN, offset=offset), atol=1e-5))


@pytest.mark.parametrize(
    ("shape", "offset", "cured"),
    [
        ((4, 1, 8), 39, False),
        ((1, 4, 1, 8), 39, True),
        ((2, 4, 1, 8), 39, False),
        ((2, 4, 1, 8), mx.array(39), False),
        ((2, 4, 1, 8), mx.full((2,), 39), True),
        ((2, 4, 2, 8), 39, True),
        ((8, 2, 8), 39, True),
    ],
)
def test_workarounds_for_the_single_token_defect(
    shape: tuple[int, ...], offset: Any, cured: bool
) -> None:
    """What docs/two-bugs.md tells to do, and what it tells not to."""
    x = mx.random.normal(shape, key=mx.random.key(0))
    assert right(rope_kernels.single_token_defect, x, offset) is cured


@pytest.mark.parametrize(
    ("offset", "cured"),
    [(mx.array([39]), False), (mx.array(39), True), (39, True), (mx.full((2,), 39), True)],
)
def test_workarounds_for_the_one_element_offset(offset: Any, cured: bool) -> None:
    x = mx.random.normal((2, 4, 1, 8), key=mx.random.key(0))
    assert right(rope_kernels.one_element_offset_defect, x, offset) is cured
