# SPDX-License-Identifier: Apache-2.0
"""Matrices made of their indices, and grids: eye, tril, triu, meshgrid."""

from __future__ import annotations

from typing import Any

from . import _ops
from . import _tensorcraft as native
from ._arguments import of_array, takes_arrays, to_index
from ._indexing import counted
from ._manipulation import broadcast_arrays
from ._tensor import full
from ._tensorcraft import DType, Tensor
from .errors import TensorCraftValueError


def _beside(k: int, rows: int, columns: int) -> int:
    """A diagonal, or the nearest one outside the matrix, in 64 bits."""
    return max(-rows, min(k, columns))


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: str | None = None
) -> Tensor:
    """A matrix with ones on the diagonal k, above the main one for k > 0, and zeros elsewhere."""
    rows = to_index(n_rows, "eye: n_rows")
    columns = rows if n_cols is None else to_index(n_cols, "eye: n_cols")
    if rows < 0 or columns < 0:
        raise TensorCraftValueError(f"eye: sizes must not be negative, got {rows} and {columns}")
    on = device or native.default_device()
    i, j = counted(rows, on), counted(columns, on)
    diagonal = _beside(to_index(k, "eye: k"), rows, columns)
    is_one = _ops.elementwise("j - i == k", i=i._expand_dims(1), j=j, k=diagonal)
    result: Tensor = _ops.astype(is_one, DType.float32 if dtype is None else native.to_dtype(dtype))
    return result


@takes_arrays(None)
def meshgrid(*arrays: Any, indexing: str = "xy") -> list[Any]:
    """The coordinates of a grid: array i varies along axis i, and "xy" exchanges the first two axes; views."""
    if indexing not in ("xy", "ij"):
        raise TensorCraftValueError(f'meshgrid: indexing must be "xy" or "ij", got {indexing!r}')
    rank = len(arrays)
    order = list(range(rank))
    if indexing == "xy" and rank > 1:
        order[:2] = [1, 0]
    lines = [a.reshape((*(1,) * at, -1, *(1,) * (rank - 1 - at))) for a, at in zip(arrays, order, strict=True)]
    return broadcast_arrays(*lines)


def _triangle(name: str, relation: str, x: Tensor, k: int) -> Tensor:
    if x.ndim < 2:
        raise TensorCraftValueError(f"{name}: expected at least 2 dimensions but got shape {tuple(x.shape)}")
    rows, columns = counted(x.shape[-2], x.device), counted(x.shape[-1], x.device)
    zero = full((), 0, x.dtype, x.device)
    diagonal = _beside(k, x.shape[-2], x.shape[-1])
    result: Tensor = _ops.elementwise(
        f"where(j - i {relation} k, x, zero)", i=rows._expand_dims(1), j=columns, k=diagonal, x=x, zero=zero
    )
    return result


@of_array
def tril(x: Any, /, *, k: int = 0) -> Any:
    """The lower triangles of matrices, zeros above the diagonal k."""
    return _triangle("tril", "<=", x, to_index(k, "tril: k"))


@of_array
def triu(x: Any, /, *, k: int = 0) -> Any:
    """The upper triangles of matrices, zeros below the diagonal k."""
    return _triangle("triu", ">=", x, to_index(k, "triu: k"))
