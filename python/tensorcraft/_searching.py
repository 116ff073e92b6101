# SPDX-License-Identifier: Apache-2.0
"""Places in sorted values: a loop of few calls over whole arrays."""

from __future__ import annotations

from typing import Any

from . import _ops
from ._arguments import of_two_arrays
from ._dtypes import isdtype, promoted
from ._tensor import full
from ._tensorcraft import DType
from .errors import TensorCraftValueError


@of_two_arrays
def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Any:
    """Where elements of x2 go in x1, which is sorted or is by `sorter`, to keep it sorted; int64. A NaN is above all.

    "left" is before the elements of x1 that are equal, "right" after them. Halves the range in each of its steps.
    """
    if side not in ("left", "right"):
        raise TensorCraftValueError(f'searchsorted: side must be "left" or "right", got {side!r}')
    if x1.ndim != 1:
        raise TensorCraftValueError(f"searchsorted: x1: expected 1 dimension but got shape {tuple(x1.shape)}")
    dtype = promoted((x1.dtype, x2.dtype), "searchsorted")
    x1, x2 = x1.astype(dtype, copy=False), x2.astype(dtype, copy=False)
    x1 = x1 if sorter is None else _ops.take(x1, sorter, 0)
    if x1.ndim != 1:
        raise TensorCraftValueError("searchsorted: sorter: expected 1 dimension, the places of x1 in order")
    size = x1.shape[0]
    relation = "<" if side == "left" else "<="
    is_below = f"v {relation} x"
    if isdtype(dtype, "real floating"):
        is_below += " or isnan(x) and not isnan(v)" if side == "left" else " or isnan(x)"
    low = full(x2.shape, 0, DType.int64, x2.device)
    high = _ops.fill(low, size)
    for _ in range(size.bit_length()):
        middle = _ops.elementwise("low + (high - low) // 2", low=low, high=high)
        value = _ops.take(x1, _ops.minimum(middle, size - 1), 0)
        goes_on = _ops.elementwise(f"low < high and ({is_below})", low=low, high=high, v=value, x=x2)
        low = _ops.elementwise("where(on, m + 1, low)", on=goes_on, m=middle, low=low)
        high = _ops.elementwise("where(on, high, min(m, high))", on=goes_on, m=middle, high=high)
    return low
