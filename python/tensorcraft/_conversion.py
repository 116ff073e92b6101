# SPDX-License-Identifier: Apache-2.0
"""Numbers that are converted on their way in: float64 and lists, which become the dtype asked for in one step."""

from __future__ import annotations

from typing import Any

from . import _tensorcraft as native
from ._tensorcraft import DType, Tensor
from .errors import TensorCraftValueError


def was_float64(obj: Any) -> bool:
    """Is it an array of float64, of any framework?"""
    return str(getattr(obj, "dtype", "")).endswith("float64")


def converted(obj: Any, wanted: DType, plain: bool) -> Tensor:
    """`obj` as a Tensor: float64 and lists of floats in the dtype asked for, others in theirs. plain: a list or a number."""
    import numpy as np

    if not plain:
        if not was_float64(obj) or str(getattr(obj, "device", "cpu")) != "cpu":
            return native.from_any(obj)
        return _rounded(np.asarray(obj), wanted)
    try:
        array = np.asarray(obj)
        if wanted.kind == "f":  # integers beyond 64 bits too
            array = array if array.dtype.kind in "fib" and array.itemsize <= 8 else np.asarray(obj, np.float64)
        elif array.dtype.kind != "f":
            array = np.asarray(obj, wanted.name)
    except (OverflowError, ValueError) as error:  # a number that does not fit, a ragged list
        raise TensorCraftValueError(f"asarray: {error}") from None
    return _rounded(array, wanted) if array.dtype == np.float64 else native.from_any(array)


def _rounded(array: Any, wanted: DType) -> Tensor:
    """A float64 array of NumPy, each element converted once."""
    import numpy as np

    if wanted != DType.float32:
        return native.from_float64(array, wanted)
    with np.errstate(over="ignore"):
        return native.from_any(array.astype(np.float32))  # the same numbers, faster
