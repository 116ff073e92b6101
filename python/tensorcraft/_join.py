# SPDX-License-Identifier: Apache-2.0
"""Arrays one after another: `concat`, `stack` and `split`, made of `tc.copy` and views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from . import _ops
from . import _tensorcraft as native
from ._arguments import in_framework, to_axis, to_index, to_tensors
from ._dtypes import promoted
from ._tensor import asarray, is_plain
from ._tensorcraft import DType, Tensor
from ._typing import ArrayLike, StreamLike
from .errors import TensorCraftAxisError, TensorCraftTypeError, TensorCraftValueError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _arrays(arrays: Any, name: str, flat: bool) -> tuple[list[Any], list[Tensor]]:
    """What was given, lists and numbers as arrays, and all of it as tensors of one device; flat: of one axis."""
    if not isinstance(arrays, (list, tuple)):
        raise TensorCraftTypeError(f"{name}: arrays must be a list or tuple of arrays, got {type(arrays).__name__}")
    if not arrays:
        raise TensorCraftValueError(f"{name}: arrays: expected at least one")
    given = [asarray(a, device="cpu").numpy() if is_plain(a) else a for a in arrays]
    given = [a.reshape(-1) for a in given] if flat else given
    tensors = to_tensors(given)
    for i, t in enumerate(tensors):
        if t.device != tensors[0].device:
            raise TensorCraftValueError(
                f"{name}: arrays[{i}]: Device mismatch: expected {tensors[0].device} but got {t.device}; "
                f'move it with .to("{tensors[0].device}")'
            )
    return given, tensors


def _is_torch(x: Any) -> bool:
    return hasattr(x, "new_empty")


def _empty(first: Any, shape: tuple[int, ...], dtype: DType, given: list[Any], tensors: list[Tensor]) -> Any:
    """Memory for the result; torch's own belongs to its current stream, as its arrays do."""
    if not _is_torch(first):
        return native.empty(shape, dtype, tensors[0].device)
    models = [a for a, t in zip(given, tensors, strict=True) if t.dtype == dtype and _is_torch(a)]
    if not models:
        raise TensorCraftTypeError(
            f"the arrays have no common dtype but {dtype.name}, which none has; convert one to it"
        )
    return models[0].new_empty(shape)


def _joined(name: str, arrays: Any, axis: Any, new_axis: bool, out: Any, stream: Any) -> Any:
    given, tensors = _arrays(arrays, name, flat=axis is None)
    axis = 0 if axis is None else axis
    dtype = promoted((t.dtype for t in tensors), name)
    rank = tensors[0].ndim + new_axis
    if rank == 0:
        raise TensorCraftAxisError("concat: arrays[0]: expected at least 1 dimension; stack() adds one")
    at = to_axis(axis, rank, name)
    sizes = [1 if new_axis else t.shape[at] if t.ndim == rank else 0 for t in tensors]
    shape = tuple(tensors[0].shape)
    rest = shape if new_axis else (*shape[:at], *shape[at + 1 :])
    for i, t in enumerate(tensors):
        own = tuple(t.shape)
        if (own if new_axis else (*own[:at], *own[at + 1 :])) != rest or t.ndim + new_axis != rank:
            raise TensorCraftValueError(f"{name}: arrays[{i}]: shape {own} does not go with {shape} along axis {at}")
    whole = (*rest[:at], sum(sizes), *rest[at:])
    first = given[0]
    result = out
    if out is None:
        result = _empty(first, whole, dtype, given, tensors)
    target = native.from_any(result)
    if tuple(target.shape) != whole:
        raise TensorCraftValueError(f"{name}: out: expected shape {whole} but got {tuple(target.shape)}")
    if target.dtype != dtype:
        raise TensorCraftTypeError(f"{name}: out: expected dtype {dtype.name} but got {target.dtype.name}")
    _check_apart(name, target, tensors)
    views, sources = (result, given) if _is_torch(first) and _is_torch(result) else (target, tensors)
    begin = 0
    for source, tensor, size in zip(sources, tensors, sizes, strict=True):
        key = (*(slice(None),) * at, begin if new_axis else slice(begin, begin + size))
        if tensor.dtype == dtype:
            _ops.copy(source, out=views[key], stream=stream)
        else:
            _ops.astype(source, dtype, out=views[key], stream=stream)
        begin += size
    return result if out is not None or _is_torch(result) else in_framework(first, result)


def _check_apart(name: str, target: Tensor, tensors: list[Tensor]) -> None:
    for i, t in enumerate(tensors):
        if target._overlaps(t):
            raise TensorCraftValueError(f"{name}: out overlaps the memory of arrays[{i}]; give it memory of its own")


@overload
def concat(
    arrays: Sequence[Tensor], axis: int | None = 0, *, out: Tensor | None = None, stream: StreamLike | None = None
) -> Tensor: ...
@overload
def concat(
    arrays: Sequence[NDArray[Any]],
    axis: int | None = 0,
    *,
    out: NDArray[Any] | None = None,
    stream: StreamLike | None = None,
) -> NDArray[Any]: ...
@overload
def concat(
    arrays: Sequence[ArrayLike], axis: int | None = 0, *, out: ArrayLike | None = None, stream: StreamLike | None = None
) -> Any: ...
def concat(arrays: Sequence[Any], axis: int | None = 0, *, out: Any = None, stream: StreamLike | None = None) -> Any:
    """The arrays one after another along an axis that they have; None: all read row by row.

    One device; shapes equal but along the axis; dtypes combine as result_type says. Each array is one tc.copy or
    tc.astype on the same stream; host arrays are joined on the host. The result is of the first array's framework,
    or `out`.
    """
    return _joined("concat", arrays, axis, False, out, stream)


@overload
def stack(
    arrays: Sequence[Tensor], axis: int = 0, *, out: Tensor | None = None, stream: StreamLike | None = None
) -> Tensor: ...
@overload
def stack(
    arrays: Sequence[NDArray[Any]], axis: int = 0, *, out: NDArray[Any] | None = None, stream: StreamLike | None = None
) -> NDArray[Any]: ...
@overload
def stack(
    arrays: Sequence[ArrayLike], axis: int = 0, *, out: ArrayLike | None = None, stream: StreamLike | None = None
) -> Any: ...
def stack(arrays: Sequence[Any], axis: int = 0, *, out: Any = None, stream: StreamLike | None = None) -> Any:
    """The arrays one after another along a new axis; their shapes are equal. Otherwise as concat."""
    return _joined("stack", arrays, to_index(axis, "stack: axis"), True, out, stream)


@overload
def split(x: Tensor, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Tensor]: ...
@overload
def split(x: NDArray[Any], indices_or_sections: int | Sequence[int], axis: int = 0) -> list[NDArray[Any]]: ...
@overload
def split(x: ArrayLike, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Any]: ...
def split(x: Any, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Any]:
    """`x` in parts along an axis, as views of its memory: nothing is copied.

    A number of sections must divide the axis; indices say before which element to cut, as NumPy's do.
    """
    whole = asarray(x) if isinstance(x, (list, tuple)) else x
    shape = tuple(native.from_any(whole).shape)
    at = to_axis(axis, len(shape), "split")
    size = shape[at]
    if isinstance(indices_or_sections, (list, tuple)):
        cuts = [slice(to_index(i, "split: indices")).indices(size)[1] for i in indices_or_sections]
    else:
        sections = to_index(indices_or_sections, "split: indices_or_sections")
        if sections < 1 or size % sections:
            raise TensorCraftValueError(f"split: sections must divide axis {at} with size {size}, got {sections}")
        cuts = [i * (size // sections) for i in range(1, sections)]
    ends = [*cuts, size]
    begins = [0, *cuts]
    front = (slice(None),) * at
    parts = [(*front, slice(min(b, e), e)) for b, e in zip(begins, ends, strict=True)]
    return [whole[part] for part in parts]
