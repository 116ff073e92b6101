# SPDX-License-Identifier: Apache-2.0
"""`t[key]` and `t[key] = value`: views by integers, slices, `...` and None; copies by integer arrays and masks.

Integer arrays become one index along one axis, computed on the device, for `take` and `scatter`. A mask becomes the
positions where it is true, and only their number is read from the device.
"""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple

from . import _ops
from . import _tensorcraft as native
from ._arguments import takes_arrays
from ._dtypes import isdtype
from ._tensor import asarray, full
from ._tensorcraft import DType, Tensor
from .errors import TensorCraftIndexError, TensorCraftTypeError, TensorCraftValueError


def counted(size: int, device: str) -> Tensor:
    """0, 1, ... below `size` as int64, made on the device."""
    ones = full((), 1, DType.int64, device)._broadcast_to((size,))
    result: Tensor = _ops.elementwise("n - 1", n=_ops.cumulative_sum(ones))
    return result


def true_positions(mask: Tensor) -> Tensor:
    """Where a bool tensor, read row by row, is true, in order, as int64. Waits for the device, which knows how many."""
    flat = mask.reshape(-1)
    if flat.size == 0:
        return native.empty((0,), DType.int64, mask.device)
    upto = _ops.cumulative_sum(_ops.astype(flat, DType.int64))
    count = int(upto._select(0, flat.size - 1).item())
    # The true ones go to the front and the others behind them, so that no two have one place.
    every = counted(flat.size, mask.device)
    place = _ops.elementwise(
        "where(mask, upto - 1, count + every - upto)", mask=flat, upto=upto, count=count, every=every
    )
    ordered: Tensor = _ops.scatter(every, place, every, 0)
    return ordered._slice(0, 0, count, 1)


@takes_arrays(1)
def nonzero(x: Any, /) -> tuple[Any, ...]:
    """The indices of the elements that are not 0, one int64 array for each axis; waits for the device."""
    if x.ndim == 0:
        raise TensorCraftValueError("nonzero: x has no axis; reshape it to (1,)")
    return tuple(_coordinates(true_positions(x if x.dtype == DType.bool_ else _ops.not_equal(x, 0)), x.shape))


def _coordinates(positions: Tensor, shape: tuple[int, ...]) -> list[Tensor]:
    """Positions in the row-major order of a shape as one index for each of its axes."""
    result = []
    for axis, size in enumerate(shape):
        below = math.prod(shape[axis + 1 :])
        result.append(_ops.elementwise("p // below % size", p=positions, below=max(below, 1), size=max(size, 1)))
    return result


def _is_array(key: Any) -> bool:
    return isinstance(key, (Tensor, list)) or hasattr(key, "__dlpack__")


def get_item(self: Tensor, key: Any) -> Tensor:
    """What `key` names, as NumPy has it: a view, or a copy if a list, an array or a mask is in the key.

    An integer array is not waited for; an index outside [-n, n) is an IndexError on the CPU, and a GPU gives NaN for it,
    or 0, as `take` does. A mask waits for the device, which knows how many of its elements are true.
    """
    keys = key if isinstance(key, tuple) else (key,)
    return _gather(self, keys) if any(map(_is_array, keys)) else _view(self, keys)


def set_item(self: Tensor, key: Any, value: Any) -> None:
    """Writes a number, or an array that broadcasts, to what `key` names; of repeated indices the last one stays.

    A mask waits for the device only if the value has elements of its own for what the mask picks.
    """
    keys = key if isinstance(key, tuple) else (key,)
    if any(map(_is_array, keys)):
        _scatter(self, keys, value)
        return
    target = _view(self, keys)
    if isinstance(value, (bool, int, float)):
        _ops.fill(target, value, out=target)
        return
    _ops.copy(_source(self, value, target)._broadcast_to(target.shape), out=target)


def _source(self: Tensor, value: Any, target: Tensor) -> Tensor:
    """`value` with the dtype and on the device of `self`, apart from the memory that is written."""
    source = value if isinstance(value, Tensor) else asarray(value, self.dtype, self.device)
    if source.dtype != self.dtype:
        source = _ops.astype(source, self.dtype)
    if source._overlaps(target):
        source = _ops.copy(source)
    return source._to(self.device)


def _check_count(self: Tensor, keys: tuple[Any, ...], taken: int) -> None:
    if sum(k is Ellipsis for k in keys) > 1:
        raise TensorCraftIndexError("an index can have one ellipsis only")
    if taken > self.ndim:
        raise TensorCraftIndexError(f"too many indices: the tensor has {self.ndim} dimensions, {taken} were given")


def _view(self: Tensor, keys: tuple[Any, ...]) -> Tensor:
    taken = sum(k is not None and k is not Ellipsis for k in keys)
    _check_count(self, keys, taken)
    view, axis = self, 0
    for k in keys:
        if k is Ellipsis:
            axis += self.ndim - taken
        else:
            view, axis = _one(view, axis, k)
    return view


def _one(view: Tensor, axis: int, key: Any) -> tuple[Tensor, int]:
    """The view of one key at an axis, and the axis of the next key."""
    if key is None:
        return view._expand_dims(axis), axis + 1
    if isinstance(key, slice):
        return _sliced(view, axis, key), axis + 1
    return view._select(axis, _position(key, axis, view.shape[axis])), axis


def _sliced(view: Tensor, axis: int, key: slice) -> Tensor:
    size = view.shape[axis]
    try:
        start, stop, step = key.indices(size)
    except TypeError:
        raise TensorCraftTypeError(f"a slice has integers or None, not {key}") from None
    except ValueError:
        raise TensorCraftValueError(f"the step of a slice must not be 0, got {key}") from None
    if step < 0:  # the same elements of the reversed axis
        view, start, stop, step = view._flip(axis), size - 1 - start, size - 1 - stop, -step
    step = min(step, max(stop, 1))  # a longer step takes the first element too
    return view._slice(axis, start, max(start, stop), step)


def _position(key: Any, axis: int, size: int) -> int:
    """`key` as an index of an axis with `size` elements."""
    try:
        if isinstance(key, bool):
            raise TypeError
        position = operator.index(key)
    except TypeError:
        raise TensorCraftTypeError(
            "tensors are indexed by integers, slices, ..., None, integer arrays and bool arrays, "
            f"not {type(key).__name__}"
        ) from None
    if not -size <= position < size:
        raise TensorCraftIndexError(f"index {position} is out of bounds for axis {axis} with size {size}")
    return position


class _Group(NamedTuple):
    """Neighbouring axes of the view that one array indexes; a mask has as many as it has dimensions."""

    axes: tuple[int, ...]
    array: Tensor  # int64 or bool


class _Picked(NamedTuple):
    """A key with arrays: the view that its other parts name, and which axes of it the arrays index."""

    view: Tensor
    groups: list[_Group]
    front: int  # how many dimensions of the result stand before those of the arrays

    @property
    def others(self) -> list[int]:
        inside = {axis for group in self.groups for axis in group.axes}
        return [axis for axis in range(self.view.ndim) if axis not in inside]

    @property
    def sizes(self) -> list[int]:
        """How many elements each array chooses from."""
        return [math.prod(self.view.shape[axis] for axis in group.axes) for group in self.groups]


def _array(self: Tensor, key: Any) -> Tensor:
    """An array in a key as a bool or int64 tensor on the device of `self`."""
    array = asarray(key, device=self.device)
    if array.dtype == DType.bool_:
        return array
    if array.size == 0 and isinstance(key, list):
        return native.empty(array.shape, DType.int64, self.device)
    if not isdtype(array.dtype, "integral"):
        raise TensorCraftTypeError(
            f"an array that indexes must be of integers or bool, got {array.dtype.name}; convert it with astype(tc.int64)"
        )
    return array if array.dtype == DType.int64 else array.astype(DType.int64)


def _picked(self: Tensor, keys: tuple[Any, ...]) -> _Picked:
    parts = [_array(self, k) if _is_array(k) else k for k in keys]
    width = [0 if k is None or k is Ellipsis else _width(k) for k in parts]
    taken = sum(width)
    _check_count(self, keys, taken)
    view, axis = self, 0
    groups: list[_Group] = []
    advanced: list[int] = []  # which keys are arrays or, beside them, integers
    front = 0
    for i, k in enumerate(parts):
        if not (k is None or k is Ellipsis or isinstance(k, slice)):
            advanced.append(i)
            front = front if len(advanced) > 1 else axis
        if k is Ellipsis:
            axis += self.ndim - taken
        elif not isinstance(k, Tensor):
            view, axis = _one(view, axis, k)
        else:
            if k.dtype == DType.bool_ and k.ndim == 0:  # one more axis, which is taken or not
                view, k = view._expand_dims(axis), k.reshape(1)
            axes = tuple(range(axis, axis + _width(k)))
            _check_mask(view, axes, k)
            groups.append(_Group(axes, k))
            axis += len(axes)
    together = advanced[-1] - advanced[0] + 1 == len(advanced)
    return _Picked(view, groups, front if together else 0)


def _width(part: Any) -> int:
    """How many axes a part of a key takes."""
    return part.ndim if isinstance(part, Tensor) and part.dtype == DType.bool_ else 1


def _check_mask(view: Tensor, axes: tuple[int, ...], array: Tensor) -> None:
    if array.dtype != DType.bool_:
        return
    sizes = tuple(view.shape[axis] for axis in axes)
    if any(given not in (0, size) for given, size in zip(array.shape, sizes, strict=True)):
        raise TensorCraftIndexError(
            f"a mask of shape {tuple(array.shape)} does not fit axes {axes}, whose sizes are {sizes}; they must be equal"
        )


def _index(picked: _Picked) -> Tensor:
    """One index into the elements that all arrays choose from, row by row, in the arrays' broadcast shape."""
    arrays = [true_positions(g.array) if g.array.dtype == DType.bool_ else g.array for g in picked.groups]
    if len(arrays) == 1:
        return arrays[0]
    sizes = picked.sizes
    index = full((), 0, DType.int64, picked.view.device)
    for array, n in zip(arrays, sizes, strict=True):
        # -1 if an index so far is outside; at last the number of elements, which take and scatter refuse.
        index = _ops.elementwise(
            "where(so_far >= 0 and i >= -n and i < n, so_far * n + where(i < 0, i + n, i), -1)",
            so_far=index,
            i=array,
            n=n,
        )
    result: Tensor = _ops.elementwise("where(i < 0, n, i)", i=index, n=math.prod(sizes))
    return result


def _gather(self: Tensor, keys: tuple[Any, ...]) -> Tensor:
    picked = _picked(self, keys)
    index, others = _index(picked), picked.others
    grouped = [axis for group in picked.groups for axis in group.axes]
    order = (*others[: picked.front], *grouped, *others[picked.front :])
    view = picked.view if order == tuple(range(len(order))) else picked.view._permute(order)
    if len(grouped) > 1:
        shape = [picked.view.shape[axis] for axis in others]
        view = view.reshape((*shape[: picked.front], math.prod(picked.sizes), *shape[picked.front :]))
    result: Tensor = _ops.take(view, index, picked.front)
    return result


def _scatter(self: Tensor, keys: tuple[Any, ...], value: Any) -> None:
    picked = _picked(self, keys)
    after = [axis for axis in picked.others if axis > picked.groups[-1].axes[-1]]
    if isinstance(value, (bool, int, float)):
        source = full((), value, self.dtype, self.device)
    else:
        source = _source(self, value, picked.view)
    if len(picked.groups) == 1 and picked.groups[0].array.dtype == DType.bool_ and source.ndim <= len(after):
        mask = picked.groups[0].array
        if mask.size > 0:
            mask = mask.reshape((*mask.shape, *(1 for _ in after)))
            _ops.where(mask, source, picked.view, out=picked.view)
        return
    _scatter_at(picked, _index(picked), source)


def _scatter_at(picked: _Picked, index: Tensor, source: Tensor) -> None:
    others, at = picked.others, picked.front
    sizes = [picked.view.shape[axis] for axis in others]
    source = source._broadcast_to((*sizes[:at], *index.shape, *sizes[at:]))
    if source.size == 0:
        return
    # As a matrix: the rows are what the arrays choose from, the columns all other elements.
    rest = math.prod(sizes)
    source = source._permute((*range(at, at + index.ndim), *range(at), *range(at + index.ndim, source.ndim))).reshape(
        (index.size, rest)
    )
    target = picked.view._permute((*(axis for group in picked.groups for axis in group.axes), *others))
    rows = target.reshape((math.prod(picked.sizes), rest))  # a copy if the target is not contiguous
    every_column = index.reshape((index.size, 1))._broadcast_to((index.size, rest))
    _ops.scatter(rows, every_column, source, 0, out=rows)
    if not target.is_contiguous:
        _ops.copy(rows.reshape(target.shape), out=target)
