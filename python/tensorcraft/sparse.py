# SPDX-License-Identifier: Apache-2.0
"""Sparse matrices: compressed rows (CSR) or columns (CSC), their products with vectors and matrices.

    a = tc.sparse.csr(data, indices, indptr, (rows, cols))
    y = a @ x                                   # x: a vector or a matrix
    d = tc.sparse.spmv(a, x, combine="x + a", reduce="min")

A matrix is checked when it is made, and never changes. It keeps what products choose by, and the other format once a
call needs it.
"""

from __future__ import annotations

import operator
from importlib import import_module
from typing import Any, Literal, NamedTuple, NoReturn

from . import _ops
from . import _tensorcraft as native
from ._frameworks import current_stream, from_dlpack
from ._tensor import asarray, is_plain
from ._tensorcraft import DType, Tensor
from .errors import TensorCraftTypeError, TensorCraftValueError

__all__ = ["Analysis", "Matrix", "csc", "csr", "from_dense", "from_scipy", "spmm", "spmv"]

Format = Literal["csr", "csc"]
Reduce = Literal["sum", "max", "min", "prod"]


class Analysis(NamedTuple):
    """What is known of the rows of a matrix, by which products choose how they are computed.

    longest_row: stored elements of the longest. empty_rows: how many have none. mean_row: stored elements of a row, on
    average. skew: longest_row / mean_row.
    """

    longest_row: int
    empty_rows: int
    mean_row: float
    skew: float


class Matrix:
    """A sparse matrix of float32, float16 or bfloat16 on one device. `csr`, `csc` and `from_dense` make one.

    Every row (of CSC: every column) names the columns of its elements in ascending order, once each. `a @ x` is `spmv`
    or `spmm`, and `x @ a` the same of the transposed matrix. `copy.copy`, `copy.deepcopy` and pickling work as for a Tensor;
    `np.asarray` is a TypeError, since a copy with zeros is asked for by `to_dense`.
    """

    __slots__ = ("_native", "_rows", "_transposed")
    __array_ufunc__ = None  # NumPy leaves x @ a to us

    def __init__(self, made: native.SparseMatrix) -> None:
        if not isinstance(made, native.SparseMatrix):
            raise TensorCraftTypeError("a sparse matrix is not made by its class; use sparse.csr, csc or from_dense")
        self._native = made
        self._rows: native.SparseMatrix | None = made if made.format == "csr" else None
        self._transposed: Matrix | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._native.shape

    @property
    def nnz(self) -> int:
        """How many elements are stored, zeros among them included."""
        return self._native.stored

    @property
    def format(self) -> str:
        """ "csr" or "csc"."""
        return self._native.format

    @property
    def dtype(self) -> DType:
        """Of the elements."""
        return self._native.data.dtype

    @property
    def device(self) -> str:
        """The device, as text."""
        return self._native.device

    @property
    def data(self) -> Tensor:
        """The stored elements, to read."""
        return self._native.data

    @property
    def indices(self) -> Tensor:
        """Their columns, of CSC their rows, to read."""
        return self._native.indices

    @property
    def indptr(self) -> Tensor:
        """Where rows, of CSC columns, begin, to read."""
        return self._native.indptr

    @property
    def analysis(self) -> Analysis:
        """What is known of the rows. Of a CSC matrix the first question converts it."""
        return Analysis(*self._by_rows().analysis())

    @property
    def T(self) -> Matrix:
        """The transposed matrix: a view, of the other format."""
        if self._transposed is None:
            self._transposed = Matrix(self._native.transposed())
        return self._transposed

    def to_csr(self) -> Matrix:
        """The same matrix by rows; converted once."""
        return self if self.format == "csr" else Matrix(self._by_rows())

    def to_csc(self) -> Matrix:
        """The same matrix by columns; converted once."""
        return self if self.format == "csc" else Matrix(self._native.converted("csc"))

    def to_dense(self) -> Tensor:
        """The matrix with its zeros. Bits are kept, so -0 and NaN too."""
        return self._native.to_dense()

    def to_scipy(self) -> Any:
        """A scipy.sparse array of the same format, of copies on the host; float16 and bfloat16 become float32."""
        sparse: Any = import_module("scipy.sparse")
        make = sparse.csr_array if self.format == "csr" else sparse.csc_array
        data = self.data if self.dtype == DType.float32 else _ops.astype(self.data, "float32")
        arrays = tuple(t.numpy().copy() for t in (data, self.indices, self.indptr))
        return make(arrays, shape=self.shape)

    def __matmul__(self, x: Any) -> Any:
        return _product(self, x)

    def __rmatmul__(self, x: Any) -> Any:
        dense = _dense(x, self.device)
        result = self.T @ dense if dense.ndim == 1 else (self.T @ dense.T).T
        return result if dense is x else result.numpy()

    def __repr__(self) -> str:
        return f"<sparse.Matrix {self._native!r}>"

    def __array__(self, *args: Any, **options: Any) -> NoReturn:
        raise TensorCraftTypeError(
            "sparse.Matrix: NumPy has no sparse arrays; to_dense() gives the matrix with its zeros, to_scipy() one of SciPy"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _of, (self.format, self.data, self.indices, self.indptr, self.shape, False, None)

    def _by_rows(self) -> native.SparseMatrix:
        if self._rows is None:
            self._rows = self._native.converted("csr")
        return self._rows


def csr(
    data: Any,
    indices: Any,
    indptr: Any,
    shape: tuple[int, int],
    *,
    sum_duplicates: bool = False,
    device: str | None = None,
) -> Matrix:
    """A matrix of compressed rows: row r has data[indptr[r] : indptr[r + 1]], in the columns that indices says.

    The arrays are NumPy's or of any framework with DLPack, whose memory is shared, and must not change. Those without a
    device of their own go to `device`, or to the default device. indices and indptr are int32 or int64.

    Raises ValueError with the row and the index for indices that are outside, not in ascending order, or there twice;
    with `sum_duplicates` elements of one place that are neighbours become their sum.
    """
    return _of("csr", data, indices, indptr, shape, sum_duplicates, device)


def csc(
    data: Any,
    indices: Any,
    indptr: Any,
    shape: tuple[int, int],
    *,
    sum_duplicates: bool = False,
    device: str | None = None,
) -> Matrix:
    """A matrix of compressed columns: column c has data[indptr[c] : indptr[c + 1]], in the rows that indices says.

    All else is as in `csr`. Products convert it to rows once.
    """
    return _of("csc", data, indices, indptr, shape, sum_duplicates, device)


def from_dense(x: Any, format: Format = "csr", *, index_dtype: Any = "int32", device: str | None = None) -> Matrix:
    """The sparse matrix of a dense one: all elements but +0 are stored, -0 and NaN too.

    x: (rows, cols), float32, float16 or bfloat16, any strides. Waits for the number of elements. Raises ValueError if x
    is no matrix, TypeError for another dtype.
    """
    return Matrix(native.SparseMatrix.from_dense(_placed(x, device), format, index_dtype))


def from_scipy(x: Any, *, device: str | None = None) -> Matrix:
    """The matrix of a scipy.sparse array or matrix: CSC as CSC, any other format as CSR; float64 becomes float32.

    What SciPy leaves out of order is sorted, and its duplicates are summed, in a copy.
    """
    import numpy as np

    if not all(hasattr(x, name) for name in ("tocsr", "format", "shape")):
        raise TensorCraftTypeError(f"sparse.from_scipy: x must be of scipy.sparse, got {type(x).__name__}")
    x = x if x.format == "csc" else x.tocsr()
    if not x.has_canonical_format:
        x = x.copy()
        x.sum_duplicates()
    data = x.data.astype(np.float32) if x.data.dtype == np.float64 else x.data
    return _of(x.format, data, x.indices, x.indptr, x.shape, False, device)


def spmv(
    a: Matrix,
    x: Any,
    c: Any = None,
    alpha: float = 1,
    beta: float | None = None,
    combine: str = "x * a",
    reduce: Reduce = "sum",
    *,
    out: Any = None,
    stream: Any = None,
    variant: str | None = None,
) -> Any:
    """alpha A x + beta c for a vector x; beta is 1 if c is given and it is left out.

    `combine` is an expression, in the language of `tc.elementwise`, of x, an element of the vector, and a, the element
    of the matrix beside it; `reduce` makes one number of those of a row. The result is an array of the kind of x.

    x: (cols), c and out: (rows), of the dtype of a. Work is enqueued on `stream`, as operators take it, and not waited
    for; the conversion of a CSC matrix, once, is. Raises ValueError if a shape, an expression or a variant does not fit,
    TypeError for another dtype.
    """
    return _call(_ops.spmv, a, x, c, alpha, beta, combine, reduce, out, stream, variant)


def spmm(
    a: Matrix,
    x: Any,
    c: Any = None,
    alpha: float = 1,
    beta: float | None = None,
    combine: str = "x * a",
    reduce: Reduce = "sum",
    *,
    out: Any = None,
    stream: Any = None,
    variant: str | None = None,
) -> Any:
    """alpha A X + beta C for a matrix X, row-major or column-major; all else is as in `spmv`.

    x: (cols, n), c and out: (rows, n).
    """
    return _call(_ops.spmm, a, x, c, alpha, beta, combine, reduce, out, stream, variant)


def _placed(x: Any, device: str | None) -> Tensor:
    """x as a tensor: what has no device of its own goes to `device`, or to the default device."""
    has_no_device = is_plain(x) or type(x).__module__.partition(".")[0] == "numpy"
    return asarray(x, device=device or (native.default_device() if has_no_device else None))


def _of(
    format: str, data: Any, indices: Any, indptr: Any, shape: Any, sum_duplicates: bool, device: str | None
) -> Matrix:
    try:
        rows, cols = (operator.index(size) for size in shape)
    except (TypeError, ValueError):
        raise TensorCraftTypeError(f"sparse.{format}: shape must be (rows, cols), got {shape!r}; give two integers") from None
    elements, places, offsets = (_placed(x, device) for x in (data, indices, indptr))
    return Matrix(native.SparseMatrix.of(format, elements, places, offsets, rows, cols, bool(sum_duplicates)))


def _dense(x: Any, device: str) -> Any:
    """x where the matrix is, if it is on the host without a device of its own."""
    return asarray(x, device=device) if is_plain(x) or type(x).__module__.partition(".")[0] == "numpy" else x


def _product(a: Matrix, x: Any) -> Any:
    return (spmv if getattr(x, "ndim", 1 if is_plain(x) and not _is_nested(x) else 2) == 1 else spmm)(a, x)


def _is_nested(x: Any) -> bool:
    return isinstance(x, (list, tuple)) and len(x) > 0 and isinstance(x[0], (list, tuple))


def _call(
    op: Any, a: Matrix, x: Any, c: Any, alpha: float, beta: float | None, combine: str, reduce: str,
    out: Any, stream: Any, variant: Any,
) -> Any:  # fmt: skip
    if not isinstance(a, Matrix):
        raise TensorCraftTypeError(
            f"sparse.{op.__name__}: a must be a sparse.Matrix, got {type(a).__name__}; tc.sparse.csr makes one"
        )
    dense = _dense(x, a.device)
    if getattr(dense, "shape", (None,))[:1] != a.shape[1:]:
        raise TensorCraftValueError(
            f"sparse.{op.__name__}: x: expected {a.shape[1]} elements along its first axis, the columns of the matrix,"
            f" got shape {tuple(getattr(dense, 'shape', ()))}"
        )
    if stream is None and not isinstance(dense, Tensor) and a.device.startswith("cuda"):
        stream = current_stream(type(dense), int(a.device.partition(":")[2]))
    if out is None and hasattr(dense, "new_empty"):  # torch's own memory for its own result
        out = dense.new_empty((a.shape[0], *dense.shape[1:]))
    rows = a._by_rows()
    known = {"starts": rows.starts} if op is _ops.spmv else {}
    result = op(
        rows.data, rows.indices, rows.indptr, dense, c=None if c is None else _dense(c, a.device), alpha=alpha,
        beta=beta, combine=combine, reduce=reduce, longest_row=rows.analysis()[0], out=out, stream=stream,
        variant=variant, **known,
    )  # fmt: skip
    if out is not None or isinstance(x, Tensor):
        return result
    return result.numpy() if dense is not x else from_dlpack(type(x), result)
