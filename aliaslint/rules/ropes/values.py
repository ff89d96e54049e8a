"""What is known of a value: its shape in symbols, whether dimension 0 is folded, offset kinds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from aliaslint.findings import Span

# "zero" turns nothing for a single token; "one" has shape (1,), "vector" shape (B,).
OffsetKind = Literal["zero", "scalar", "one", "vector", "unknown"]
Dims = tuple[str, ...]
ANY = "?"


@dataclass(frozen=True, slots=True)
class Fold:
    """The place where batch or heads went into dimension 0.

    `source` names the array that was folded, with the number of times that its name was bound;
    `dims` was its shape.
    """

    path: Path
    span: Span
    text: str
    source: str = ""
    dims: Dims | None = None


@dataclass(frozen=True, slots=True)
class Value:
    """An abstract value.

    `dims`: the shape of an array, each size as source text ("B", "4", "B * H", "?"); None if the
    rank is unknown. `token`: the source text of a number. `shape_of`: for a shape, the text of
    the array. `params`: parameters of the function that this array is, up to operations that
    keep its layout. `instance`: key of the class, or "mlx.nn.RoPE".
    """

    dims: Dims | None = None
    fold: Fold | None = None
    params: frozenset[str] = frozenset()
    offset: OffsetKind = "unknown"
    token: str = ""
    shape_of: str = ""
    parts: tuple[Value, ...] | None = None
    instance: str = ""

    @property
    def rank(self) -> int | None:
        return None if self.dims is None else len(self.dims)

    @property
    def length(self) -> str:
        """The text of the sequence length, "?" if it is unknown."""
        return self.dims[-2] if self.dims and len(self.dims) > 1 else ANY


UNKNOWN = Value()


def join(first: Value, second: Value) -> Value:
    """Return what holds of either value; a fold on one path is a fold."""
    if first == second:
        return first
    parts = None
    if first.parts and second.parts and len(first.parts) == len(second.parts):
        parts = tuple(join(a, b) for a, b in zip(first.parts, second.parts, strict=True))
    return Value(
        dims=_join_dims(first.dims, second.dims),
        fold=first.fold or second.fold,
        params=first.params | second.params,
        offset=_join_offset(first.offset, second.offset),
        token=first.token if first.token == second.token else "",
        shape_of=first.shape_of if first.shape_of == second.shape_of else "",
        parts=parts,
        instance=first.instance or second.instance,
    )


def _join_dims(first: Dims | None, second: Dims | None) -> Dims | None:
    if first is None or second is None or len(first) != len(second):
        return None
    return tuple(a if a == b else ANY for a, b in zip(first, second, strict=True))


def _join_offset(first: OffsetKind, second: OffsetKind) -> OffsetKind:
    """An offset that is a scalar on some path is one; one of shape (1,) beats a vector."""
    for kind in ("scalar", "one", "unknown", "vector"):
        if kind in (first, second):
            return kind
    return "zero"


def reshaped(value: Value, new: Dims, fold: Fold) -> Value:
    """Return `value` in a new shape; `fold` is the place, if this folds into dimension 0."""
    old = value.dims
    kept = replace(value, dims=new, parts=None, token="", shape_of="")
    if len(new) < 3 or not new[0]:
        return replace(kept, fold=None, params=frozenset())
    first = new[0]
    changed = old is None or old[0] != first
    if "*" in first:
        folds = changed
    elif first == "-1":
        folds = len(new) < len(old) if old is not None else len(new) == 3
    else:
        folds = changed and old is not None and len(new) < len(old) and first != ANY
    return replace(kept, fold=fold if folds else None, params=frozenset())


def flattened(value: Value, start: int, end: int, fold: Fold) -> Value:
    """Return `value` with its dimensions from `start` to `end` in one."""
    old = value.dims
    if start != 0:
        return replace(value, dims=None, params=frozenset())
    if old is None:
        folds = end == 1 or end == -3
        return replace(value, fold=fold if folds else None, params=frozenset())
    last = end % len(old)
    new = (" * ".join(old[: last + 1]), *old[last + 1 :])
    return replace(
        value, dims=new, fold=fold if last > 0 and len(new) >= 3 else None, params=frozenset()
    )


def without_first(value: Value, fold: Fold) -> Value:
    """Return `value[i]` or `value.squeeze(0)`: of rank 4, the heads are in dimension 0 now."""
    if value.dims is None:
        return UNKNOWN
    new = value.dims[1:]
    return Value(dims=new, fold=fold if len(new) >= 3 else None)


def permuted(value: Value, axes: tuple[int, ...]) -> Value:
    """Return the transposed array; an unknown shape gets the rank of the axes."""
    old = value.dims or (ANY,) * len(axes)
    if len(old) != len(axes) or not all(-len(old) <= axis < len(old) for axis in axes):
        return replace(value, dims=None)
    keeps = axes[0] == 0
    new = tuple(old[axis] for axis in axes)
    return replace(value, dims=new, fold=value.fold if keeps else None)
