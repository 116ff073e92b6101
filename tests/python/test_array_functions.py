# SPDX-License-Identifier: Apache-2.0
"""Functions of the array API that are written in Python: values as NumPy's, which has them under the same names."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorcraft as tc

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 7
M = np.array([[True, False, True], [False, True, True]])
V = np.array([3, -1, 2, 0, 2], np.int64)
SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 7.5, -7.5, np.inf, -np.inf, np.nan], np.float32
)
SORTED = np.array([-np.inf, -7.5, -1, -1, 0, 0.5, 3, 3, 3, 9, np.inf, np.nan, np.nan], np.float32)
CASES: dict[str, Callable[[Any, Any], Any]] = {
    "reshape": lambda xp, a: xp.reshape(a(X), (4, -1)),
    "reshape of a view": lambda xp, a: xp.reshape(a(X).mT, 24),
    "reshape copy": lambda xp, a: xp.reshape(a(X), (24,), copy=True),
    "squeeze": lambda xp, a: xp.squeeze(a(X[:, :1, None]), (1, -2)),
    "expand_dims": lambda xp, a: xp.expand_dims(a(X), axis=-2),
    "broadcast_to": lambda xp, a: xp.broadcast_to(a(X[:, :1]), (2, 2, 3, 4)),
    "broadcast_arrays": lambda xp, a: xp.broadcast_arrays(a(X), a(X[0, :, :1]), a(V[:4])),
    "broadcast_shapes": lambda xp, a: np.array(xp.broadcast_shapes((2, 1), (1, 3), ())),
    "flip": lambda xp, a: xp.flip(a(X)),
    "flip axes": lambda xp, a: xp.flip(a(X), axis=(0, -1)),
    "flip twice": lambda xp, a: xp.flip(xp.flip(a(X), axis=1), axis=1),
    "moveaxis": lambda xp, a: xp.moveaxis(a(X), (0, 1), (-1, 0)),
    "permute_dims": lambda xp, a: xp.permute_dims(a(X), axes=(2, 0, 1)),
    "roll": lambda xp, a: xp.roll(a(X), -5),
    "roll axes": lambda xp, a: xp.roll(a(X), (1, -6), axis=(0, 2)),
    "roll nothing": lambda xp, a: xp.roll(a(X[:0]), 3, axis=0),
    "repeat": lambda xp, a: xp.repeat(a(X), 3),
    "repeat axis": lambda xp, a: xp.repeat(a(X), 2, axis=1),
    "repeat each": lambda xp, a: xp.repeat(a(X), a(np.array([2, 0, 3])), axis=1),
    "repeat none": lambda xp, a: xp.repeat(a(X), a(np.array([0, 0, 0])), axis=1),
    "tile": lambda xp, a: xp.tile(a(X), (2, 1, 1, 3)),
    "tile short": lambda xp, a: xp.tile(a(X), (2,)),
    "tile none": lambda xp, a: xp.tile(a(X), (0, 1)),
    "unstack": lambda xp, a: xp.unstack(a(X), axis=1),
    "concat flat": lambda xp, a: xp.concat([a(X), a(X[0, 1])], axis=None),
    "concat mixed": lambda xp, a: xp.concat([a(V), a(V[:1].astype(np.int8)), a(V[1:].astype(np.int32))]),
    "meshgrid": lambda xp, a: xp.meshgrid(a(V), a(V[:2]), a(V[:3])),
    "meshgrid ij": lambda xp, a: xp.meshgrid(a(V), a(V[:2]), indexing="ij"),
    "tril": lambda xp, a: xp.tril(a(X), k=-1),
    "triu": lambda xp, a: xp.triu(a(X), k=1),
    "triu of bool": lambda xp, a: xp.triu(a(M)),
    "tril of int8": lambda xp, a: xp.tril(a(X.astype(np.int8)), k=2),
    "diff": lambda xp, a: xp.diff(a(X), axis=1, n=2),
    "diff to nothing": lambda xp, a: xp.diff(a(V), n=9),
    "diff with ends": lambda xp, a: xp.diff(a(V), prepend=a(V[:1]), append=a(V[:2])),
    "nonzero": lambda xp, a: xp.nonzero(a(X * (X % 3))),
    "nonzero of a mask": lambda xp, a: xp.nonzero(a(M)),
    "nonzero of none": lambda xp, a: xp.nonzero(a(np.zeros((3, 2), np.float32))),
    "searchsorted": lambda xp, a: xp.searchsorted(a(SORTED), a(SPECIAL)),
    "searchsorted right": lambda xp, a: xp.searchsorted(a(SORTED), a(X), side="right"),
    "searchsorted sorter": lambda xp, a: xp.searchsorted(a(V), a(V[:3]), sorter=a(np.argsort(V))),
    "searchsorted in nothing": lambda xp, a: xp.searchsorted(a(V[:0]), a(V)),
    "cumulative_prod": lambda xp, a: xp.cumulative_prod(a(X / 4), axis=1),
    "cumulative_prod initial": lambda xp, a: xp.cumulative_prod(a(V[:3]), include_initial=True),
    "cumulative_prod of nothing": lambda xp, a: xp.cumulative_prod(a(X[:, :0]), axis=1),
    "clip": lambda xp, a: [xp.clip(a(X), 0, 3), xp.clip(a(X), max=0), xp.clip(a(X))],
    "clip by arrays": lambda xp, a: [xp.clip(a(X), a(X[0]), a(X[1, 1])), xp.clip(a(V), max=a(V[::-1])), xp.clip(a(X), 2, a(X[1]))],
    "matmul": lambda xp, a: xp.matmul(a(X), a(X).mT),
    "matrix times vector": lambda xp, a: xp.matmul(a(X), a(X[0, 0])),
    "vector times matrix": lambda xp, a: xp.matmul(a(X[0, :, 0]), a(X)),
    "vector times vector": lambda xp, a: xp.matmul(a(X[0, 0]), a(X[1, 2])),
    "matmul of int8": lambda xp, a: xp.matmul(a(X[0].astype(np.int8)), a((20 * X[1]).astype(np.int8)).mT),
    "matmul of int64": lambda xp, a: xp.matmul(a(V * 2**40), a(V)),
    "matmul of nothing": lambda xp, a: xp.matmul(a(X[:, :, :0]), a(X[:, :0, :])),
    "operator @": lambda xp, a: a(X) @ a(V[:4].astype(np.float32)),
    "vecdot": lambda xp, a: xp.vecdot(a(X), a(X[1:, :1])),
    "vecdot axis": lambda xp, a: xp.vecdot(a(X), a(X), axis=-3),
    "tensordot": lambda xp, a: xp.tensordot(a(X), a(X), axes=((0, 2), (0, 2))),
    "tensordot number": lambda xp, a: xp.tensordot(a(X), a(X[0].T.copy()), axes=1),
    "tensordot outer": lambda xp, a: xp.tensordot(a(X[0, 0]), a(X[0]), axes=0),
    "matrix_transpose": lambda xp, a: xp.matrix_transpose(a(X)),
    "outer": lambda xp, a: xp.linalg.outer(a(X[0, 0]), a(X[0, :, 0])),
    "diagonal": lambda xp, a: xp.linalg.diagonal(a(X), offset=1),
    "diagonal below": lambda xp, a: xp.linalg.diagonal(a(X), offset=-2),
    "diagonal outside": lambda xp, a: xp.linalg.diagonal(a(X), offset=9),
    "trace": lambda xp, a: xp.linalg.trace(a(X), offset=-1),
    "vector_norm": lambda xp, a: xp.linalg.vector_norm(a(X), axis=(0, 2)),
    "vector_norm 1": lambda xp, a: xp.linalg.vector_norm(a(X), axis=1, ord=1, keepdims=True),
    "vector_norm inf": lambda xp, a: xp.linalg.vector_norm(a(X), ord=math.inf),
    "vector_norm -inf": lambda xp, a: xp.linalg.vector_norm(a(X), axis=0, ord=-math.inf),
    "vector_norm 0": lambda xp, a: xp.linalg.vector_norm(a(X), axis=0, ord=0),
    "vector_norm 3": lambda xp, a: xp.linalg.vector_norm(a(X), axis=0, ord=3),
    "matrix_norm": lambda xp, a: xp.linalg.matrix_norm(a(X)),
    "matrix_norm 1": lambda xp, a: xp.linalg.matrix_norm(a(X), ord=1),
    "matrix_norm -1": lambda xp, a: xp.linalg.matrix_norm(a(X), ord=-1, keepdims=True),
    "matrix_norm inf": lambda xp, a: xp.linalg.matrix_norm(a(X), ord=math.inf),
    "astype": lambda xp, a: xp.astype(a(X), xp.int32),
    "mask and": lambda xp, a: a(M) & ~a(M)[::-1],
    "mask or": lambda xp, a: a(M) | a(M)[:, ::-1],
    "mask xor": lambda xp, a: a(M) ^ True,
    "integer &": lambda xp, a: a(V) & 3,
    "integer |": lambda xp, a: 4 | a(V),
    "integer ~": lambda xp, a: ~a(V),
    "integer <<": lambda xp, a: a(V) << 2,
    "integer >>": lambda xp, a: a(V) >> 1,
    "reflected <<": lambda xp, a: 1 << a(abs(V)),
    "%": lambda xp, a: a(X) % 3,
    "integer %": lambda xp, a: a(V) % a(np.full(5, -2)),
    "reflected %": lambda xp, a: 7 % a(V[:3]),
    "//": lambda xp, a: a(X) // 2.5,
    "integer //": lambda xp, a: a(V) // -2,
    "divmod": lambda xp, a: divmod(a(V), 2),
    "reflected divmod": lambda xp, a: divmod(7, a(V[:3])),
    "unary +": lambda xp, a: +a(X),
    "methods": lambda xp, a: [a(X).sum(), a(X).mean(1), a(X).max(axis=2), a(X).min(), a(X).argmax(axis=0)],
    "bool methods": lambda xp, a: [a(M).any(0), a(M).all(axis=1, keepdims=True)],
    "round, clip, take, nonzero": lambda xp, a: [a(X / 3).round(), a(X).clip(-2, 5), a(V).take(a(np.array([0, -1])))],
}  # fmt: skip


def check_same(found: Any, wanted: Any) -> None:
    if isinstance(wanted, (list, tuple)):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            check_same(one, other)
        return
    assert np.shape(found) == np.shape(wanted)
    np.testing.assert_allclose(np.asarray(found).astype(np.float64), np.asarray(wanted).astype(np.float64), 2e-6, 1e-6)


@pytest.mark.parametrize("case", CASES)
def test_values_are_numpys(case: str, device: str) -> None:
    wanted = CASES[case](np, lambda x: x)
    found = CASES[case](tc, lambda x: tc.asarray(x, device=device))
    one = found[0] if isinstance(found, (list, tuple)) else found
    assert isinstance(one, np.ndarray) or (isinstance(one, tc.Tensor) and one.device == device)
    check_same(found, wanted)


@pytest.mark.parametrize("case", [c for c in CASES if "method" not in c and ", " not in c and "operator" not in c])
def test_arrays_of_numpy_come_back(case: str) -> None:
    found = CASES[case](tc, lambda x: x)
    assert not isinstance(found, tc.Tensor)
    check_same(found, CASES[case](np, lambda x: x))


def test_in_place_operators(device: str) -> None:
    array, t = V.copy(), tc.asarray(V, device=device, copy=True)
    same = t
    for x in (array, t):
        x %= 3
        x //= 2
        x <<= 4
        x |= 1
        x ^= 3
        x &= 255
        x >>= 1
        x **= 2
    assert same is t
    np.testing.assert_array_equal(t.numpy(), array)
    a, b = tc.asarray(X[0, :, :3], device=device, copy=True), tc.asarray(X[1, :, :3], device=device)
    wanted = X[0, :, :3] @ X[1, :, :3]
    a @= b
    np.testing.assert_allclose(a.numpy(), wanted)
    with pytest.raises(ValueError, match="the product has shape"):
        b @= tc.ones((3, 2), device=device)


def test_in_place_operators_read_before_they_write(device: str) -> None:
    array = np.arange(9, dtype=np.float32).reshape(3, 3)
    t = tc.asarray(array, device=device, copy=True)
    array += array.T.copy()
    t += t.T
    array[1:] -= array[:-1].copy()
    t[1:] -= t[:-1]
    array *= array
    t *= t
    np.testing.assert_array_equal(t.numpy(), array)


def test_what_does_not_fit_is_refused() -> None:
    x = tc.asarray(X)
    for call, error, text in (
        (lambda: tc.reshape(x.mT, 24, copy=False), ValueError, "copy=False, but x is not contiguous"),
        (lambda: tc.expand_dims(x, axis=5), IndexError, "axis must be in"),
        (lambda: tc.flip(x, axis=(1, -2)), ValueError, "names one axis twice"),
        (lambda: tc.broadcast_shapes((2,), (3,)), ValueError, "do not broadcast"),
        (lambda: tc.moveaxis(x, (0, 1), 2), ValueError, "2 axes have 1 destinations"),
        (lambda: tc.roll(x, (1, 2), axis=0), ValueError, "1 axes have 2 shifts"),
        (lambda: tc.repeat(x, -1), ValueError, "must not be negative"),
        (lambda: tc.repeat(x, [1, 2], axis=1), ValueError, "one for each of 3"),
        (lambda: tc.repeat(x, [1, -2, 3], axis=1), ValueError, "must not be negative"),
        (lambda: tc.tile(x, (-1,)), ValueError, "must not be negative"),
        (lambda: tc.meshgrid(x, indexing="yx"), ValueError, 'must be "xy" or "ij"'),
        (lambda: tc.tril(x[0, 0]), ValueError, "at least 2 dimensions"),
        (lambda: tc.nonzero(tc.asarray(1.0)), ValueError, "x has no axis"),
        (lambda: tc.matmul(x, 2.0), ValueError, "use multiply"),
        (lambda: tc.matmul(tc.asarray(V), tc.asarray(V[:2])), ValueError, "they must be equal"),
        (lambda: tc.vecdot(x, x, axis=0), ValueError, "axis must be negative"),
        (lambda: tc.tensordot(x, x, axes=1), ValueError, "Size mismatch"),
        (lambda: tc.linalg.matrix_norm(x, ord="nuc"), NotImplementedError, "'nuc' is not there"),
        (lambda: tc.linalg.vector_norm(tc.asarray(V)), TypeError, "convert it with astype"),
        (lambda: tc.linspace(0, 1, -1), ValueError, "num an integer from 0 on"),
        (lambda: tc.eye(-1), ValueError, "must not be negative"),
        (lambda: x[x.sum()], TypeError, "must be of integers or bool"),
        (lambda: x[tc.asarray(M[:, :2])], IndexError, "does not fit axes"),
        (lambda: x[tc.asarray([5])], IndexError, r"element 0 is 5, expected \[-2, 2\)"),
        (lambda: x[tc.asarray([0, 1]), tc.asarray([0, 3])], IndexError, r"element 1 is 6, expected \[-6, 6\)"),
    ):  # fmt: skip
        with pytest.raises(error, match=text):
            call()


def norm_of(x: Any, ord: float) -> float:
    """In double, of elements that the largest or smallest divides."""
    sizes = np.abs(np.asarray(x, np.float64))
    if ord == 0 or not np.isfinite(sizes).all() or (ord < 0 and sizes.min() == 0):
        return float(np.linalg.norm(sizes, ord))
    scale = (sizes.max() if ord > 0 else sizes.min()) or 1.0
    return float(((sizes / scale) ** ord).sum() ** (1 / ord) * scale)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_norms_are_those_of_double_rounded_once(dtype: str, device: str) -> None:
    largest, least = tc.finfo(dtype).max, tc.finfo(dtype).smallest_normal
    cases: list[Any] = [
        [100.0] * 300, [8.4, 7.0], [3.0, -4.0], [largest / 4] * 3, [least] * 5, [least / 4, 0.0, least], [0.0, 0.0], [0.0, 5.0],
        [largest, least], [math.inf, 1.0], [-math.inf, math.inf], [math.nan, 1.0], [1.0 + 1 / 128] * 1000,
    ]  # fmt: skip
    for case in cases:
        x = tc.asarray(case, dtype, device)
        for ord in (2, 6, 3.5, 0.5, -1, -2, 40):
            found = tc.linalg.vector_norm(x, ord=ord)
            with np.errstate(all="ignore"):
                wanted = tc.asarray(norm_of(x, ord), dtype=dtype).item()
            assert found.dtype == dtype
            assert np.isclose(found.item(), wanted, 1.1 * tc.finfo(dtype).eps, 0, equal_nan=True) or (
                abs(found.item() - wanted) <= tc.finfo(dtype).eps * least
            ), f"{case[:3]}, ord {ord}: {found.item()}, expected {wanted}"
        matrix = tc.linalg.matrix_norm(x.reshape((1, -1))).item()
        assert matrix == tc.linalg.vector_norm(x).item() or (math.isnan(matrix) and math.isnan(norm_of(x, 2)))
    x = tc.asarray(np.arange(24.0).reshape(2, 3, 4), dtype, device)
    for axis, keepdims in ((0, False), ((0, 2), True), (None, True), ((), False)):
        want = np.abs(np.arange(24.0).reshape(2, 3, 4)) if axis == () else np.linalg.norm(
            np.arange(24.0).reshape(2, 3, 4).transpose(1, 0, 2).reshape(3, 8) if axis == (0, 2) else
            np.arange(24.0).reshape(24) if axis is None else np.arange(24.0).reshape(2, 3, 4),
            axis=1 if axis == (0, 2) else 0,
        )  # fmt: skip
        found = tc.linalg.vector_norm(x, axis=axis, keepdims=keepdims)
        if keepdims:
            assert found.shape == tuple(1 if axis is None or a in axis else n for a, n in enumerate(x.shape))
        np.testing.assert_allclose(np.asarray(found, np.float64).ravel(), want.ravel(), 2 * tc.finfo(dtype).eps)
    assert tc.linalg.vector_norm(tc.zeros((3, 0), dtype, device), axis=1).tolist() == [0, 0, 0]


def test_what_is_no_order_of_a_norm_is_named() -> None:
    x = tc.ones((2, 2))
    for ord, error in ((None, tc.errors.TensorCraftTypeError), ("fro", tc.errors.TensorCraftTypeError), (math.nan, ValueError)):
        with pytest.raises(error, match="vector_norm: ord must be"):
            tc.linalg.vector_norm(x, ord=ord)  # type: ignore[arg-type]
    with pytest.raises(tc.errors.Unsupported, match=r"matrix_norm: ord \[2\]"):
        tc.linalg.matrix_norm(x, ord=[2])  # type: ignore[arg-type]


def test_diff_of_no_differences_is_x(device: str) -> None:
    x = tc.asarray([1, 2], device=device)
    assert tc.diff(x, n=0, prepend=[9]).tolist() == [1, 2] and tc.diff(x, n=0, append=[9]).tolist() == [1, 2]
    assert tc.diff(x, n=1, prepend=[9]).tolist() == [-8, 1] and tc.diff(x, n=2**70).tolist() == []


def test_diagonals_are_of_any_integer(device: str) -> None:
    for k in (2**70, -(2**70)):
        assert not tc.any(tc.eye(20, 8, k=k, dtype="bool", device=device)).item()
        x = tc.ones((2, 3), device=device)
        assert tc.sum(tc.tril(x, k=k)).item() == (6 if k > 0 else 0)
        assert tc.sum(tc.triu(x, k=k)).item() == (0 if k > 0 else 6)


def test_integers_are_not_cut_from_floats() -> None:
    x = tc.asarray([1.0, 2.0])
    for call, text in (
        (lambda: tc.repeat(x, 2.5), r"repeat: repeats must be an integer.* got 2\.5"),
        (lambda: tc.repeat(x, [1.9, 1]), r"repeat: repeats must be an integer.* got float32"),
        (lambda: tc.repeat(x, np.float32(2)), r"repeat: repeats must be an integer.* got float32"),
        (lambda: tc.tensordot(x, x, axes=1.5), r"tensordot: axes must be an integer or a pair of lists of axes, got 1\.5"),
        (lambda: tc.tensordot(x, x, axes=([0.5], [0])), "tensordot: axis must be an integer"),
        (lambda: tc.sparse.csr([1.0], [0], [0, 1, 1], (2.9, 2)), r"sparse.csr: shape must be \(rows, cols\), got .*two integers"),
        (lambda: tc.sparse.csc([1.0], [0], [0, 1, 1], (2, 2.0)), r"sparse.csc: shape must be \(rows, cols\), got .*two integers"),
        (lambda: tc.tile(x, 2.5), "tile: repetitions must be an integer"),
        (lambda: tc.roll(x, 1.5), "roll: shift must be an integer"),
        (lambda: tc.diff(x, n=1.5), "diff: n must be an integer"),
        (lambda: tc.eye(2.5), "eye: n_rows must be an integer"),
        (lambda: x.reshape(2.0), "integer"),
        (lambda: tc.zeros((2.5,)), "integer"),
        (lambda: tc.topk(x, 1.5), "topk: k must be an int, got a float"),
    ):  # fmt: skip
        with pytest.raises(tc.errors.TensorCraftTypeError, match=text):
            call()
    assert tc.repeat(x, [True, False]).tolist() == [1.0] and tc.repeat(x[:0], []).tolist() == []


def test_products_name_what_is_no_array() -> None:
    x = tc.ones((2, 2))
    for call, text in (
        (lambda: tc.matmul(np.float32, x), "matmul: x1 must be an array .*, got float32"),
        (lambda: tc.matmul(x, object()), "matmul: x2 must be an array .*, got object"),
        (lambda: tc.matmul(None, x), "matmul: x1 must be an array .*, got NoneType"),
    ):
        with pytest.raises(tc.errors.TensorCraftTypeError, match=text):
            call()


# ---- creation


def test_what_no_memory_holds_is_said(device: str) -> None:
    with pytest.raises(tc.errors.OutOfMemory, match="arange: out of host memory"):
        tc.arange(10**15, device=device)
    with pytest.raises(tc.errors.OutOfMemory, match="linspace: out of host memory"):
        tc.linspace(0, 1, 10**15, device=device)


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "int8", "bfloat16"])
def test_eye(dtype: str, device: str) -> None:
    for shape in ((3,), (2, 5), (4, 0), (5, 2)):
        for k in (-2, 0, 1, 9):
            found = tc.eye(*shape, k=k, dtype=dtype, device=device)
            assert (found.dtype, found.device) == (getattr(tc, dtype), device)
            np.testing.assert_array_equal(np.asarray(found).astype(np.float32), np.eye(*shape, k=k))
    assert tc.eye(2).dtype is tc.float32


def test_linspace(device: str) -> None:
    for arguments in ((0, 1, 5), (3, -2, 7), (1.5, 1.5, 1), (0, 9, 0)):
        for endpoint in (True, False):
            found = tc.linspace(*arguments, device=device, endpoint=endpoint)
            np.testing.assert_allclose(found.numpy(), np.linspace(*arguments, endpoint=endpoint), 1e-6, 1e-6)
    assert tc.linspace(0, 10, 3, dtype=tc.int64).tolist() == [0, 5, 10]


def test_full_takes_the_dtype_of_its_value() -> None:
    assert tc.full(2, True).dtype is tc.bool and tc.full((), fill_value=7).dtype is tc.int64
    assert tc.full(2, 1.5).dtype is tc.float32 and tc.full(2, 3, dtype=tc.int8).dtype is tc.int8
    assert tc.full(1, 2**24 + 1).item() == 2**24 + 1
    assert tc.full_like(tc.zeros(2, dtype=tc.int16), fill_value=3).tolist() == [3, 3]
    assert tc.zeros(2, dtype=None).dtype is tc.ones(2, dtype=None).dtype is tc.empty(2, dtype=None).dtype is tc.float32


def test_astype_and_from_dlpack_copy_as_told() -> None:
    x = tc.asarray(X.copy())
    assert tc.astype(x, tc.float32, copy=False) is x and x.astype(tc.float32, copy=False) is x
    assert tc.astype(x, tc.float32).data_ptr != x.data_ptr and tc.astype(x, tc.int8, copy=False).dtype is tc.int8
    assert tc.from_dlpack(x).data_ptr == x.data_ptr != tc.from_dlpack(x, copy=True).data_ptr
    for device in tc.devices():
        assert tc.from_dlpack(X, device=device).device == device
        assert x.to_device(device, stream=None).device == device


def test_explain_and_numpy_know_the_functions_over_operators() -> None:
    t = tc.asarray(X[0], device="cpu")
    assert tc.explain(tc.matmul, t, t.mT).op == "gemm" and tc.explain(tc.astype, t, "int8").op == "astype"
    assert tc.explain(tc.clip, t, 0, 1).op == "clip" and t.clip(0, 1).shape == t.shape
    np.testing.assert_allclose((X[0, :, 0] @ t).numpy(), X[0, :, 0] @ X[0])
    np.testing.assert_allclose(np.arctan2(t, 2).numpy(), np.arctan2(X[0], 2), 1e-6)
    np.testing.assert_array_equal(np.left_shift(tc.asarray(V), 2).numpy(), V << 2)
