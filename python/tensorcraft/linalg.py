# SPDX-License-Identifier: Apache-2.0
"""Products, norms and diagonals of matrices and vectors, as the array API standard names them.

Products of floats are `tc.gemm`. Decompositions are not here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from . import _ops
from . import _tensorcraft as native
from ._arguments import of_array, of_two_arrays, to_axes, to_axis, to_index
from ._dtypes import dtypes_of, isdtype, promoted
from ._manipulation import diagonal, matrix_transpose, moveaxis
from ._packed import PackedWeight
from ._tensor import asarray, is_plain
from ._tensorcraft import DType, Tensor
from .errors import TensorCraftTypeError, TensorCraftValueError, Unsupported

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "diagonal",
    "matmul",
    "matrix_norm",
    "matrix_transpose",
    "outer",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]

_INTEGERS = dtypes_of("integral")


@overload
def matmul(
    x1: Tensor,
    x2: Tensor,
    /,
    *,
    out: Tensor | None = None,
    stream: Any = None,
    variant: Any = None,
    device: str | None = None,
) -> Tensor: ...
@overload
def matmul(
    x1: NDArray[Any],
    x2: NDArray[Any],
    /,
    *,
    out: NDArray[Any] | None = None,
    stream: Any = None,
    variant: Any = None,
    device: str | None = None,
) -> NDArray[Any]: ...
@overload
def matmul(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = None,
    stream: Any = None,
    variant: Any = None,
    device: str | None = None,
) -> Any: ...
def matmul(
    x1: Any, x2: Any, /, *, out: Any = None, stream: Any = None, variant: Any = None, device: str | None = None
) -> Any:
    """The matrix product; leading dimensions broadcast, and a vector is a row on the left, a column on the right.

    Floats and int8 are a `tc.gemm`, which has more options; x2 may be a `tc.PackedWeight`. Other integers are multiplied
    and added in int64, by way of all their products: for small matrices. Integers keep their dtype, and wrap.
    """
    if isinstance(x2, PackedWeight):
        return x2.matmul(x1, out=out, stream=stream, variant=variant, device=device)
    for name, x in (("x1", x1), ("x2", x2)):
        if isinstance(x, type) or not (is_plain(x) or hasattr(x, "ndim") or hasattr(x, "__dlpack__")):
            raise TensorCraftTypeError(
                f"matmul: {name} must be an array (NumPy, torch, anything with __dlpack__, a tc.Tensor or a list), "
                f"got {x.__name__ if isinstance(x, type) else type(x).__name__}"
            )
    if min(getattr(x1, "ndim", 0), getattr(x2, "ndim", 0)) > 1:
        try:
            product = _ops.gemm(x1, x2, out=out, stream=stream, variant=variant, device=device)
            # gemm adds int8 in int32; here integers keep their dtype.
            is_kept = out is not None or product.dtype == x1.dtype or not isdtype(x1.dtype, "integral")
            return product if is_kept else _ops.astype(product, x1.dtype, stream=stream, device=device)
        except TypeError:  # of two dtypes or integers
            if out is not None:
                raise
    return _other_product(x1, x2, out, stream, variant, device)


def _other_product(x1: Any, x2: Any, out: Any, stream: Any, variant: Any, device: str | None) -> Any:
    """matmul of what is not two matrices of one floating-point dtype."""
    a: Any
    b: Any
    a, b = (asarray(x, device="cpu").numpy() if is_plain(x) else x for x in (x1, x2))
    left, right = (x if isinstance(x, Tensor) else native.from_any(x) for x in (a, b))
    if left.ndim == 0 or right.ndim == 0:
        raise TensorCraftValueError("matmul: a number is no matrix; use multiply")
    is_row, is_column = left.ndim == 1, right.ndim == 1
    if out is not None and (is_row or is_column):
        raise TensorCraftValueError("matmul: out= goes with matrices; reshape a vector to (1, n) or (n, 1)")
    a, b = a[None] if is_row else a, b[:, None] if is_column else b
    if left.dtype == right.dtype and left.dtype not in _INTEGERS:
        result = _ops.gemm(a, b, out=out, stream=stream, variant=variant, device=device)
    elif out is None:
        result = _converted_product(a, b)
    else:
        raise TensorCraftTypeError("matmul: out= goes with two matrices of one dtype that gemm multiplies; use astype")
    result = result[..., 0] if is_column else result
    return (result[..., 0] if is_column else result[..., 0, :]) if is_row else result


@of_two_arrays
def _converted_product(a: Any, b: Any, /) -> Any:
    """matmul of matrices of two dtypes or of integers."""
    dtype = promoted((a.dtype, b.dtype), "matmul")
    a, b = a.astype(dtype), b.astype(dtype)
    return _integer_product(a, b) if dtype in _INTEGERS else _ops.gemm(a, b)


def _integer_product(a: Tensor, b: Tensor) -> Tensor:
    if a.shape[-1] != b.shape[-2]:
        raise TensorCraftValueError(
            f"matmul: Size mismatch: x1 has {a.shape[-1]} columns, but x2 has {b.shape[-2]} rows; they must be equal"
        )
    products = _ops.multiply(
        _ops.astype(a, DType.int64)._expand_dims(a.ndim), _ops.astype(b, DType.int64)._expand_dims(b.ndim - 2)
    )
    result: Tensor = _ops.astype(_ops.sum(products, products.ndim - 2), a.dtype)
    return result


@of_two_arrays
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The dot products of vectors along an axis counted from the last; the other dimensions broadcast."""
    if to_index(axis, "vecdot: axis") >= 0:
        raise TensorCraftValueError(f"vecdot: axis must be negative, as the arrays may differ in rank; got {axis}")
    a, b = moveaxis(x1, axis, -1), moveaxis(x2, axis, -1)
    if a.shape[-1] != b.shape[-1]:
        raise TensorCraftValueError(f"vecdot: Size mismatch: the vectors have {a.shape[-1]} and {b.shape[-1]} elements")
    result = matmul(a._expand_dims(a.ndim - 1), b._expand_dims(b.ndim))
    return result._squeeze(result.ndim - 1)._squeeze(result.ndim - 2)


@of_two_arrays
def tensordot(x1: Any, x2: Any, /, *, axes: int | Sequence[Sequence[int]] = 2) -> Any:
    """Sums of products over the last `axes` axes of x1 and the first of x2, or over pairs of axes that are named."""
    if isinstance(axes, int):
        if not 0 <= axes <= min(x1.ndim, x2.ndim):
            raise TensorCraftValueError(f"tensordot: axes must be 0 to {min(x1.ndim, x2.ndim)}, got {axes}")
        left, right = tuple(range(x1.ndim - axes, x1.ndim)), tuple(range(axes))
    else:
        if not isinstance(axes, (list, tuple)) or len(axes) != 2 or not all(isinstance(a, (list, tuple)) for a in axes):
            raise TensorCraftTypeError(f"tensordot: axes must be an integer or a pair of lists of axes, got {axes!r}")
        left, right = to_axes(axes[0], x1.ndim, "tensordot"), to_axes(axes[1], x2.ndim, "tensordot")
    if [x1.shape[a] for a in left] != [x2.shape[a] for a in right]:
        raise TensorCraftValueError(
            f"tensordot: Size mismatch: axes {left} of {tuple(x1.shape)} against axes {right} of {tuple(x2.shape)}"
        )
    rows = [a for a in range(x1.ndim) if a not in left]
    columns = [a for a in range(x2.ndim) if a not in right]
    inner = math.prod(x1.shape[a] for a in left)
    a = x1._permute((*rows, *left)).reshape((math.prod(x1.shape[r] for r in rows), inner))
    b = x2._permute((*right, *columns)).reshape((inner, math.prod(x2.shape[c] for c in columns)))
    return matmul(a, b).reshape((*(x1.shape[r] for r in rows), *(x2.shape[c] for c in columns)))


@of_two_arrays
def outer(x1: Any, x2: Any, /) -> Any:
    """All products of an element of one vector with one of another."""
    if x1.ndim != 1 or x2.ndim != 1:
        raise TensorCraftValueError(f"outer: expected vectors but got shapes {tuple(x1.shape)} and {tuple(x2.shape)}")
    return _ops.multiply(x1._expand_dims(1), x2)


@of_array
def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sums of the diagonals of matrices."""
    total = _ops.sum(diagonal(x, offset=offset), -1)
    return total if dtype is None else total.astype(dtype)


def _float(x: Tensor, name: str) -> Tensor:
    if not isdtype(x.dtype, "real floating"):
        raise TensorCraftTypeError(
            f"{name}: expected a floating-point dtype but got {x.dtype.name}; convert it with astype"
        )
    return x


@of_array
def vector_norm(x: Any, /, *, axis: int | Sequence[int] | None = None, keepdims: bool = False, ord: float = 2) -> Any:
    """The `ord`-norm along axes, or of all elements: 2 Euclid, 1 the sum of sizes, inf the largest, 0 how many are not 0.

    Computed in float32 of elements divided by the largest, so no power is beyond float32, and rounded once to the dtype
    of x. Raises TypeError if ord is no number, ValueError if it is NaN.
    """
    sizes = _ops.abs(_float(x, "vector_norm"))
    over = tuple(range(x.ndim)) if axis is None else to_axes(axis, x.ndim, "vector_norm")
    if not hasattr(ord, "__float__"):
        names = 'a number; matrix_norm has "fro"' if isinstance(ord, str) else "a number such as 2, 1 or inf"
        raise TensorCraftTypeError(f"vector_norm: ord must be {names}, got {ord!r}")
    if math.isnan(ord):
        raise TensorCraftValueError("vector_norm: ord must be a number such as 2, 1 or inf, got nan")
    if ord == math.inf:
        return _ops.max(sizes, over, keepdims=keepdims)
    if ord == -math.inf:
        return _ops.min(sizes, over, keepdims=keepdims)
    if ord == 0:
        return _ops.astype(_ops.count_nonzero(x, over, keepdims=keepdims), x.dtype)
    if ord == 1:
        return _ops.sum(sizes, over, keepdims=keepdims)
    return _ops.astype(_root_of_powers(sizes, over, keepdims, float(ord)), x.dtype)


def _root_of_powers(sizes: Tensor, over: tuple[int, ...], keepdims: bool, ord: float) -> Tensor:
    """The root of the sum of powers, in float32; each is at most 1, of what the size that counts most divides."""
    if 0 in (sizes.shape[a] for a in over):
        return _ops.astype(_ops.sum(sizes, over, keepdims=keepdims), DType.float32)
    most = (_ops.max if ord > 0 else _ops.min)(sizes, over, keepdims=True)
    scale = _ops.elementwise("where(isfinite(m) and m > 0, m, 1)", m=_ops.astype(most, DType.float32))
    if ord == 2:
        parts = _ops.elementwise("square(float32(x) / m)", x=sizes, m=scale)
        root = _ops.elementwise("sqrt(s) * m", s=_ops.sum(parts, over, keepdims=True), m=scale)
    else:
        parts = _ops.elementwise("pow(float32(x) / m, p)", x=sizes, m=scale, p=ord)
        root = _ops.elementwise("pow(s, p) * m", s=_ops.sum(parts, over, keepdims=True), m=scale, p=1 / ord)
    result: Tensor = root
    for a in () if keepdims else sorted(over, reverse=True):
        result = result._squeeze(a)
    return result


@of_array
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: float | str | None = "fro") -> Any:
    """A norm of each matrix: "fro" the root of the sum of squares; 1 and inf the largest sum of a column and of a row.

    -1 and -inf are the smallest of those. The norms by singular values, 2, -2 and "nuc", are not there.
    """
    if _float(x, "matrix_norm").ndim < 2:
        raise TensorCraftValueError(f"matrix_norm: expected at least 2 dimensions but got shape {tuple(x.shape)}")
    if ord == "fro":
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    choices = {1: (-2, _ops.max), -1: (-2, _ops.min), math.inf: (-1, _ops.max), -math.inf: (-1, _ops.min)}
    if not isinstance(ord, (int, float, str)) or ord not in choices:
        raise Unsupported(f'matrix_norm: ord {ord!r} is not there; "fro", 1, -1, inf and -inf are')
    summed, choose = choices[ord]
    sums = _ops.sum(_ops.abs(x), summed, keepdims=True)
    result = choose(sums, to_axis(-3 - summed, x.ndim, "matrix_norm"), keepdims=True)
    return result if keepdims else result._squeeze(x.ndim - 1)._squeeze(x.ndim - 2)
