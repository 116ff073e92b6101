# SPDX-License-Identifier: Apache-2.0
"""Shapes changed: views where the elements stay in place, else one copy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from . import _ops
from ._arguments import broadcast_shapes, of_array, takes_arrays, to_axes, to_axis, to_index, to_shape
from ._dtypes import isdtype
from ._join import concat
from ._tensor import asarray, full
from ._tensorcraft import DType, Tensor
from .errors import TensorCraftTypeError, TensorCraftValueError


@of_array
def reshape(x: Any, /, shape: int | Sequence[int], *, copy: bool | None = None) -> Any:
    """The elements in another shape; one -1 is inferred. A view of a contiguous array, else a copy.

    copy=True always copies; copy=False refuses to, with ValueError.
    """
    if copy is False and not x.is_contiguous:
        raise TensorCraftValueError("reshape: copy=False, but x is not contiguous; copy=None copies it")
    return (_ops.copy(x) if copy else x).reshape(to_shape(shape, "reshape: shape"))


@of_array
def squeeze(x: Any, /, axis: int | Sequence[int] | None = None) -> Any:
    """Without axes of size 1, or without all of them, as a view."""
    if axis is None:
        return x.squeeze()
    for a in sorted(to_axes(axis, x.ndim, "squeeze"), reverse=True):
        x = x._squeeze(a)
    return x


@of_array
def expand_dims(x: Any, /, axis: int | Sequence[int] = 0) -> Any:
    """New axes of size 1 at places of the result, as a view."""
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    for a in sorted(to_axes(axis, x.ndim + count, "expand_dims")):
        x = x._expand_dims(a)
    return x


@of_array
def broadcast_to(x: Any, /, shape: int | Sequence[int]) -> Any:
    """The array repeated to a shape by NumPy's rule, as a view: write into a copy of it."""
    return x._broadcast_to(to_shape(shape, "broadcast_to: shape"))


@takes_arrays(None)
def broadcast_arrays(*arrays: Any) -> list[Any]:
    """The arrays in the shape that they have together, as views: write into copies of them."""
    shape = broadcast_shapes(*(a.shape for a in arrays))
    return [a._broadcast_to(shape) for a in arrays]


@of_array
def flip(x: Any, /, *, axis: int | Sequence[int] | None = None) -> Any:
    """Axes, or all of them, from their end to their beginning, as a view with negative strides."""
    for a in range(x.ndim) if axis is None else to_axes(axis, x.ndim, "flip"):
        x = x._flip(a)
    return x


@of_array
def moveaxis(x: Any, source: int | Sequence[int], destination: int | Sequence[int], /) -> Any:
    """Axes moved to other places, the others in their order, as a view."""
    begins, ends = to_axes(source, x.ndim, "moveaxis"), to_axes(destination, x.ndim, "moveaxis")
    if len(begins) != len(ends):
        raise TensorCraftValueError(f"moveaxis: {len(begins)} axes have {len(ends)} destinations; give one for each")
    order = [a for a in range(x.ndim) if a not in begins]
    for end, begin in sorted(zip(ends, begins, strict=True)):
        order.insert(end, begin)
    return x._permute(tuple(order))


@of_array
def matrix_transpose(x: Any, /) -> Any:
    """The last two axes exchanged, as a view."""
    return x.mT


@of_array
def roll(x: Any, /, shift: int | Sequence[int], *, axis: int | Sequence[int] | None = None) -> Any:
    """The elements moved along axes, those that leave at the end entering at the beginning; None: in row-major order."""
    if axis is None:
        return roll(x.reshape(-1), shift, axis=0).reshape(x.shape)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        raise TensorCraftValueError(f"roll: {len(axes)} axes have {len(shifts)} shifts; give one for each")
    for by, at in zip(shifts, axes, strict=True):
        a = to_axis(at, x.ndim, "roll")
        size = x.shape[a]
        cut = size - to_index(by, "roll: shift") % size if size else 0
        x = concat([x._slice(a, cut, size, 1), x._slice(a, 0, cut, 1)], axis=a)
    return x


def _spread(x: Tensor, axis: int, times: int, inside: bool) -> Tensor:
    """Each element of an axis `times` times (inside), or the axis as a whole so often; one copy."""
    shape = tuple(x.shape)
    before, size, after = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    flat = x.reshape((before, size, after))._expand_dims(2 if inside else 1)
    wide = (before, size, times, after) if inside else (before, times, size, after)
    result: Tensor = _ops.copy(flat._broadcast_to(wide))
    return result.reshape((*shape[:axis], size * times, *shape[axis + 1 :]))


@of_array
def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Any:
    """Each element so many times, along an axis or, with None, of the array read row by row.

    `repeats` is a number, or an array of one number for each element of the axis, and then the call waits for the
    device, which knows their sum.
    """
    x, a = (x.reshape(-1), 0) if axis is None else (x, to_axis(axis, x.ndim, "repeat"))
    size = x.shape[a]
    if isinstance(repeats, int):
        if repeats < 0:
            raise TensorCraftValueError(f"repeat: repeats must not be negative, got {repeats}")
        return _spread(x, a, repeats, inside=True)
    times = asarray(repeats, device=x.device)
    if times.size and times.dtype != DType.bool_ and not isdtype(times.dtype, "integral"):
        raise TensorCraftTypeError(f"repeat: repeats must be an integer, or an array of integers, got {_text(repeats)}")
    times = times.astype(DType.int64)
    if times.ndim > 1 or times.size not in (1, size):
        raise TensorCraftValueError(
            f"repeat: repeats has shape {times.shape}; expected one number, or one for each of {size}"
        )
    if size == 0:
        return x.copy()
    return _ops.take(x, _repeated(times.reshape(-1)._broadcast_to((size,))), a)


def _text(value: Any) -> str:
    """A number itself, of an array its dtype."""
    return repr(value) if isinstance(value, float) else f"{asarray(value).dtype.name}"


def _repeated(times: Tensor) -> Tensor:
    """Each index of `times` as often as it says there: 0, 0, 2 for (2, 0, 1)."""
    ends = _ops.cumulative_sum(times)
    total = int(ends._select(0, ends.size - 1).item())
    if bool(_ops.any(_ops.less(times, 0)).item()):
        raise TensorCraftValueError("repeat: repeats must not be negative")
    # An element's index is the number of elements that end at or before its place.
    none = full((total + 1,), 0, DType.int64, times.device)
    one = _ops.fill(ends, 1)
    result: Tensor = _ops.cumulative_sum(_ops.scatter(none, ends, one, 0, reduction="add"))
    return result._slice(0, 0, total, 1)


@of_array
def tile(x: Any, repetitions: int | Sequence[int], /) -> Any:
    """The array beside itself, so many times along each axis; one copy for each axis that grows."""
    times = to_shape(repetitions, "tile: repetitions")
    if any(n < 0 for n in times):
        raise TensorCraftValueError(f"tile: repetitions must not be negative, got {times}")
    rank = max(len(times), x.ndim)
    result = x.reshape((*(1,) * (rank - x.ndim), *x.shape))
    for axis, n in enumerate((*(1,) * (rank - len(times)), *times)):
        result = result if n == 1 else _spread(result, axis, n, inside=False)
    return _ops.copy(result) if result._overlaps(x) else result


@takes_arrays(1)
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """The parts of an axis one by one, without it, as views."""
    a = to_axis(axis, x.ndim, "unstack")
    return tuple(x._select(a, i) for i in range(x.shape[a]))


@of_array
def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """The diagonals of matrices, as a view of a contiguous array."""
    if x.ndim < 2:
        raise TensorCraftValueError(f"diagonal: expected at least 2 dimensions but got shape {tuple(x.shape)}")
    rows, columns = x.shape[-2:]
    k = to_index(offset, "diagonal: offset")
    length = max(0, min(rows + min(k, 0), columns - max(k, 0)))
    flat = x.reshape((*x.shape[:-2], rows * columns))
    begin = min(max(k, 0) + max(-k, 0) * columns, rows * columns)
    end = begin + max(length - 1, 0) * (columns + 1) + (length > 0)
    return flat._slice(flat.ndim - 1, begin, end, columns + 1)


@of_array
def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours along an axis, n times over; n=0 gives x, without prepend and append."""
    at = to_axis(axis, x.ndim, "diff")
    count = to_index(n, "diff: n")
    if count < 0:
        raise TensorCraftValueError(f"diff: n must not be negative, got {n}")
    if count == 0:
        return x
    parts = [prepend, x, append]
    given = [asarray(p, device=x.device) for p in parts if p is not None]
    x = concat(given, axis=at) if len(given) > 1 else x
    for _ in range(min(count, max(x.shape[at], 1))):  # one less each time, till there are none
        size = x.shape[at]
        after, before = x._slice(at, min(1, size), size, 1), x._slice(at, 0, max(size - 1, 0), 1)
        x = _ops.subtract(after, before) if x.dtype != DType.bool_ else _ops.not_equal(after, before)
    return x
