"""What operations on arrays do to shapes, folds and offsets."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from aliaslint.findings import Span
from aliaslint.rules.ropes import sizes
from aliaslint.rules.ropes.sizes import ANY, Dims
from aliaslint.rules.ropes.values import (
    UNKNOWN,
    Fold,
    OffsetKind,
    Value,
    flattened,
    join,
    permuted,
    reshaped,
    without_first,
)

# They give an array of the same shape.
_SAME = frozenset(
    (
        *("astype", "contiguous", "stop_gradient", "array", "asarray", "copy", "deepcopy"),
        *("negative", "abs", "sign", "exp", "log", "square", "sqrt", "rsqrt", "cos", "sin"),
        *("tanh", "sigmoid", "softmax", "clip", "round", "nan_to_num", "roll", "sort", "cumsum"),
        *("rms_norm", "layer_norm", "zeros_like", "ones_like", "full_like", "view"),
    )
)
# They give an offset of the shape of their argument; everything else gives an unknown one.
_VECTORS = frozenset(["concatenate", "stack"])
# Where they take the shape that they fill, and how often something is repeated.
_FILLED = {
    **dict.fromkeys(("full", "zeros", "ones"), (0, "shape")),
    "broadcast_to": (1, "shape"),
    "linspace": (2, "num"),
}
_TIMES = {"repeat": (1, "repeats"), "tile": (1, "reps")}


@dataclass(frozen=True, slots=True)
class MakeFold:
    """Makes the `Fold` of an expression when it turns out to be one.

    `source` names the array that the expression changes; `undo` is told when the expression gives
    a folded array its shape back. `packs` tells whether that array holds a fixed number of others.
    """

    path: Path
    span: Span
    node: ast.expr
    source: str
    undo: Callable[[Fold, Span], None]
    packs: Callable[[], bool]

    def __call__(self, dims: Dims | None = None) -> Fold:
        return Fold(self.path, self.span, ast.unparse(self.node), self.source, dims)


def function(
    name: str, arguments: Sequence[Value], keywords: Mapping[str, Value], fold: MakeFold
) -> Value:
    """Return what `mx.name(...)` gives."""
    if name == "array":
        return array(arguments[0]) if arguments else UNKNOWN
    if name in _FILLED:
        return filled(_argument(arguments, keywords, *_FILLED[name]))
    if name == "as_strided" and len(arguments) + len(keywords) > 1:
        shape = _argument(arguments, keywords, 1, "shape")
        return reshape(arguments[0] if arguments else UNKNOWN, [shape], {}, fold)
    if name == "arange":
        return ranged(arguments, keywords)
    if name in ("repeat", "tile") and arguments:
        return repeated(arguments[0], _argument(arguments, keywords, *_TIMES[name]))
    if name == "concatenate":
        return concatenated(arguments, keywords, fold)
    if name == "stack":
        return stacked(arguments, keywords, fold)
    if name == "split" and arguments:
        return split(arguments, keywords)
    if name == "atleast_1d" and arguments:
        scalar = arguments[0].offset in ("zero", "scalar")
        return expand(arguments[0], 0) if scalar else arguments[0]
    if name == "take" and len(arguments) > 1:
        return taken(arguments[0], arguments[1], _axis(arguments[2:], keywords), fold)
    if name in _VECTORS:
        return Value(offset="vector")
    if name in ("maximum", "minimum", "add", "subtract", "multiply", "where"):
        result = UNKNOWN
        for argument in arguments:
            result = elementwise(result, argument)
        return result
    if not arguments:
        return UNKNOWN
    return method(name.rpartition(".")[2], arguments[0], arguments[1:], keywords, fold)


def method(
    name: str,
    receiver: Value,
    arguments: Sequence[Value],
    keywords: Mapping[str, Value],
    fold: MakeFold,
) -> Value:
    """Return what `receiver.name(...)` gives."""
    if name in _SAME:
        return replace(receiver, token="")
    if name == "reshape":
        return reshape(receiver, arguments, keywords, fold)
    if name == "flatten":
        return flatten(receiver, arguments, keywords, fold)
    if name == "unflatten":
        return unflatten(receiver, arguments, keywords, fold)
    if name == "squeeze":
        return squeeze(receiver, _axes(arguments, keywords), fold)
    if name == "expand_dims":
        axes = _axes(arguments, keywords)
        return expand(receiver, axes[0] if axes and len(axes) == 1 else None)
    if name in ("transpose", "swapaxes", "moveaxis"):
        return transpose(name, receiver, arguments, keywords, fold)
    if name in ("item", "tolist"):
        return Value(offset="scalar")
    return UNKNOWN


def array(value: Value) -> Value:
    """Return `mx.array(value)`: a list of one number has shape (1,), a number none."""
    if value.parts is not None:
        kind: OffsetKind = "one" if len(value.parts) == 1 else "vector"
        if any(part.parts is not None for part in value.parts):
            return Value(dims=_nested(value))
        return Value(offset=kind)
    return replace(value, token="", params=value.params)


def _nested(value: Value) -> Dims:
    """Return the shape of nested lists, as far as one of a single element tells it."""
    parts = value.parts or ()
    inner = _nested(parts[0]) if parts and parts[0].parts is not None else ()
    return ("1" if len(parts) == 1 else ANY, *inner)


def filled(shape: Value) -> Value:
    """Return an array of the given shape: `mx.full((1,), v)`, `mx.full(B, v)`."""
    parts = shape.parts if shape.parts is not None else (shape,)
    dims = tuple(part.token or ANY for part in parts)
    if len(dims) != 1:
        return Value(dims=dims)
    return Value(dims=dims, offset="one" if dims == ("1",) else "vector")


def reshape(
    receiver: Value, arguments: Sequence[Value], keywords: Mapping[str, Value], fold: MakeFold
) -> Value:
    """Return the array in its new shape; also tells `offset.reshape(1)` and `reshape(-1)`."""
    given = [*arguments, *([keywords["shape"]] if "shape" in keywords else [])]
    if receiver.fold is not None and len(given) == 1 and given[0].shape_of:
        if given[0].token == receiver.fold.source:
            fold.undo(receiver.fold, fold.span)
        return Value(dims=given[0].dims)
    tail = tail_of(given)
    if tail is not None:
        return Value(fold=fold() if _drops(*tail) else None)
    new = sizes_of(given)
    if new is None:
        return UNKNOWN
    if len(new) <= 1:
        return Value(dims=new, offset=_one_dimension(receiver, new))
    if receiver.fold is not None and new == receiver.fold.dims and ANY not in new:
        fold.undo(receiver.fold, fold.span)
    return reshaped(receiver, new, fold(receiver.dims))


def _one_dimension(receiver: Value, new: Dims) -> OffsetKind:
    """Return what an offset is in a single dimension."""
    if not new:
        return "scalar"
    single = receiver.dims is not None and all(size == "1" for size in receiver.dims)
    if new == ("1",) or (new == ("-1",) and (single or receiver.offset in ("zero", "scalar"))):
        return "one"
    if receiver.dims is not None and any(size != "1" for size in receiver.dims):
        return "vector"
    return receiver.offset


def sizes_of(arguments: Sequence[Value]) -> Dims | None:
    """Return the sizes that the arguments of a reshape give, None if their number is unknown."""
    if len(arguments) == 1 and arguments[0].parts is not None:
        arguments = arguments[0].parts
    elif len(arguments) == 1 and arguments[0].shape_of:
        return arguments[0].dims
    if any(value.shape_of for value in arguments):
        return None
    return tuple(value.token or ANY for value in arguments)


def tail_of(given: Sequence[Value]) -> tuple[Dims, int] | None:
    """Return the sizes before the tail of a shape, and the index where it starts, if it has one.

    `*x.shape[2:]` is as long as the rank of x tells, which nothing may.
    """
    *before, last = given or [UNKNOWN]
    if last.tail is None or any(value.tail or value.shape_of for value in before):
        return None
    return (*(value.token or ANY for value in before), *last.tail[0]), last.tail[1]


def _drops(before: Dims, start: int) -> bool:
    """Whether sizes that stand for the first `start` ones have two of them in the first."""
    return sum(size != "1" for size in before) < start or sizes.is_product(before[0])


def unflatten(
    receiver: Value, arguments: Sequence[Value], keywords: Mapping[str, Value], fold: MakeFold
) -> Value:
    """Return the array with one dimension split, which undoes a fold of the first one."""
    axis = _axis(arguments, keywords)
    shape = sizes_of([_argument(arguments, keywords, 1, "shape")])
    rank = receiver.rank
    if axis is None or shape is None or rank is None or not -rank <= axis < rank:
        return replace(UNKNOWN, fold=receiver.fold if axis is not None and axis > 0 else None)
    assert receiver.dims is not None
    place = axis % rank
    dims = (*receiver.dims[:place], *shape, *receiver.dims[place + 1 :])
    if place == 0 and receiver.fold is not None and receiver.fold.dims == dims:
        fold.undo(receiver.fold, fold.span)
    return Value(dims=dims, fold=None if place == 0 else receiver.fold)


def ranged(arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    """Return `mx.arange(...)`: from a number to the next one it has one element."""
    given = [_argument(arguments, keywords, i, n).token for i, n in enumerate(("start", "stop"))]
    start, stop = given if given[1] else ("0", given[0])
    numbers = start.lstrip("-").isdigit() and stop.lstrip("-").isdigit()
    one = int(stop) - int(start) == 1 if numbers else stop in (f"{start} + 1", f"1 + {start}")
    return Value(dims=("1",), offset="one") if one else Value(offset="vector")


def repeated(value: Value, times: Value) -> Value:
    """Return `mx.repeat(...)` or `mx.tile(...)` of an array or offset."""
    if [number.token for number in times.parts or (times,)] == ["1"]:
        return replace(value, token="", offset="one" if value.offset == "scalar" else value.offset)
    return Value(fold=value.fold, offset="vector")


def taken(value: Value, index: Value, axis: int | None, fold: MakeFold) -> Value:
    """Return the rows of an array that an index names: one, or as many as it has elements.

    Without an axis they are elements, of an array of any shape.
    """
    if axis is None:
        return Value(offset=index.offset)
    if axis != 0:
        return UNKNOWN
    if index.offset in ("zero", "scalar"):
        return without_first(value, fold())
    if index.offset == "one":
        dims = ("1", *value.dims[1:]) if value.dims else None
        return Value(dims=dims, fold=value.fold, offset="one", batch="1")
    return UNKNOWN


def flatten(
    receiver: Value, arguments: Sequence[Value], keywords: Mapping[str, Value], fold: MakeFold
) -> Value:
    given = [*arguments, UNKNOWN, UNKNOWN]
    start = _number(keywords.get("start_axis", given[0]), 0)
    end = _number(keywords.get("end_axis", given[1]), -1)
    if start is None or end is None:
        return UNKNOWN
    result = flattened(receiver, start, end, fold(receiver.dims))
    if receiver.dims is None and receiver.offset in ("zero", "scalar"):
        return Value(dims=("1",), offset="one")
    if result.dims is not None and len(result.dims) == 1:
        return replace(result, offset=_one_dimension(receiver, result.dims))
    return result


def squeeze(receiver: Value, axes: Sequence[int] | None, fold: MakeFold) -> Value:
    """Return the array without these dimensions; None stands for axes that are not known."""
    rank = receiver.rank
    if rank is None and axes in ([0], [-4]):  # RoPE gets three dimensions at least: of four.
        return Value(fold=fold())
    if axes is None or rank is None or not all(-rank <= axis < rank for axis in axes):
        return replace(UNKNOWN, fold=receiver.fold if axes and 0 not in axes else None)
    gone = {axis % rank for axis in axes}
    if 0 in gone:
        receiver = without_first(receiver, fold(receiver.dims))
        gone = {axis - 1 for axis in gone if axis}
    dims = tuple(size for axis, size in enumerate(receiver.dims or ()) if axis not in gone)
    offset: OffsetKind = "one" if dims == ("1",) else receiver.offset
    return replace(receiver, dims=dims, params=frozenset(), offset=offset)


def expand(receiver: Value, axis: int | None) -> Value:
    """Return an array with a new dimension of size 1; a scalar offset gets shape (1,)."""
    plain = receiver.offset in ("zero", "scalar", "unknown") and not receiver.dims
    kind: OffsetKind = "one" if plain else "unknown"  # Of higher rank it would be no offset.
    kept = receiver.fold if axis not in (0, None) else None
    if receiver.dims is None or axis is None:
        return Value(offset=kind, fold=kept, batch="1" if axis == 0 else "")
    dims = list(receiver.dims)
    dims.insert(axis if axis >= 0 else len(dims) + 1 + axis, "1")
    return Value(dims=tuple(dims), offset=kind, fold=kept if dims[0] == receiver.dims[0] else None)


def transpose(
    name: str,
    receiver: Value,
    arguments: Sequence[Value],
    keywords: Mapping[str, Value],
    fold: MakeFold,
) -> Value:
    if name == "transpose":
        axes = arguments or ([keywords["axes"]] if "axes" in keywords else [])
        if len(axes) == 1 and axes[0].parts is not None:
            axes = list(axes[0].parts)
        numbers = tuple(_number(axis, None) for axis in axes)
        if not numbers:
            dims = receiver.dims[::-1] if receiver.dims else None
            return replace(receiver, dims=dims, fold=None, heads=False)
        if any(number is None for number in numbers):
            return UNKNOWN
        return permuted(receiver, tuple(n for n in numbers if n is not None), fold(receiver.dims))
    first, second = ([_number(a, None) for a in arguments] + [None, None])[:2]
    rank = receiver.rank or 0
    inside = all(axis is not None and -rank <= axis < rank for axis in (first, second))
    if first is None or second is None or receiver.dims is None or not inside:
        moves_first = 0 in (first, second)
        kept = None if moves_first else receiver.fold
        return replace(receiver, dims=None, fold=kept, step="", batch="", heads=False)
    order = list(range(len(receiver.dims)))
    if name == "swapaxes":
        order[first], order[second] = order[second], order[first]
    else:
        order.insert(second % len(order), order.pop(first))
    return permuted(receiver, tuple(order), fold(receiver.dims))


def concatenated(
    arguments: Sequence[Value], keywords: Mapping[str, Value], fold: MakeFold
) -> Value:
    """Return joined arrays: along dimension 0 that is a fold, along another it keeps one."""
    pieces = arguments[0].parts if arguments else None
    axis = _axis(arguments[1:], keywords)
    axis = 0 if axis is None and "axis" not in keywords and len(arguments) < 2 else axis
    if not pieces:
        return Value(offset="vector")
    first = pieces[0]
    for other in pieces[1:]:
        first = join(first, other)
    if axis == 0:
        rank = first.rank
        if rank is not None and rank >= 3:
            assert first.dims is not None
            dims = (sizes.product([str(len(pieces)), first.dims[0]]), *first.dims[1:])
            return Value(dims=dims, fold=first.fold or fold())
        one = len(pieces) == 1 and first.offset == "one"
        kind: OffsetKind = "one" if one else "vector" if first.fold is None else "unknown"
        return Value(fold=first.fold, offset=kind)
    known = first.dims
    if known is not None and axis is not None and -len(known) <= axis < len(known):
        changed = list(known)
        total = changed[axis] != ANY
        changed[axis] = sizes.product([str(len(pieces)), changed[axis]]) if total else ANY
        return Value(dims=tuple(changed), fold=first.fold)
    return Value(fold=first.fold)


def stacked(arguments: Sequence[Value], keywords: Mapping[str, Value], fold: MakeFold) -> Value:
    """Return arrays stacked along a new dimension.

    Of arrays of rank 4 a new first dimension puts batches behind it: that is a fold.
    """
    pieces = arguments[0].parts if arguments else None
    axis = _axis(arguments[1:], keywords)
    axis = 0 if axis is None and "axis" not in keywords and len(arguments) < 2 else axis
    if pieces and len(pieces) == 1 and not pieces[0].dims and axis == 0:
        return expand(pieces[0], 0)
    if not pieces or pieces[0].dims is None or axis != 0:
        return Value(offset="vector")
    first = pieces[0]
    for other in pieces[1:]:
        first = join(first, other)
    dims = (str(len(pieces)), *first.dims) if first.dims is not None else None
    return Value(dims=dims, fold=fold() if first.rank == 4 else None)


def split(arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    """Return the pieces of an array; their sizes are not followed, their rank is.

    Split into as many as the first size says, each has a first size of 1.
    """
    value = arguments[0]
    given = [*arguments[1:], *[keywords[k] for k in ("indices_or_sections",) if k in keywords]]
    first = value.dims[0] if value.dims else value.batch
    alone = "axis" not in keywords and len(given) == 1 and first and given[0].token == first
    dims = (ANY,) * len(value.dims) if value.dims is not None else None
    piece = Value(dims=dims, fold=value.fold, batch="1" if alone else "")
    return Value(parts=(piece, piece))


def layer(arguments: Sequence[Value]) -> Value:
    """Return what a layer of `mlx.nn` gives: it keeps all but the last size."""
    if not arguments:
        return UNKNOWN
    value = arguments[0]
    dims = (*value.dims[:-1], ANY) if value.dims else None
    return Value(dims=dims, fold=value.fold, step=value.step)


def element(value: Value) -> Value:
    """Return an element of a sequence, or a row of an array."""
    if value.parts:
        result = value.parts[0]
        for part in value.parts[1:]:
            result = join(result, part)
        return result
    return UNKNOWN


def unary(operator: ast.unaryop, value: Value) -> Value:
    if isinstance(operator, ast.Not):
        return Value(facts=value.facts[::-1])
    token = f"-{value.token}" if isinstance(operator, ast.USub) and value.token else ""
    return replace(value, token=token)


_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
}


def binary(operator: ast.operator, left: Value, right: Value) -> Value:
    """Return the result of an operator: the text of numbers, the shape of arrays."""
    sign = _SIGNS.get(type(operator))
    if left.parts is not None and right.parts is not None and sign == "+":
        return Value(parts=(*left.parts, *right.parts))
    if left.parts is not None and right.tail is not None and sign == "+":
        return Value(tail=tail_of([*left.parts, right]))
    if sign == "*" and (left.parts or right.parts):
        parts, times = (left.parts, right) if left.parts else (right.parts, left)
        return Value(parts=parts if times.token == "1" else (*(parts or ()), *(parts or ())))
    return replace(elementwise(left, right), token=_token(sign, left, right))


def _token(sign: str | None, left: Value, right: Value) -> str:
    """Return the text of a calculated number, "" if an operand is none."""
    arrays = left.dims is not None or right.dims is not None
    if not sign or not left.token or not right.token or arrays:
        return ""
    if sign == "*":
        return sizes.product([left.token, right.token])
    if sign == "//" and right.token != "1":
        return f"({left.token} // {right.token})".replace(" * ", "*")
    return f"{left.token} {sign} {right.token}"


def elementwise(left: Value, right: Value) -> Value:
    """Return the result of an operation on two arrays that broadcast."""
    wide, other = (left, right) if (left.rank or 0) >= (right.rank or 0) else (right, left)
    if wide.dims is None and other.fold is not None:
        wide, other = other, wide
    kinds = {left.offset, right.offset}
    offset: OffsetKind = "unknown"
    for kind in ("vector", "one", "unknown", "scalar", "zero"):
        if kind in kinds:
            offset = kind
            break
    return Value(
        dims=wide.dims,
        fold=wide.fold or other.fold,
        params=left.params | right.params,
        offset=offset,
        step=wide.step,
        batch=wide.batch,
    )


def subscript(
    base: Value, index: ast.expr, fold: MakeFold, value: Callable[[ast.expr], Value]
) -> Value:
    """Return an element of a tuple or shape, or part of an array."""
    if base.shape_of:
        return _size(base, index)
    if isinstance(index, ast.Constant) and str(index.value) in base.keys:
        assert base.parts is not None
        return base.parts[base.keys.index(str(index.value))]
    number = constant(index)
    if base.parts is not None:
        if number is not None and -len(base.parts) <= number < len(base.parts):
            return base.parts[number]
        if isinstance(index, ast.Slice):
            return _sliced(base.parts, index)
        return element(base)
    items = index.elts if isinstance(index, ast.Tuple) else [index]
    return indexed(base, items, fold, value) if items else base


def indexed(
    base: Value, items: Sequence[ast.expr], fold: MakeFold, value: Callable[[ast.expr], Value]
) -> Value:
    """Return `x[..., :n]`, `x[0]`, `x[:, None]` and the like; UNKNOWN where an array indexes."""
    if base.dims is None:
        return _indexed_unknown(base, items, fold, value)
    named = sum(not _is_none(item) and not _is_ellipsis(item) for item in items)
    missing: list[ast.expr] = [ast.Slice()] * (len(base.dims) - named)
    spread = next((i for i, item in enumerate(items) if _is_ellipsis(item)), len(items))
    full = [*items[:spread], *missing, *items[spread + 1 :]]
    dims: list[str] = []
    rest = list(base.dims)
    result = base
    for item in full:
        if _is_none(item):
            dims.append("1")
        elif isinstance(item, ast.Slice) and rest:
            dims.append(_slice_size(item, rest.pop(0)))
        elif len(items) == 1 and value(item).offset == "one":
            return taken(base, value(item), 0, fold)
        elif rest and (constant(item) is not None or value(item).offset in ("zero", "scalar")):
            if len(rest) == len(base.dims) and not dims:
                result = without_first(base, fold())
            rest.pop(0)
        else:
            return UNKNOWN
    kept = None if items and _is_none(items[0]) else result.fold
    offset: OffsetKind = "one" if dims == ["1"] else base.offset if dims else "scalar"
    return Value(dims=tuple(dims), fold=kept if len(dims) >= 3 else None, offset=offset)


def _indexed_unknown(
    base: Value,
    items: Sequence[ast.expr],
    fold: MakeFold,
    value: Callable[[ast.expr], Value],
) -> Value:
    """Return part of an array of unknown rank: a fold stays while all items are slices.

    `x[0, ...]` is a row of an array, which RoPE gets three dimensions of: of four, then.
    """
    first = items[0] if items else None
    if first is not None and _is_none(first):
        return expand(base, 0)
    if not all(map(_is_slice, items)):
        if len(items) == 1:
            return taken(base, value(items[0]), 0, fold)
        kept = all(_is_slice(item) and not _is_none(item) for item in items[1:])
        if not kept or _is_slice(items[0]) or fold.packs():
            return UNKNOWN
        return Value(fold=fold()) if value(items[0]).offset in ("zero", "scalar") else UNKNOWN
    one = isinstance(first, ast.Slice) and _slice_size(first, ANY) == "1"
    step = base.step if len(items) == 1 or _is_ellipsis(items[0]) else ""
    kind: OffsetKind = "one" if one and len(items) == 1 else "unknown"
    return Value(fold=base.fold, step=step, offset=kind, batch="1" if one else "")


def _is_none(node: ast.expr) -> bool:
    return (isinstance(node, ast.Constant) and node.value is None) or (
        isinstance(node, ast.Attribute) and node.attr == "newaxis"
    )


def _is_slice(node: ast.expr) -> bool:
    return isinstance(node, ast.Slice) or _is_ellipsis(node) or _is_none(node)


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _slice_size(node: ast.Slice, size: str) -> str:
    """Return the size of a slice: all of it for `:`, 1 for `:1`, `-1:` and `i : i + 1`."""
    if node.step is not None:
        return ANY
    if node.lower is None and node.upper is None:
        return size
    lower = 0 if node.lower is None else constant(node.lower)
    upper = None if node.upper is None else constant(node.upper)
    if (lower, node.upper) == (-1, None):
        return "1"
    if lower is not None and upper is not None and upper - lower == 1 and upper != 0:
        return "1"
    match node.lower, node.upper:
        case (ast.expr() as start, ast.BinOp(left=left, op=ast.Add(), right=right)):
            if ast.unparse(start) == ast.unparse(left) and constant(right) == 1:
                return "1"
    return ANY


def _sliced(parts: tuple[Value, ...], index: ast.Slice) -> Value:
    bounds = _bounds(index)
    return Value(parts=parts[slice(*bounds)]) if bounds and index.step is None else UNKNOWN


def _bounds(index: ast.Slice) -> tuple[int | None, int | None] | None:
    """Return the start and stop of a slice; None if one of them is no constant."""
    start = None if index.lower is None else constant(index.lower)
    stop = None if index.upper is None else constant(index.upper)
    known = (index.lower is None) == (start is None) and (index.upper is None) == (stop is None)
    return (start, stop) if known else None


def _size(shape: Value, index: ast.expr) -> Value:
    """Return `x.shape[i]` by the name that the size has, or the sizes of a slice."""
    number = constant(index)
    if number is None:
        return _sizes(shape, index)
    return Value(token=size_of(shape, number), offset="scalar")


def size_of(shape: Value, number: int) -> str:
    """Return the text of one size of a shape."""
    dims = shape.dims
    if dims is not None and -len(dims) <= number < len(dims) and dims[number] != ANY:
        return dims[number]
    return f"{shape.step or shape.shape_of}.shape[{number}]"


def _sizes(shape: Value, index: ast.expr) -> Value:
    """Return the sizes of a slice; of an unknown shape those that are counted from its ends."""
    if not isinstance(index, ast.Slice) or index.step is not None:
        return UNKNOWN
    bounds = _bounds(index)
    if shape.dims is not None and bounds is not None:
        named = shape.dims[slice(*bounds)]
        return Value(parts=tuple(Value(token=size, offset="scalar") for size in named))
    base = shape.step or shape.shape_of
    text = f"{shape.shape_of}.shape[{ast.unparse(index)}]"
    match bounds:
        case (int() as start, None) if start < 0:
            numbers = range(start, 0)
        case (start, int() as stop) if stop > 0 and (start or 0) >= 0:
            numbers = range(start or 0, stop)
        case (int() as start, None):  # How many there are is for the rank to say.
            return Value(token=text, tail=((), start))
        case _:
            return Value(token=text)
    tokens = [f"{base}.shape[{number}]" for number in numbers]
    return Value(parts=tuple(Value(token=token, offset="scalar") for token in tokens))


def multiplied(shape: Value) -> Value:
    """Return `math.prod(sizes)`."""
    if shape.parts is not None and all(part.token for part in shape.parts):
        return Value(token=sizes.product(p.token for p in shape.parts), offset="scalar")
    text = shape.token or shape.shape_of
    return Value(token=f"{text}[0] * {text}[1:]" if text else "", offset="scalar")


def constant(node: ast.expr) -> int | None:
    match node:
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as number)):
            return -number
    return None


def _argument(
    arguments: Sequence[Value], keywords: Mapping[str, Value], place: int, name: str
) -> Value:
    return keywords.get(name, arguments[place] if place < len(arguments) else UNKNOWN)


def _axis(arguments: Sequence[Value], keywords: Mapping[str, Value]) -> int | None:
    given = keywords.get("axis", arguments[0] if arguments else UNKNOWN)
    return _number(given, None)


def _axes(arguments: Sequence[Value], keywords: Mapping[str, Value]) -> list[int] | None:
    given = keywords.get("axis", arguments[0] if arguments else UNKNOWN)
    numbers = [_number(part, None) for part in given.parts or (given,)]
    known = [number for number in numbers if number is not None]
    return known if len(known) == len(numbers) else None


def _number(value: Value, default: int | None) -> int | None:
    if not value.token:
        return default
    try:
        return int(value.token)
    except ValueError:
        return None
