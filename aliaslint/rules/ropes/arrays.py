"""What operations on arrays do to shapes, folds and offsets."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from aliaslint.findings import Span
from aliaslint.rules.ropes.values import (
    ANY,
    UNKNOWN,
    Dims,
    Fold,
    OffsetKind,
    Value,
    flattened,
    join,
    permuted,
    reshaped,
    without_first,
)

# They give an array of the same shape and layout.
_SAME = frozenset(
    ("astype", "contiguous", "stop_gradient", "array", "asarray", "negative", "abs", "exp")
)
# They give an offset of the shape of their argument; everything else gives an unknown one.
_VECTORS = frozenset(["arange", "concatenate", "stack", "repeat", "tile"])


@dataclass(frozen=True, slots=True)
class MakeFold:
    """Makes the `Fold` of an expression when it turns out to be one.

    `source` names the array that the expression changes; `undo` is told when the expression gives
    a folded array its shape back.
    """

    path: Path
    span: Span
    node: ast.expr
    source: str
    undo: Callable[[Fold, Span], None]

    def __call__(self, dims: Dims | None = None) -> Fold:
        return Fold(self.path, self.span, ast.unparse(self.node), self.source, dims)


def function(
    name: str, arguments: Sequence[Value], keywords: Mapping[str, Value], fold: MakeFold
) -> Value:
    """Return what `mx.name(...)` gives."""
    if name == "array":
        return array(arguments[0]) if arguments else UNKNOWN
    if name in ("full", "zeros", "ones", "broadcast_to"):
        shape = arguments[1 if name == "broadcast_to" else 0] if arguments else UNKNOWN
        return filled(shape)
    if name == "concatenate":
        return concatenated(arguments, keywords, fold)
    if name == "split" and arguments:
        return split(arguments[0])
    if name in ("atleast_1d", "expand_dims") and arguments:
        return method("expand_dims", arguments[0], arguments[1:], keywords, fold)
    if name in _VECTORS:
        return Value(offset="vector")
    if name in ("maximum", "minimum", "add", "subtract", "multiply", "where"):
        result = UNKNOWN
        for argument in arguments:
            result = elementwise(result, argument)
        return result
    if not arguments:
        return UNKNOWN
    return method(name, arguments[0], arguments[1:], keywords, fold)


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
        given = [*arguments, UNKNOWN, UNKNOWN]
        start = _number(keywords.get("start_axis", given[0]), 0)
        end = _number(keywords.get("end_axis", given[1]), -1)
        return (
            UNKNOWN
            if start is None or end is None
            else flattened(receiver, start, end, fold(receiver.dims))
        )
    if name == "squeeze":
        return squeeze(receiver, _axis(arguments, keywords), fold)
    if name == "expand_dims":
        return expand(receiver, _axis(arguments, keywords))
    if name in ("transpose", "swapaxes", "moveaxis"):
        return transpose(name, receiver, arguments, keywords)
    if name in ("item", "tolist"):
        return Value(offset="scalar")
    return UNKNOWN


def array(value: Value) -> Value:
    """Return `mx.array(value)`: a list of one number has shape (1,), a number none."""
    if value.parts is not None:
        kind: OffsetKind = "one" if len(value.parts) == 1 else "vector"
        nested = any(part.parts is not None for part in value.parts)
        return Value(offset="unknown" if nested else kind)
    return replace(value, token="", params=value.params)


def filled(shape: Value) -> Value:
    """Return an array of the given shape: `mx.full((1,), v)`, `mx.full(B, v)`."""
    sizes = shape.parts if shape.parts is not None else (shape,)
    dims = tuple(part.token or ANY for part in sizes)
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
    sizes = sizes_of(given)
    if sizes is None:
        return UNKNOWN
    if len(sizes) <= 1:
        kind = receiver.offset
        if sizes in (("1",), ("-1",)) and kind in ("zero", "scalar"):
            kind = "one"
        return Value(dims=sizes, offset="one" if sizes == ("1",) else kind)
    if receiver.fold is not None and sizes == receiver.fold.dims and ANY not in sizes:
        fold.undo(receiver.fold, fold.span)
    return reshaped(receiver, sizes, fold(receiver.dims))


def sizes_of(arguments: Sequence[Value]) -> Dims | None:
    """Return the sizes that the arguments of a reshape give, None if their number is unknown."""
    if len(arguments) == 1 and arguments[0].parts is not None:
        arguments = arguments[0].parts
    elif len(arguments) == 1 and arguments[0].shape_of:
        return arguments[0].dims
    if any(value.shape_of for value in arguments):
        return None
    return tuple(value.token or ANY for value in arguments)


def squeeze(receiver: Value, axis: int | None, fold: MakeFold) -> Value:
    if axis == 0:
        return without_first(receiver, fold(receiver.dims))
    if axis is None or receiver.dims is None or not -receiver_rank(receiver) <= axis:
        return replace(UNKNOWN, fold=receiver.fold)
    dims = list(receiver.dims)
    if axis < len(dims):
        del dims[axis]
    return replace(receiver, dims=tuple(dims), params=frozenset())


def receiver_rank(value: Value) -> int:
    return len(value.dims or ())


def expand(receiver: Value, axis: int | None) -> Value:
    """Return an array with a new dimension of size 1; a scalar offset gets shape (1,)."""
    kind: OffsetKind = "one" if receiver.offset in ("zero", "scalar") else "unknown"
    if receiver.dims is None or axis is None:
        return Value(offset=kind, fold=receiver.fold if axis not in (0, None) else None)
    dims = list(receiver.dims)
    dims.insert(axis if axis >= 0 else len(dims) + 1 + axis, "1")
    return Value(dims=tuple(dims), offset=kind)


def transpose(
    name: str, receiver: Value, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> Value:
    if name == "transpose":
        axes = arguments or ([keywords["axes"]] if "axes" in keywords else [])
        if len(axes) == 1 and axes[0].parts is not None:
            axes = list(axes[0].parts)
        numbers = tuple(_number(axis, None) for axis in axes)
        if not numbers:
            dims = receiver.dims[::-1] if receiver.dims else None
            return replace(receiver, dims=dims, fold=None)
        if any(number is None for number in numbers):
            return UNKNOWN
        return permuted(receiver, tuple(n for n in numbers if n is not None))
    first, second = ([_number(a, None) for a in arguments] + [None, None])[:2]
    rank = receiver.rank or 0
    inside = all(axis is not None and -rank <= axis < rank for axis in (first, second))
    if first is None or second is None or receiver.dims is None or not inside:
        moves_first = 0 in (first, second)
        return replace(receiver, dims=None, fold=None if moves_first else receiver.fold)
    order = list(range(len(receiver.dims)))
    if name == "swapaxes":
        order[first], order[second] = order[second], order[first]
    else:
        order.insert(second % len(order), order.pop(first))
    return permuted(receiver, tuple(order))


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
            dims = (f"{len(pieces)} * {first.dims[0]}", *first.dims[1:])
            return Value(dims=dims, fold=first.fold or fold())
        return Value(fold=first.fold, offset="vector" if first.fold is None else "unknown")
    dims_known = first.dims
    if dims_known is not None and axis is not None and -len(dims_known) <= axis < len(dims_known):
        changed = list(dims_known)
        changed[axis] = ANY
        return Value(dims=tuple(changed), fold=first.fold)
    return Value(fold=first.fold)


def split(value: Value) -> Value:
    """Return the pieces of an array; their sizes are not followed, their rank is."""
    dims = (ANY,) * len(value.dims) if value.dims is not None else None
    piece = Value(dims=dims, fold=value.fold)
    return Value(parts=(piece, piece))


def layer(arguments: Sequence[Value]) -> Value:
    """Return what a layer of `mlx.nn` gives: it keeps all but the last size."""
    if not arguments:
        return UNKNOWN
    value = arguments[0]
    dims = (*value.dims[:-1], ANY) if value.dims else None
    return Value(dims=dims, fold=value.fold)


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
        return UNKNOWN
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
    token = ""
    if sign and left.token and right.token and left.dims is None and right.dims is None:
        token = f"{left.token} {sign} {right.token}"
    if left.parts is not None and right.parts is not None and sign == "+":
        return Value(parts=(*left.parts, *right.parts))
    if sign == "*" and (left.parts or right.parts):
        parts, times = (left.parts, right) if left.parts else (right.parts, left)
        return Value(parts=parts if times.token == "1" else (*(parts or ()), *(parts or ())))
    return replace(elementwise(left, right), token=token)


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
    )


def subscript(
    base: Value, index: ast.expr, fold: MakeFold, value: Callable[[ast.expr], Value]
) -> Value:
    """Return an element of a tuple or shape, or part of an array."""
    if base.shape_of:
        return _size(base, index)
    number = _constant(index)
    if base.parts is not None:
        if number is not None and -len(base.parts) <= number < len(base.parts):
            return base.parts[number]
        return element(base)
    if isinstance(index, ast.Constant) and index.value is None:
        return expand(base, 0)
    if isinstance(index, ast.Slice):
        dims = (ANY, *base.dims[1:]) if base.dims else None
        return Value(dims=dims, fold=base.fold)
    if isinstance(index, ast.Tuple):
        return _indexed(base, index)
    value(index)
    if number is not None or isinstance(index, ast.Name):
        return without_first(base, fold())
    return Value(fold=base.fold)


def _indexed(base: Value, index: ast.Tuple) -> Value:
    """Return `x[..., :n]` and the like: rank and fold stay while all parts are slices."""
    for item in index.elts:
        ellipsis = isinstance(item, ast.Constant) and item.value is ...
        if not ellipsis and not isinstance(item, ast.Slice):
            return UNKNOWN
    return Value(dims=(ANY,) * len(base.dims) if base.dims else None, fold=base.fold)


def _size(shape: Value, index: ast.expr) -> Value:
    """Return `x.shape[i]` by the name that the size has, or the sizes of a slice."""
    number = _constant(index)
    if number is None:
        return _sizes(shape, index)
    dims = shape.dims
    if dims is not None and -len(dims) <= number < len(dims) and dims[number] != ANY:
        return Value(token=dims[number], offset="scalar")
    return Value(token=f"{shape.shape_of}.shape[{number}]", offset="scalar")


def _sizes(shape: Value, index: ast.expr) -> Value:
    match index:
        case ast.Slice(lower=lower, upper=upper, step=None) if shape.dims is not None:
            start = None if lower is None else _constant(lower)
            stop = None if upper is None else _constant(upper)
            return Value(parts=tuple(Value(token=d) for d in shape.dims[start:stop]))
    return UNKNOWN


def _constant(node: ast.expr) -> int | None:
    match node:
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as number)):
            return -number
    return None


def _axis(arguments: Sequence[Value], keywords: Mapping[str, Value]) -> int | None:
    given = keywords.get("axis", arguments[0] if arguments else UNKNOWN)
    return _number(given, None)


def _number(value: Value, default: int | None) -> int | None:
    if not value.token:
        return default
    try:
        return int(value.token)
    except ValueError:
        return None
