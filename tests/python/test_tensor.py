# SPDX-License-Identifier: Apache-2.0
"""tc.Tensor against NumPy: creation, views, indexing, assignment, operators, conversions."""

import operator
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tensorcraft as tc

VALUES = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)


def same(tensor: Any, array: Any) -> None:
    assert isinstance(tensor, tc.Tensor)
    np.testing.assert_array_equal(tensor.numpy(), array)
    assert tensor.shape == np.shape(array)


@given(SHAPES)
def test_attributes_are_those_of_numpy(shape: tuple[int, ...]) -> None:
    array = np.zeros(shape, np.int32)
    t = tc.asarray(array)
    assert (t.shape, t.ndim, t.size, t.nbytes) == (array.shape, array.ndim, array.size, array.nbytes)
    assert t.dtype is tc.int32 and t.device == "cpu" and t.is_contiguous
    if array.size > 1:
        assert t.strides == tuple(s // 4 for s in array.strides)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int16", "int32", "int64", "uint8", "bool"])
def test_a_dtype_survives_the_way_through_a_tensor(dtype: str, device: str) -> None:
    array = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    result = tc.asarray(array, device=device).numpy()
    assert result.dtype == array.dtype
    np.testing.assert_array_equal(result, array)


def test_asarray_shares_memory_unless_told_otherwise() -> None:
    array = np.ones(3, np.float32)
    shared, apart = tc.asarray(array), tc.asarray(array, copy=True)
    array[0] = 5
    assert shared[0].item() == 5 and apart[0].item() == 1
    assert tc.asarray(shared) is not None and tc.asarray(shared).data_ptr == shared.data_ptr
    with pytest.raises(ValueError, match="copy=False"):
        tc.asarray(array, dtype=tc.int32, copy=False)
    with pytest.raises(ValueError, match="copy=False"):
        tc.asarray([1.0], copy=False)


def test_lists_and_numbers_become_the_dtypes_a_user_expects() -> None:
    assert tc.asarray([1.0, 2.0]).dtype is tc.float32
    assert tc.asarray([1, 2]).dtype is tc.int64
    assert tc.asarray(True).dtype is tc.bool and tc.asarray(2.5).item() == 2.5
    assert tc.asarray([1, 2], dtype="bfloat16").tolist() == [1.0, 2.0]
    assert tc.asarray([[1], [0]], dtype=tc.bool_).tolist() == [[True], [False]]


def test_float64_is_never_narrowed_in_silence() -> None:
    with pytest.raises(TypeError, match=r"float64 is not supported; convert it.*tc\.asarray\(obj, dtype=tc\.float32\)"):
        tc.asarray(np.zeros(2))
    assert tc.asarray(np.array([0.1]), dtype=tc.float32).dtype is tc.float32


def test_creation(device: str) -> None:
    assert tc.empty((2, 0), device=device).shape == (2, 0)
    same(tc.zeros((2, 3), device=device), np.zeros((2, 3)))
    same(tc.ones(4, dtype=tc.int64, device=device), np.ones(4))
    same(tc.full((2, 2), 7, dtype="float16", device=device), np.full((2, 2), 7))
    same(tc.arange(2, 10, 3, device=device), np.arange(2, 10, 3))
    assert tc.arange(0.0, 1.0, 0.25, device=device).tolist() == [0, 0.25, 0.5, 0.75]
    x = tc.ones((2, 3), dtype=tc.float16, device=device)
    for like in (tc.empty_like(x), tc.zeros_like(x), tc.ones_like(x), tc.full_like(x, 2)):
        assert (like.shape, like.dtype, like.device) == (x.shape, x.dtype, x.device)


KEYS: list[Any] = [
    0, -1, slice(None), slice(1, None), slice(None, None, 2), (0, 2), (0, 2, -1), ..., (..., 0), (0, ..., 1), None,
    (None, 1), slice(None, None, -1), (0, slice(9, None, -2), slice(1, 0, -1)), (slice(None), None, 2), (slice(5, 1),), (1, slice(0, 2), slice(1, 4, 2)), (..., None), (),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_indexing_gives_numpys_views(key: Any, device: str) -> None:
    same(tc.asarray(VALUES, device=device)[key], VALUES[key])


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_assignment_writes_what_numpy_writes(key: Any, device: str) -> None:
    expected, t = VALUES.copy(), tc.asarray(VALUES, device=device, copy=True)
    expected[key] = -1
    t[key] = -1
    same(t, expected)
    source = np.full(expected[key].shape, 3, np.int32)
    expected[key] = source
    t[key] = source
    same(t, expected)


def test_assignment_reads_before_it_writes(device: str) -> None:
    array = np.arange(12, dtype=np.float32).reshape(4, 3)
    t = tc.asarray(array.copy()).to(device)
    t[:, 0], t[1:], t[0] = t[:, 1], t[:-1], t[0] + 1
    array[:, 0], array[1:], array[0] = array[:, 1], array[:-1], array[0] + 1
    same(t, array)


def test_float64_goes_to_the_dtype_asked_for_at_once() -> None:
    array = np.array([16777217.0, 2.0**40 + 1])
    same(tc.asarray(array, dtype=tc.int64), array.astype(np.int64))
    same(tc.arange(16777217.0, 16777220.0, dtype=tc.int64), np.arange(16777217, 16777220))


def test_a_view_shares_memory_and_keeps_its_owner_alive() -> None:
    view = tc.asarray(VALUES.copy())[1, :, ::2]
    same(view, VALUES[1, :, ::2])
    t = tc.zeros((3, 3), device="cpu")
    row = t[1]
    row[:] = 4
    assert t.tolist() == [[0, 0, 0], [4, 4, 4], [0, 0, 0]]


def test_bad_indices() -> None:
    t = tc.asarray(VALUES)
    with pytest.raises(IndexError, match="out of bounds for axis 0 with size 2"):
        t[2]
    with pytest.raises(IndexError, match="too many indices: the tensor has 3 dimensions, 4 were given"):
        t[0, 0, 0, 0]
    with pytest.raises(IndexError, match="one ellipsis"):
        t[..., ...]
    with pytest.raises(TypeError, match="indexed by integers, slices, ..., None, integer arrays and bool arrays, not str"):
        t["a"]
    with pytest.raises(TypeError, match="not bool"):
        t[True]


def test_shape_changes_are_those_of_numpy(device: str) -> None:
    t = tc.asarray(VALUES, device=device)
    same(t.reshape(6, -1), VALUES.reshape(6, -1))
    same(t.reshape((4, 6)), VALUES.reshape(4, 6))
    same(t.permute_dims(2, 0, 1), VALUES.transpose(2, 0, 1))
    same(t.permute_dims((1, 0, 2)).reshape(24), VALUES.transpose(1, 0, 2).reshape(24))
    same(t.mT, VALUES.swapaxes(1, 2))
    same(t[0].T, VALUES[0].T)
    same(t.expand_dims(1), VALUES[:, None])
    same(t.expand_dims(0).expand_dims(-1).squeeze(), VALUES)
    same(t[:, :1].squeeze(1), VALUES[:, 0])
    same(t.mT.contiguous(), VALUES.swapaxes(1, 2))
    assert t.mT.contiguous().is_contiguous and t.contiguous() is t
    with pytest.raises(ValueError, match="does not hold the 24 elements"):
        t.reshape(5, 5)
    with pytest.raises(ValueError, match="T: the tensor has 3 dimensions"):
        _ = t.T


BINARY = [operator.add, operator.sub, operator.mul, operator.truediv]
FLOATS = st.floats(-100, 100, width=16)


@settings(deadline=None)
@given(st.data(), st.sampled_from(BINARY))
def test_arithmetic_broadcasts_as_numpy_does(data: st.DataObject, op: Any) -> None:
    shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, min_side=0))
    a, b = (data.draw(hnp.arrays(np.float32, s, elements=FLOATS)) for s in shapes.input_shapes)
    with np.errstate(all="ignore"):
        expected = op(a, b)
    result = op(tc.asarray(a), tc.asarray(b))
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6)
    assert result.shape == expected.shape


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int64"])
@pytest.mark.parametrize("op", BINARY)
def test_a_python_number_takes_the_dtype_beside_it(op: Any, dtype: str) -> None:
    array = np.array([1, 2, 4]).astype(dtype)
    t = tc.asarray(array)
    wanted = "float32" if op is operator.truediv and dtype.startswith("int") else dtype
    for result, expected in ((op(t, 2), op(array, 2)), (op(8, t), op(8, array))):
        assert result.dtype.name == wanted
        np.testing.assert_allclose(result.numpy(), expected)
    assert op(t, 0.5).dtype.name == (dtype if dtype.startswith("float") else "float32")


def test_promotion() -> None:
    def one(dtype: Any) -> Any:
        return tc.ones(2, dtype=dtype, device="cpu")

    assert (one("float16") + one("bfloat16")).dtype is tc.float32
    assert (one("bfloat16") + one("float32")).dtype is tc.float32
    assert (one("int32") + one("float16")).dtype is tc.float16
    assert (one("int32") + one("int64")).dtype is tc.int64
    assert (one("int8") + one("uint8")).dtype is tc.int16
    assert (one("int8") + one("float32")).dtype is tc.float32
    assert (one("bfloat16") * 3).dtype is tc.bfloat16
    for never in ("float8_e4m3fn", "float8_e5m2", "bool"):
        with pytest.raises(TypeError, match=never):
            one(never) + one("float32")


def test_in_place_forms_write_into_the_tensor(device: str) -> None:
    t = tc.asarray(VALUES, device=device, copy=True)
    pointer, alias = t.data_ptr, t
    t += 2
    t *= tc.asarray(VALUES, device=device)
    t -= 1.0
    t /= 2
    assert t is alias and t.data_ptr == pointer
    np.testing.assert_allclose(t.numpy(), ((VALUES + 2) * VALUES - 1) / 2)


def test_matrix_product_is_numpys(device: str) -> None:
    a, b = VALUES, VALUES.swapaxes(1, 2)
    np.testing.assert_allclose((tc.asarray(a, device=device) @ tc.asarray(b, device=device)).numpy(), a @ b)
    x, y = tc.asarray(a[0], device=device), tc.asarray(b[0], device=device)
    np.testing.assert_allclose((x @ y).numpy(), a[0] @ b[0])


def test_numpy_leaves_mixed_expressions_to_the_tensor() -> None:
    t = tc.asarray(VALUES)
    for result in (VALUES * t, t * VALUES, np.float32(2) * t, t + [[1.0] * 4] * 3):
        assert isinstance(result, tc.Tensor)
    same(VALUES * t, VALUES * VALUES)
    with pytest.raises(TypeError):
        t + "text"


def test_negation_and_numbers() -> None:
    t = tc.asarray([3.0])
    assert (-t).item() == -3 and float(t) == 3 and int(t) == 3 and bool(t) and not bool(t - 3)
    with pytest.raises(ValueError, match="bool: the truth of 2 elements; use tc.any or tc.all"):
        bool(tc.asarray([1.0, 2.0]))


def test_iteration_and_length() -> None:
    t = tc.asarray(VALUES)
    assert len(t) == 2
    for row, expected in zip(t, VALUES, strict=True):
        same(row, expected)
    for refused in (len, iter):
        with pytest.raises(TypeError, match="rank 0"):
            refused(tc.asarray(1.0))


def test_conversions_to_numpy_and_lists(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    t = tc.asarray(VALUES, device=device)
    assert t.tolist() == VALUES.tolist()
    np.testing.assert_array_equal(np.asarray(t), VALUES)
    assert np.asarray(t, dtype=np.int64).dtype == np.int64
    np.testing.assert_array_equal(np.asarray(t.astype(tc.bfloat16)), VALUES)
    assert t.__array_namespace__() is tc
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(TypeError, match="NumPy has no bfloat16"):
        t.astype(tc.bfloat16).numpy()


def test_repr_shows_values_shape_dtype_and_device() -> None:
    assert repr(tc.asarray([[1.5, 2.0]], device="cpu")) == "Tensor([[1.5, 2. ]], shape=(1, 2), dtype=float32, device='cpu')"
    assert "..." in repr(tc.zeros(1000, device="cpu"))
    assert "dtype=bool" in repr(tc.asarray([True], device="cpu"))


def test_moving_a_tensor(device: str) -> None:
    t = tc.asarray(VALUES, device=device)
    assert t.to(device) is t
    same(t.mT.to("cpu"), VALUES.swapaxes(1, 2))


def test_a_copy_has_memory_of_its_own(device: str) -> None:
    t = tc.asarray(VALUES, device=device)
    c = t.copy()
    assert c.data_ptr != t.data_ptr
    same(c, VALUES)
    same(t.astype(tc.int32), VALUES.astype(np.int32))
