# SPDX-License-Identifier: Apache-2.0
"""Sparse matrices against SciPy and NumPy: conversions, products of both formats, checks, and semirings."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import tensorcraft as tc

RANDOM = np.random.default_rng(7)


def matrix(rows: int, cols: int, density: float, format: str = "csr", index: Any = np.int32) -> Any:
    made = sparse.random_array((rows, cols), density=density, format=format, dtype=np.float32, rng=RANDOM)
    made.indices, made.indptr = made.indices.astype(index), made.indptr.astype(index)
    return made


def ours(a: Any, device: str) -> tc.sparse.Matrix:
    make = tc.sparse.csr if a.format == "csr" else tc.sparse.csc
    return make(a.data, a.indices, a.indptr, a.shape, device=device)


@pytest.mark.parametrize("format", ["csr", "csc"])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize(("rows", "cols", "density"), [(40, 30, 0.2), (1, 500, 0.5), (300, 1, 0.1), (60, 70, 0.0)])
def test_products_equal_those_of_scipy(
    format: str, index: Any, rows: int, cols: int, density: float, device: str
) -> None:
    theirs = matrix(rows, cols, density, format, index)
    a, x = ours(theirs, device), RANDOM.normal(size=cols).astype(np.float32)
    assert (a.format, a.shape, a.nnz, a.dtype, a.device) == (format, theirs.shape, theirs.nnz, tc.float32, device)
    np.testing.assert_allclose(a @ x, theirs @ x, rtol=1e-4, atol=1e-5)
    dense = RANDOM.normal(size=(cols, 5)).astype(np.float32)
    for order in "CF":
        np.testing.assert_allclose(a @ np.asarray(dense, order=order), theirs @ dense, rtol=1e-4, atol=1e-5)
    left = RANDOM.normal(size=(3, rows)).astype(np.float32)
    np.testing.assert_allclose(left @ a, left @ theirs.toarray(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(left[0] @ a, left[0] @ theirs.toarray(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(a.T @ left[1], theirs.T @ left[1], rtol=1e-4, atol=1e-5)


def test_a_product_is_of_the_kind_of_x(device: str) -> None:
    a = ours(matrix(6, 4, 0.5), device)
    x = np.ones(4, np.float32)
    assert isinstance(a @ x, np.ndarray)
    ours_too = a @ tc.asarray(x, device=device)
    assert isinstance(ours_too, tc.Tensor) and ours_too.device == device
    assert isinstance(a @ [1.0, 1.0, 1.0, 1.0], np.ndarray)
    left = np.ones((2, 6), np.float32)
    assert isinstance(left @ a, np.ndarray) and isinstance(left[0] @ a, np.ndarray)
    assert isinstance([1.0] * 6 @ a, np.ndarray)
    ours_left = tc.asarray(left, device=device)
    for of, numpys in [(ours_left @ a, left @ a), (ours_left[0] @ a, left[0] @ a)]:
        assert isinstance(of, tc.Tensor) and of.device == device
        np.testing.assert_array_equal(of.numpy(), numpys)
    out = tc.empty(6, device=device)
    assert tc.sparse.spmv(a, tc.asarray(x, device=device), out=out) is out
    np.testing.assert_array_equal(out.numpy(), a @ x)


class Foreign:
    """An array of a framework that is not here, as torch's are."""

    def __init__(self, array: Any) -> None:
        self.array, self.shape, self.ndim = array, array.shape, array.ndim

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()

    def new_empty(self, shape: Any) -> "Foreign":
        return Foreign(np.empty(shape, self.array.dtype))


def test_a_framework_gets_its_result_in_its_own_memory() -> None:
    theirs = matrix(6, 4, 0.5)
    a, x = ours(theirs, "cpu"), np.ones((4, 3), np.float32)
    for dense in (x, x[:, 0]):
        y = a @ Foreign(dense.copy())
        assert isinstance(y, Foreign)
        np.testing.assert_allclose(y.array, theirs @ dense, rtol=1e-5)


def test_alpha_beta_and_c(device: str) -> None:
    theirs = matrix(30, 20, 0.3)
    a, x = ours(theirs, device), RANDOM.normal(size=20).astype(np.float32)
    c = RANDOM.normal(size=30).astype(np.float32)
    y = theirs @ x
    np.testing.assert_allclose(tc.sparse.spmv(a, x, c), y + c, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(tc.sparse.spmv(a, x, c, 2, -0.5), 2 * y - 0.5 * c, rtol=1e-4, atol=1e-5)
    dense = np.stack([x, -x], axis=1)
    got = tc.sparse.spmm(a, dense, np.stack([c, c], axis=1), alpha=0.5)
    np.testing.assert_allclose(got, 0.5 * (theirs @ dense) + c[:, None], rtol=1e-4, atol=1e-5)


def test_semirings_take_any_expression(device: str) -> None:
    theirs = matrix(50, 50, 0.2)
    a, x, dense = ours(theirs, device), RANDOM.normal(size=50).astype(np.float32), theirs.toarray()
    stored = dense != 0
    for combine, reduce, function, nothing in (
        ("x + a", "min", lambda: np.where(stored, x + dense, np.inf).min(axis=1), np.inf),
        ("x", "max", lambda: np.where(stored, x, -np.inf).max(axis=1), -np.inf),
        ("1 + 0.1 * x * a", "prod", lambda: np.where(stored, 1 + 0.1 * x * dense, 1).prod(axis=1), 1),
        ("where(x > 0, a, 0)", "sum", lambda: np.where(x > 0, dense, 0).sum(axis=1), 0),
    ):
        y = tc.sparse.spmv(a, x, combine=combine, reduce=reduce)
        np.testing.assert_allclose(y, function(), rtol=1e-4, atol=1e-5)
        one = tc.sparse.spmm(a, x[:, None], combine=combine, reduce=reduce)[:, 0]
        np.testing.assert_allclose(one, y, rtol=1e-5, atol=1e-6)
        assert (y[~stored.any(axis=1)] == nothing).all()
    with pytest.raises(ValueError, match=r"spmv: combine: unknown name 'y' in the expression; there are x, a"):
        tc.sparse.spmv(a, x, combine="x * y")
    with pytest.raises(TypeError, match="reduce"):
        tc.sparse.spmv(a, x, reduce=3)


def test_dense_there_and_back_keeps_every_bit(device: str) -> None:
    x = RANDOM.normal(size=(17, 23)).astype(np.float32)
    x[RANDOM.random(x.shape) < 0.7] = 0
    x[3, 4], x[5, 6], x[0] = -0.0, np.nan, 0
    for dtype in ("float32", "float16", "bfloat16"):
        dense = tc.astype(tc.asarray(x, device=device), dtype)
        for format in ("csr", "csc"):
            a = tc.sparse.from_dense(dense, format, index_dtype="int64")
            assert a.format == format and a.indices.dtype == tc.int64
            assert a.nnz == np.count_nonzero(x) + 1  # and -0
            for back in (a, a.to_csr(), a.to_csc(), a.T.T):
                bits = tc.astype(back.to_dense(), "float32").numpy().view(np.int32)
                np.testing.assert_array_equal(bits, tc.astype(dense, "float32").numpy().view(np.int32))


def test_the_transposed_matrix_is_a_view(device: str) -> None:
    a = ours(matrix(9, 5, 0.4), device)
    assert a.T.format == "csc" and a.T.shape == (5, 9) and a.T.data.data_ptr == a.data.data_ptr
    assert a.T is a.T and a.to_csr() is a
    np.testing.assert_array_equal(a.T.to_dense().numpy(), a.to_dense().numpy().T)
    assert a.T.to_csc().indptr.data_ptr == a.indptr.data_ptr


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_copies_and_pickles_are_matrices_of_their_own(format: str, device: str) -> None:
    a = ours(matrix(9, 7, 0.4, format), device)
    wanted = a.to_dense().tolist()
    for made in (a, a.T):
        for other in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
            assert (other.format, other.shape, other.device) == (made.format, made.shape, device)
            assert (other if made is a else other.T).to_dense().tolist() == wanted
    half = tc.sparse.from_dense(a.to_dense().astype(tc.bfloat16), format)  # type: ignore[arg-type]
    assert pickle.loads(pickle.dumps(half)).to_dense().tolist() == half.to_dense().tolist()
    deep = copy.deepcopy(a)
    assert deep.data.data_ptr != a.data.data_ptr


def test_numpy_makes_no_object_of_a_matrix() -> None:
    a = tc.sparse.from_dense(np.eye(3, dtype=np.float32))
    for call in (np.asarray, np.array, np.float32):
        with pytest.raises(tc.errors.TensorCraftTypeError, match=r"sparse\.Matrix: .*to_dense\(\)"):
            call(a)  # type: ignore[operator]
    np.testing.assert_array_equal(np.ones(3, np.float32) @ a, np.ones(3))


def test_scipy_and_dlpack_in_and_out(device: str) -> None:
    for format in ("csr", "coo", "csc"):
        theirs = matrix(12, 8, 0.3).asformat(format)
        a = tc.sparse.from_scipy(theirs, device=device)
        assert a.format == ("csc" if format == "csc" else "csr") and a.device == device
        back = a.to_scipy()
        assert back.format == a.format and (back != theirs).nnz == 0
    theirs = matrix(12, 8, 0.3).astype(np.float64)
    assert tc.sparse.from_scipy(theirs).dtype == tc.float32
    shared = tc.sparse.csc(back.data, back.indices, back.indptr, back.shape, device="cpu")
    assert np.shares_memory(shared.data.numpy(), back.data)
    again = tc.sparse.csc(*(np.from_dlpack(t) for t in (shared.data, shared.indices, shared.indptr)), back.shape)
    np.testing.assert_array_equal(again.to_dense().numpy(), back.toarray())


def test_an_unsorted_scipy_matrix_is_sorted_and_summed() -> None:
    theirs = sparse.csr_array((np.float32([1, 2, 4]), np.int32([2, 0, 2]), np.int32([0, 3])), shape=(1, 3))
    np.testing.assert_array_equal(tc.sparse.from_scipy(theirs).to_dense().numpy(), [[2, 0, 5]])
    assert theirs.nnz == 3


def test_it_knows_its_rows(device: str) -> None:
    indptr = np.int32([0, 5, 5, 6])
    a = tc.sparse.csr(np.ones(6, np.float32), np.int32([0, 1, 2, 3, 4, 2]), indptr, (3, 5), device=device)
    assert a.analysis == (5, 1, 2.0, 2.5)
    assert a.T.analysis.longest_row == 2
    assert repr(a) == f"<sparse.Matrix 3 x 5, 6 stored, float32, csr, int32 on {device}>"


def test_a_skewed_matrix_takes_equal_parts() -> None:
    if "simt" not in tc.devices():
        pytest.skip("built without the emulator")
    rows = [3] * 3000 + [9000]
    indptr = np.concatenate([[0], np.cumsum(rows)]).astype(np.int32)
    indices = np.concatenate([np.arange(n) for n in rows]).astype(np.int32)
    a = tc.sparse.csr(np.ones(indices.size, np.float32), indices, indptr, (3001, 9000), device="simt")
    x = tc.ones(9000, device="simt")
    np.testing.assert_array_equal((a @ x).numpy(), rows)
    chosen = tc.explain(
        tc.spmv, a.data, a.indices, a.indptr, x, longest_row=a.analysis.longest_row, arch="sm_90a"
    ).variant
    assert chosen == "merge_path"


@pytest.mark.parametrize(
    ("indices", "indptr", "text"),
    [
        ([0, 1, 4], [0, 2, 3], r"sparse.csr: indices: row 1 names column 4 \(element 2\), expected one in \[0, 4\)"),
        ([0, -1, 1], [0, 2, 3], r"row 0 names column -1 \(element 1\)"),
        ([2, 1, 3], [0, 2, 3], r"row 0 names column 1 behind 2 \(element 1\), expected ascending order"),
        ([0, 2, 2], [0, 1, 3], r"row 1 names column 2 twice \(element 2\); sum_duplicates=True"),
        ([0, 1, 2], [0, 2, 4], r"indptr: row 1 has the elements 2 to 4, expected the next part of the 3 stored"),
        ([0, 1, 2], [0, 3], r"indptr must have 3 elements, one more than rows, got 2"),
    ],
)
def test_what_is_no_matrix_is_refused(indices: list[int], indptr: list[int], text: str, device: str) -> None:
    with pytest.raises(ValueError, match=text):
        tc.sparse.csr(np.ones(3, np.float32), np.int32(indices), np.int32(indptr), (2, 4), device=device)


def test_duplicates_are_summed_if_asked(device: str) -> None:
    parts = (np.float32([1, 2, 4]), np.int32([1, 1, 0]), np.int32([0, 2, 3]))
    a = tc.sparse.csr(*parts, (2, 2), sum_duplicates=True, device=device)
    np.testing.assert_array_equal(a.to_dense().numpy(), [[0, 3], [4, 0]])


def test_arguments_of_the_wrong_kind_are_named() -> None:
    a = tc.sparse.from_dense(np.eye(3, dtype=np.float32), device="cpu")
    with pytest.raises(ValueError, match=r"sparse.spmv: x: expected 3 elements along its first axis"):
        a @ np.ones(4, np.float32)
    with pytest.raises(TypeError, match=r"sparse.spmv: a must be a sparse.Matrix, got ndarray"):
        tc.sparse.spmv(np.eye(3), np.ones(3, np.float32))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"sparse.csr: shape must be \(rows, cols\), got 3"):
        tc.sparse.csr([1.0], [0], [0, 1], 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match='format must be "csr" or "csc", got "coo"'):
        tc.sparse.from_dense(np.eye(3, dtype=np.float32), "coo")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="sparse.from_scipy: x must be of scipy.sparse, got ndarray"):
        tc.sparse.from_scipy(np.eye(3))


def test_lists_make_a_matrix(device: str) -> None:
    a = tc.sparse.csr([1.0, 2.0], [0, 1], [0, 1, 2], (2, 2), device=device)
    np.testing.assert_array_equal(a @ [10.0, 20.0], [10, 40])
    np.testing.assert_array_equal(a @ [[1.0, 2.0], [3.0, 4.0]], [[1, 2], [6, 8]])
