"""What is known of a value: its shape in symbols, whether dimension 0 is folded, offset kinds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from aliaslint.findings import Span
from aliaslint.rules.ropes import sizes
from aliaslint.rules.ropes.sizes import ANY, Dims

if TYPE_CHECKING:
    from aliaslint.rules.ropes.modules import Class, Function, Module

# "zero" turns nothing for a single token; "one" has shape (1,), "vector" shape (B,).
OffsetKind = Literal["zero", "scalar", "one", "vector", "unknown"]
Texts = frozenset[str]


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
class Callee:
    """A function of the project as a value: bound method, closure, lambda, partial.

    `closure` are the values of free names, which do not make another function of it; `given` and
    `keywords` are what a partial binds already. `kernel` is "mlx.core.fast.rope" or "mlx.nn.RoPE"
    for those, which have no function here.
    """

    function: Function | None
    module: Module | None
    owner: Class | None = None
    closure: Mapping[str, Value] = field(default_factory=dict, compare=False)
    given: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()
    kernel: str = ""


@dataclass(frozen=True, slots=True)
class Value:
    """An abstract value.

    `dims`: the shape of an array, each size as source text ("B", "4", "B * H", "?"); None if the
    rank is unknown, then `step` names the array whose sequence length this one has, and `batch`
    is the text of the first size. `heads`: whether dimension 1 was split off the last one of an
    array without batch. `params`: parameters of the function that this array is, up to
    operations that keep its layout. `token`: the source text of a number. `shape_of`: for a
    shape, the text of the array. `parts`: elements of a sequence, or values of a dictionary with
    these `keys`. `tail`: of a shape that ends like that of an array, the sizes before and the
    index from which it does. `instance`: key of the class, or "mlx.nn.RoPE". `facts`: for a truth
    value, what is known of sizes if it is true, and if it is false (see `guards`).
    """

    dims: Dims | None = None
    fold: Fold | None = None
    params: Texts = frozenset()
    offset: OffsetKind = "unknown"
    token: str = ""
    shape_of: str = ""
    parts: tuple[Value, ...] | None = None
    keys: tuple[str, ...] = ()
    tail: tuple[Dims, int] | None = None
    instance: str = ""
    callee: Callee | None = None
    facts: tuple[Texts, Texts] = (frozenset(), frozenset())
    step: str = ""
    batch: str = ""
    heads: bool = False

    @property
    def rank(self) -> int | None:
        return None if self.dims is None else len(self.dims)

    @property
    def length(self) -> str:
        """The text of the sequence length, "?" if it is unknown."""
        return self.dims[-2] if self.dims and len(self.dims) > 1 else ANY

    def longer_than_one(self, facts: Texts) -> bool:
        """Whether the sequence length is not 1, by what is known of sizes."""
        if self.dims is None:
            return bool(facts & {f"{self.step}.shape[{axis}]" for axis in (-2, 1, 2)})
        return sizes.above_one(self.length, facts)

    def is_single(self, facts: Texts) -> bool:
        """Whether the first size is 1, by what is known of sizes."""
        first = self.dims[0] if self.dims else self.batch
        return first == "1" or sizes.one(first) in facts


UNKNOWN = Value()


def join(first: Value, second: Value) -> Value:
    """Return what holds of either value; a fold on one path is a fold."""
    if first == second:
        return first
    parts = None
    if first.parts and second.parts and len(first.parts) == len(second.parts):
        parts = tuple(join(a, b) for a, b in zip(first.parts, second.parts, strict=True))
    one, other = first.facts, second.facts
    return Value(
        dims=_join_dims(first.dims, second.dims),
        fold=first.fold or second.fold,
        params=first.params | second.params,
        offset=_join_offset(first.offset, second.offset),
        token=first.token if first.token == second.token else "",
        shape_of=first.shape_of if first.shape_of == second.shape_of else "",
        parts=parts,
        keys=first.keys if parts and first.keys == second.keys else (),
        instance=first.instance or second.instance,
        callee=first.callee or second.callee,
        facts=(one[0] & other[0], one[1] & other[1]),
        step=first.step if first.step == second.step else "",
        batch=first.batch if first.batch == second.batch else "",
        heads=first.heads and second.heads,
    )


def _join_dims(first: Dims | None, second: Dims | None) -> Dims | None:
    if first is None or second is None or len(first) != len(second):
        return None
    return tuple(a if a == b else ANY for a, b in zip(first, second, strict=True))


def _join_offset(first: OffsetKind, second: OffsetKind) -> OffsetKind:
    """An offset of shape (1,) on some path is what AL304 looks for, a scalar is for AL301."""
    for kind in ("one", "scalar", "unknown", "vector"):
        if kind in (first, second):
            return kind
    return "zero"


def reshaped(value: Value, new: Dims, fold: Fold) -> Value:
    """Return `value` in a new shape; `fold` is the place, if this folds into dimension 0."""
    old = value.dims
    kept = replace(
        value,
        dims=new,
        parts=None,
        token="",
        shape_of="",
        params=frozenset(),
        heads=False,
        batch="",
    )
    if len(new) < 3 or not new[0]:
        return replace(kept, fold=None)
    if old is not None and len(old) == 2 and len(new) == 3 and new[0] in (old[0], "-1"):
        return replace(kept, fold=None, heads=not sizes.same(old[1], new[2]))
    return replace(kept, fold=fold if _folds(old, new) else None)


def _folds(old: Dims | None, new: Dims) -> bool:
    """Whether a reshape puts more into dimension 0 than was there."""
    if new[0] == "-1":
        rest = sizes.without(old, new[1:]) if old is not None else None
        if rest is not None:
            return len(rest) > 1
        if old is None:
            return len(new) == 3
        return sum(d != "1" for d in old) - sum(d != "1" for d in new[1:]) > 1
    if old is not None and sizes.same(old[0], new[0]):
        return False
    if sizes.is_product(new[0]):
        return True
    return old is not None and len(new) < len(old) and new[0] != ANY


def flattened(value: Value, start: int, end: int, fold: Fold) -> Value:
    """Return `value` with its dimensions from `start` to `end` in one."""
    old = value.dims
    kept = replace(value, params=frozenset(), heads=False, batch="")
    rank = 4 if old is None else len(old)  # What RoPE gets has rank 4 where nothing tells.
    if start not in (0, -rank):
        return replace(kept, dims=_merged(old, start, end))
    if old is None:
        return replace(kept, fold=fold if end > 0 or end <= -3 else None)
    last = end % len(old)
    new = (sizes.product(old[: last + 1]), *old[last + 1 :])
    return replace(kept, dims=new, fold=fold if last > 0 and len(new) >= 3 else None)


def _merged(old: Dims | None, start: int, end: int) -> Dims | None:
    if old is None:
        return None
    first, last = start % len(old), end % len(old)
    return (*old[:first], sizes.product(old[first : last + 1]), *old[last + 1 :])


def without_first(value: Value, fold: Fold) -> Value:
    """Return `value[i]` or `value.squeeze(0)`: of rank 4, the heads are in dimension 0 now.

    Of an array that packs a fixed number of others (queries, keys and values) they are not.
    """
    if not value.dims:
        return UNKNOWN
    packs = value.dims[0].isdigit() and value.dims[0] != "1"
    folds = len(value.dims) == 4 and not packs
    kept = value.fold if packs or len(value.dims) != 4 else None
    return Value(dims=value.dims[1:], fold=fold if folds else kept)


def permuted(value: Value, axes: tuple[int, ...], fold: Fold) -> Value:
    """Return the transposed array; an unknown shape gets the rank of the axes."""
    old = value.dims or (ANY,) * len(axes)
    if len(old) != len(axes) or not all(-len(old) <= axis < len(old) for axis in axes):
        return replace(value, dims=None, heads=False, batch="")
    new = tuple(old[axis] for axis in axes)
    if value.heads and axes == (1, 0, 2):  # (L, H, D) without batch: the heads come first.
        return replace(value, dims=new, fold=fold, heads=False)
    return replace(value, dims=new, fold=value.fold if axes[0] == 0 else None, heads=False)
