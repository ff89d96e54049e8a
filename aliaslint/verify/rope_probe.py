"""The RoPE probe: does this MLX rotate every row of a batch, whatever the shape of the call?

Runs `mx.fast.rope` and `nn.RoPE` over a grid of calls and compares with plain trigonometry. Two
defects are known by their pattern; a mismatch of any other form is reported as unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from itertools import product
from math import prod
from typing import Any, Literal

import mlx.core as mx

from aliaslint.verify import rope_kernels

Form = Literal["int", "()", "(1,)", "(B,)"]
Layout = Literal["contiguous", "transposed", "strided"]

nn: Any = import_module("mlx.nn")  # Its stubs do not tell what it exports.

HEADS = 2
FEATURES = 8
OFFSETS = (0, 1, 39, 100_000)
FIXED_IN = "0.32.0"
FIX = "ml-explore/mlx#3498"
# What healthy kernels differ by, as a share of the largest input: rounding of the result, and
# of the angle, which grows with the position (float32 has 24 bits).
_PRECISION = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}
_ANGLE_PRECISION = 1e-6


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the grid. `variant` is one of `VARIANTS`; `value` is the offset of row 0."""

    function: Literal["mx.fast.rope", "nn.RoPE"]
    rank: int
    batch: int
    length: int
    form: Form
    value: int
    layout: Layout
    traditional: bool
    variant: str = "plain"
    dtype: str = "float32"

    def offsets(self) -> list[int]:
        """The offset of each row: only an offset of shape (B,) can differ between rows."""
        step = 2 if self.form == "(B,)" else 0
        return [self.value + step * row for row in range(self.batch)]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A call that gave a wrong result: the largest difference and the wrong rows of dimension 0."""

    call: Call
    difference: float
    rows: tuple[int, ...]
    row_contiguous: bool


@dataclass(frozen=True, slots=True)
class Pattern:
    """What a group of mismatches has in common; `known` is False for an unknown one."""

    name: str
    known: bool
    explanation: str
    cure: str
    mismatches: tuple[Mismatch, ...] = ()

    def of(self, mismatches: Sequence[Mismatch]) -> Pattern:
        return replace(self, mismatches=tuple(mismatches))


SINGLE_TOKEN = Pattern(
    "single-token",
    True,
    "with one token, a scalar offset and row-contiguous input only the first matrices of "
    "dimension 0 are rotated: a batch decodes wrongly after its first row",
    f"fixed by {FIX}; MLX {FIXED_IN} is the first good version",
)
ONE_ELEMENT = Pattern(
    "one-element-offset",
    True,
    "an offset of shape (1,) is not broadcast over a batch: the rows after the first are rotated "
    "by what lies behind it in memory (known on CUDA, up to MLX 0.32.4)",
    "pass an int, a 0-d array or an array of shape (B,); AL304 finds such calls",
)
UNKNOWN = Pattern(
    "unknown",
    False,
    "wrong results that fit no known defect",
    "please report these calls to ml-explore/mlx",
)


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """How many calls were made, and the patterns of those that were wrong."""

    calls: int
    patterns: tuple[Pattern, ...]

    @property
    def ok(self) -> bool:
        return not self.patterns

    @property
    def mismatches(self) -> tuple[Mismatch, ...]:
        return tuple(m for pattern in self.patterns for m in pattern.mismatches)


VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "base": {"base": 500_000.0},
    "scale": {"scale": 0.25},
    "freqs": {"base": None, "freqs": (1.0, 3.0, 40.0, 900.0)},
    "partial": {"dims": FEATURES // 2},
}


def grid() -> Iterator[Call]:
    """Yield all calls: every shape, offset and layout plainly, and with each variant and type."""
    shapes = product((3, 4), (1, 3), (1, 2, 5))
    forms: tuple[Form, ...] = ("int", "()", "(1,)", "(B,)")
    layouts: tuple[Layout, ...] = ("contiguous", "transposed", "strided")
    for (rank, batch, length), form, layout, traditional in product(
        shapes, forms, layouts, (False, True)
    ):
        for function in ("mx.fast.rope", "nn.RoPE"):
            for value in OFFSETS:
                yield Call(function, rank, batch, length, form, value, layout, traditional)
            for variant in VARIANTS:
                if variant != "plain" and (variant, function) != ("freqs", "nn.RoPE"):
                    yield Call(
                        function, rank, batch, length, form, 39, layout, traditional, variant
                    )
            for dtype in ("float16", "bfloat16"):
                yield Call(
                    function, rank, batch, length, form, 39, layout, traditional, dtype=dtype
                )


def probe(calls: Sequence[Call] | None = None) -> ProbeResult:
    """Run the calls (the whole grid by default) on the default device and judge them."""
    wanted = list(grid() if calls is None else calls)
    mismatches = [m for m in map(_run, wanted) if m is not None]
    return ProbeResult(len(wanted), tuple(classify(mismatches)))


def classify(mismatches: Sequence[Mismatch]) -> Iterator[Pattern]:
    """Group mismatches by the known patterns, if they account for all of them.

    A kernel that is also wrong elsewhere has another defect, whatever part of it looks known:
    then all are one unknown pattern.
    """
    reads_past = any(_fits_one_element(m) and m.call.length > 1 for m in mismatches)
    element = [m for m in mismatches if reads_past and _fits_one_element(m)]
    rest = [m for m in mismatches if not (reads_past and _fits_one_element(m))]
    if not all(map(_fits_single_token, rest)):
        yield UNKNOWN.of(mismatches)
        return
    if rest:
        yield SINGLE_TOKEN.of(rest)
    if element:
        yield ONE_ELEMENT.of(element)


def summary() -> dict[str, Any]:
    """Return the outcome as `verify` records it: {"ok", "message", "patterns"}."""
    result = probe()
    if result.ok:
        message = f"{result.calls} calls right"
    else:
        message = "; ".join(f"{p.name}: {p.explanation} ({p.cure})" for p in result.patterns)
    names = [pattern.name for pattern in result.patterns]
    return {"ok": result.ok, "message": message, "patterns": names}


def _fits_single_token(mismatch: Mismatch) -> bool:
    call = mismatch.call
    scalar = call.form != "(B,)"
    return call.length == 1 and scalar and mismatch.row_contiguous and 0 not in mismatch.rows


def _fits_one_element(mismatch: Mismatch) -> bool:
    call = mismatch.call
    return call.form == "(1,)" and call.batch > 1 and 0 not in mismatch.rows


def _run(call: Call) -> Mismatch | None:
    x = _input(call)
    given = _result(call, x).astype(mx.float32)
    wanted = _reference(
        call.rank,
        call.batch,
        call.length,
        tuple(call.offsets()),
        call.traditional,
        call.variant,
        call.dtype,
    )
    worst = mx.abs(given - wanted).reshape(call.batch, -1).max(axis=1)
    differences = [float(d) for d in worst.tolist()]  # type: ignore[union-attr, arg-type]
    # Written so that a NaN counts as wrong.
    rows = tuple(i for i, d in enumerate(differences) if not d <= _tolerance(call))
    if not rows:
        return None
    return Mismatch(call, max(differences), rows, rope_kernels.is_row_contiguous(x))


def _tolerance(call: Call) -> float:
    scale: float = VARIANTS[call.variant].get("scale", 1.0)
    return _PRECISION[call.dtype] * 2 + _ANGLE_PRECISION * scale * max(call.offsets())


@cache
def _values(rank: int, batch: int, length: int, dtype: str) -> mx.array:
    """Return the input, contiguous: numbers in [-1, 1], no row like another."""
    shape = (batch, HEADS, length, FEATURES)[-rank:] if rank == 4 else (batch, length, FEATURES)
    count = prod(shape)
    values = mx.sin(1.0 + mx.arange(count, dtype=mx.float32) * 1.7, stream=mx.cpu)
    return values.reshape(shape).astype(getattr(mx, dtype))


def _input(call: Call) -> mx.array:
    """Return the input in the layout of the call."""
    values = _values(call.rank, call.batch, call.length, call.dtype)
    if call.layout == "contiguous":
        return mx.contiguous(values)
    if call.layout == "strided":  # Half of an array that is twice as wide.
        return mx.concatenate([values, values], axis=-1)[..., :FEATURES]
    if call.rank == 4:  # As models make queries: (B, L, H, D) to (B, H, L, D).
        return mx.contiguous(values.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)
    return mx.contiguous(values.transpose(1, 0, 2)).transpose(1, 0, 2)


def _offset(call: Call) -> int | mx.array:
    match call.form:
        case "int":
            return call.value
        case "()":
            return mx.array(call.value)
        case "(1,)":
            return mx.array([call.value])
        case _:
            return mx.array(call.offsets())


def _settings(call: Call) -> dict[str, Any]:
    settings = {"dims": FEATURES, "base": 10_000.0, "scale": 1.0, **VARIANTS[call.variant]}
    if "freqs" in settings:
        settings["freqs"] = mx.array(settings["freqs"])
    return {**settings, "traditional": call.traditional}


def _result(call: Call, x: mx.array) -> mx.array:
    settings = _settings(call)
    if call.function == "mx.fast.rope":
        return mx.fast.rope(x, settings.pop("dims"), offset=_offset(call), **settings)
    layer = nn.RoPE(settings["dims"], settings["traditional"], settings["base"], settings["scale"])
    result: mx.array = layer(x, offset=_offset(call))
    return result


@cache
def _reference(
    rank: int,
    batch: int,
    length: int,
    offsets: tuple[int, ...],
    traditional: bool,
    variant: str,
    dtype: str,
) -> mx.array:
    """Return the right result in float32, computed on the CPU whatever the default device."""
    call = Call(
        "mx.fast.rope", rank, batch, length, "(B,)", 0, "contiguous", traditional, variant, dtype
    )
    settings = _settings(call)
    with mx.stream(mx.cpu):
        x = _values(rank, batch, length, dtype)
        offset = mx.array(list(offsets))
        result = rope_kernels.rope(x, settings.pop("dims"), offset=offset, **settings)
        result = result.astype(mx.float32)
        mx.eval(result)
    return result
