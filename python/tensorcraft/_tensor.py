# SPDX-License-Identifier: Apache-2.0
"""How tensors are made, and astype and clip, over the operators."""

from __future__ import annotations

import operator
from typing import Any, overload

from . import _ops
from . import _tensorcraft as native
from ._conversion import converted, was_float64
from ._tensorcraft import DType, Tensor
from ._typing import DTypeLike
from .errors import OutOfMemory, TensorCraftTypeError, TensorCraftValueError


def is_plain(x: Any) -> bool:
    """Is it a number or a list, which has no device of its own?"""
    return isinstance(x, (bool, int, float, list, tuple))


def is_numpy(x: Any) -> bool:
    """Is it an array or a number of NumPy, which has no device of its own either?"""
    import numpy as np

    return isinstance(x, (np.ndarray, np.generic))


def beside(x: Any, device: str) -> Tensor:
    """A tensor of what stands beside one on `device`, by the rule of calls.

    Numbers and lists go there. An array of NumPy joins the devices whose memory is the host's; a GPU has others.
    """
    if isinstance(x, Tensor):
        return x
    if is_plain(x):
        return asarray(x, device=device)
    if not is_numpy(x):
        return native.from_any(x)
    if x.ndim > 0 and device.startswith("cuda"):
        raise TensorCraftValueError(
            f'host and device arrays are mixed; move the host array with tc.asarray(x, device="{device}")'
        )
    return asarray(x if x.ndim > 0 else x[()], device=device)


def asarray(obj: Any, dtype: Any = None, device: str | None = None, copy: bool | None = None) -> Tensor:
    """A tc.Tensor of `obj`: an array of any framework, a nested list, or a number.

    Shares the memory where dtype and device allow it, unless `copy` is True; copy=False refuses to copy
    with ValueError. Arrays stay on their device, lists and numbers go to the default device. Lists of
    floats become float32. A float64 array is a TypeError unless dtype is given.

    Numbers become `dtype` as astype converts them, float64 and the floats of a list too: rounded once, or to an
    integer without the fraction, the nearest there is, 0 of NaN. A Python integer beyond an integer dtype is a ValueError.
    """
    wanted = None if dtype is None else native.to_dtype(dtype)
    plain = is_plain(obj)
    if plain and copy is False:
        raise TensorCraftValueError("asarray: copy=False, but a list or a number has no memory to share")
    source = native.from_any(obj) if wanted is None else converted(obj, wanted, plain)
    if device is None:
        device = native.default_device() if plain else source.device
    result = source._to(device)
    if wanted is not None and result.dtype != wanted:
        result = _ops.astype(result, wanted)
    if plain:
        return result
    shares = result.data_ptr == source.data_ptr and source.dtype == result.dtype and not was_float64(obj)
    if copy is False and not shares:
        raise TensorCraftValueError("asarray: copy=False, but the dtype or device asked for needs a copy")
    return _ops.copy(result) if copy and shares else result


def from_dlpack(x: Any, /, *, device: str | None = None, copy: bool | None = None) -> Tensor:
    """A tc.Tensor that shares the memory of `x`, which has __dlpack__; `device` and `copy` as in asarray."""
    if not hasattr(x, "__dlpack__"):
        raise TensorCraftTypeError(f"from_dlpack: {type(x).__name__} has no __dlpack__; use tc.asarray")
    return asarray(x, device=device, copy=copy)


def empty(shape: Any, dtype: Any = None, device: str | None = None) -> Tensor:
    """Uninitialised memory of a shape."""
    return native.empty(shape, dtype, device)


def _filled(tensor: Tensor, value: float) -> Tensor:
    _ops.fill(tensor, value, out=tensor)
    return tensor


def full(shape: Any, fill_value: float, dtype: Any = None, device: str | None = None) -> Tensor:
    """A tensor whose elements all are `fill_value`; without a dtype they are bool, int64 or float32, as it is."""
    if dtype is None:
        dtype = _dtype_of_number(fill_value)
    return _filled(empty(shape, dtype, device), fill_value)


def _dtype_of_number(number: Any) -> DType:
    if isinstance(number, bool):
        return DType.bool_
    return DType.int64 if isinstance(number, int) else DType.float32


def zeros(shape: Any, dtype: Any = None, device: str | None = None) -> Tensor:
    """A tensor of zeros."""
    return full(shape, 0, DType.float32 if dtype is None else dtype, device)


def ones(shape: Any, dtype: Any = None, device: str | None = None) -> Tensor:
    """A tensor of ones."""
    return full(shape, 1, DType.float32 if dtype is None else dtype, device)


def arange(start: float, stop: float | None = None, step: float = 1, dtype: Any = None, device: str | None = None) -> Tensor:
    """Evenly spaced numbers from start up to, without, stop. Integers give int64, else float32."""
    import numpy as np

    for name, bound in {"start": start, "stop": start if stop is None else stop, "step": step}.items():
        if not hasattr(bound, "__float__") and not hasattr(bound, "__index__"):
            raise TensorCraftTypeError(f"arange: {name} must be a number, got {type(bound).__name__}")
    try:
        numbers = np.arange(start, step=step) if stop is None else np.arange(start, stop, step)
    except MemoryError:
        raise OutOfMemory(f"arange: out of host memory for start {start}, stop {stop} and step {step}") from None
    except (TypeError, ValueError, OverflowError, ZeroDivisionError) as error:
        why = "step must not be 0" if isinstance(error, ZeroDivisionError) else error
        raise TensorCraftValueError(f"arange: {why}") from None
    if dtype is None and numbers.dtype.kind == "f":
        dtype = DType.float32
    return asarray(numbers, dtype=dtype, device=device or native.default_device())


def linspace(
    start: float, stop: float, /, num: int, *, dtype: Any = None, device: str | None = None, endpoint: bool = True
) -> Tensor:
    """`num` numbers in equal steps from start to stop, or to a step before it; float32 unless a dtype is given."""
    import numpy as np

    try:
        numbers = np.linspace(float(start), float(stop), operator.index(num), endpoint=bool(endpoint))
    except MemoryError:
        raise OutOfMemory(f"linspace: out of host memory for {num} numbers") from None
    except (TypeError, ValueError, OverflowError) as error:
        raise TensorCraftValueError(
            f"linspace: start and stop must be numbers and num an integer from 0 on, got {start!r}, {stop!r}, {num!r} ({error})"
        ) from None
    return asarray(numbers, dtype=dtype or DType.float32, device=device or native.default_device())


def empty_like(x: Any, dtype: Any = None, device: str | None = None) -> Tensor:
    """Uninitialised memory of the shape, dtype and device of `x`."""
    t = native.from_any(x)
    return empty(t.shape, t.dtype if dtype is None else dtype, t.device if device is None else device)


def full_like(x: Any, fill_value: float, dtype: Any = None, device: str | None = None) -> Tensor:
    """`fill_value` in the shape, dtype and device of `x`."""
    return _filled(empty_like(x, dtype, device), fill_value)


def zeros_like(x: Any, dtype: Any = None, device: str | None = None) -> Tensor:
    """Zeros in the shape, dtype and device of `x`."""
    return full_like(x, 0, dtype, device)


def ones_like(x: Any, dtype: Any = None, device: str | None = None) -> Tensor:
    """Ones in the shape, dtype and device of `x`."""
    return full_like(x, 1, dtype, device)


@overload
def astype(
    x: Tensor, dtype: DTypeLike = "float32", *, copy: bool = True, out: Tensor | None = None, stream: Any = None,
    variant: Any = None, device: str | None = None,
) -> Tensor: ...
@overload
def astype(
    x: Any, dtype: DTypeLike = "float32", *, copy: bool = True, out: Any = None, stream: Any = None,
    variant: Any = None, device: str | None = None,
) -> Any: ...
def astype(
    x: Any,
    dtype: DTypeLike = "float32",
    *,
    copy: bool = True,
    out: Any = None,
    stream: Any = None,
    variant: Any = None,
    device: str | None = None,
) -> Any:
    wanted = native.to_dtype(dtype)
    if not copy and out is None and native.from_any(x).dtype == wanted:
        return x
    return _ops.astype(x, wanted, out=out, stream=stream, variant=variant, device=device)


astype.__doc__ = (_ops.astype.__doc__ or "").replace(
    "        out: array to", "        copy: False gives x itself if it has that dtype.\n        out: array to", 1
)


def has_array_bounds(min: Any, max: Any) -> bool:
    """Is clip made of maximum and minimum?"""
    return any(hasattr(bound, "ndim") or isinstance(bound, (list, tuple)) for bound in (min, max))


@overload
def clip(
    x: Tensor, min: Any = None, max: Any = None, *, out: Tensor | None = None, stream: Any = None,
    variant: Any = None, device: str | None = None,
) -> Tensor: ...
@overload
def clip(
    x: Any, min: Any = None, max: Any = None, *, out: Any = None, stream: Any = None,
    variant: Any = None, device: str | None = None,
) -> Any: ...
def clip(
    x: Any,
    min: Any = None,
    max: Any = None,
    *,
    out: Any = None,
    stream: Any = None,
    variant: Any = None,
    device: str | None = None,
) -> Any:
    options: dict[str, Any] = {"stream": stream, "variant": variant, "device": device}
    if not has_array_bounds(min, max):
        return _ops.clip(x, min, max, out=out, **options)
    result = x if min is None else _ops.maximum(x, min, out=out if max is None else None, **options)
    return result if max is None else _ops.minimum(result, max, out=out, **options)


clip.__doc__ = (_ops.clip.__doc__ or "").replace(
    "        out: array to",
    "        min, max: arrays too, which broadcast: then by maximum and minimum.\n        out: array to",
    1,
)
