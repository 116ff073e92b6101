# SPDX-License-Identifier: Apache-2.0
"""What Python and NumPy ask of a tc.Tensor: `in`, copies, pickling, format(), round(), index, __array__, ufuncs."""

import copy
import operator
import pickle
from typing import Any

import numpy as np
import pytest
from valid_calls import valid_call

import tensorcraft as tc

X = np.arange(12, dtype=np.float32).reshape(3, 4)
DTYPES = ["float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int8", "int16", "int32", "int64", "uint8", "bool"]


def same(a: Any, b: Any) -> None:
    assert isinstance(a, tc.Tensor) and (a.dtype, a.shape, a.device) == (b.dtype, b.shape, b.device)
    assert a.tolist() == b.tolist()


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_tensor_can_be_copied_and_pickled(dtype: str, device: str) -> None:
    whole = tc.asarray(X, device=device).astype(dtype)
    for t in (whole, whole.T, whole[1:, ::2], whole[0, 0], whole[:0]):
        for other in (copy.copy(t), copy.deepcopy(t), *(pickle.loads(pickle.dumps(t, p)) for p in range(6))):
            same(other, t)
            assert t.size == 0 or other.data_ptr != t.data_ptr
            other[...] = 0  # writable, and of its own
        assert whole[2, 3].item() != 0


def test_a_deep_copy_keeps_what_is_shared_within_it() -> None:
    t = tc.asarray(X)
    first, second = copy.deepcopy([t, t])
    assert first is second and first is not t


def test_a_pickle_for_a_device_that_is_not_here_is_read_to_the_cpu() -> None:
    function, (values, dtype, _) = tc.asarray(X).__reduce__()
    assert function(values, dtype, "cuda:77").device == "cpu"


@pytest.mark.parametrize("name", sorted(tc.ops()))
def test_results_with_several_parts_can_be_pickled(name: str) -> None:
    arguments, options = valid_call(name)
    found = tc.ops()[name].function(*arguments, **options, device="cpu")
    if not isinstance(found, tuple):
        return
    other = pickle.loads(pickle.dumps(found))
    assert type(other) is type(found)
    for a, b in zip(other, found, strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("value", [3.0, 99.0, 2, True, float("nan"), [0.0, 1.0, 2.0, 3.0], [5.0]])
def test_in_is_numpys(value: Any, device: str) -> None:
    assert (value in tc.asarray(X, device=device)) == (value in X)
    if device == "cpu":
        assert (np.float32(value) in tc.asarray(X)) == (np.float32(value) in X)


def test_in_of_what_is_no_number_is_false() -> None:
    t = tc.asarray(X)
    assert object() not in t and "x" not in t and 1.0 not in tc.zeros((0, 3)) and 1.0 not in tc.zeros((0,))
    assert 0.0 in tc.zeros(()) and tc.asarray(5.0, device=t.device) in t


def test_format_of_one_element_is_that_of_its_number() -> None:
    t = tc.asarray([0.69314, 3.0])
    assert f"{t[0]:.3f} {t[1]:g} {t[1]}" == "0.693 3 3.0"
    assert f"{tc.asarray(3):05d}" == "00003" and f"{t[0].astype('bfloat16'):.2f}" == "0.69"
    assert f"{t}" == str(t)
    with pytest.raises(tc.errors.TensorCraftTypeError, match=r'format: ".3f" is for a tensor of rank 0'):
        f"{t:.3f}"


def test_round_is_tc_round(device: str) -> None:
    t = tc.asarray([0.5, 1.5, -2.6], device=device)
    same(round(t), tc.round(t))
    same(round(t, 0), tc.round(t))
    with pytest.raises(tc.errors.TensorCraftTypeError, match="round: to whole numbers only, got 2 digits"):
        round(t, 2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_only_one_integer_is_an_index(dtype: str, device: str) -> None:
    t = tc.asarray([2, 1], device=device).astype(dtype)
    if t.dtype.kind in "iu":
        assert operator.index(t[0]) == 2 and "abc"[t[0]] == "c" and X[t[0]].tolist() == X[2].tolist() and [*range(t[0])] == [0, 1]
    for wrong in (t, t[:1]) if t.dtype.kind in "iu" else (t, t[:1], t[0]):
        with pytest.raises(tc.errors.TensorCraftTypeError, match="only a tensor of one integer and rank 0 is an index"):
            operator.index(wrong)


@pytest.mark.parametrize("operation", ["iadd", "isub", "imul", "itruediv", "ipow"])
def test_numpys_in_place_forms_take_a_tensor(operation: str, device: str) -> None:
    array, expected = X + 1, X + 1
    other = np.full((4,), 2, np.float32)
    result = getattr(operator, operation)(array, tc.asarray(other, device=device))
    assert result is array
    np.testing.assert_array_equal(array, getattr(operator, operation)(expected, other))


def test_numpys_ufuncs_into_an_array_are_numpys() -> None:
    t = tc.asarray(X)
    wide = np.empty((3, 4), np.float64)
    assert np.add(X, t, out=wide) is wide
    np.testing.assert_array_equal(wide, X + X)
    integers = np.arange(4)
    with pytest.raises(TypeError, match="same_kind"):  # NumPy's own rule
        integers += t[0]
    with pytest.raises(ValueError):  # and another
        X[0].copy().__iadd__(t)


def test_numpys_ufuncs_of_tensors_are_tcs() -> None:
    t = tc.asarray(X)
    for found, expected in (
        (np.exp(t), tc.exp(t)), (np.add(X, t), tc.add(t, t)), (np.absolute(t), tc.abs(t)), (np.power(t, 2.0), t * t),
        (X < t, tc.less(t, t)), (X == t, tc.equal(t, t)), (np.float32(2) * t, t * 2.0), (X @ t.T, t @ t.T), (X / (t + 1), t / (t + 1)),
    ):  # fmt: skip
        same(found, expected)
    for call, text in (
        (lambda: np.modf(t), "np.modf: does not take a tc.Tensor"),
        (lambda: np.add.reduce(t), "np.add: does not take a tc.Tensor"),
        (lambda: np.exp(t, where=X > 1), "np.exp: does not take a tc.Tensor with options"),
        (lambda: np.add(X, X, out=t), "np.add: out is a tc.Tensor"),
    ):
        with pytest.raises(tc.errors.TensorCraftTypeError, match=text):
            call()


def test_array_copies_if_asked_and_only_then() -> None:
    t = tc.asarray(X)
    for copies in (None, False, np.False_):
        assert np.shares_memory(t.__array__(copy=copies), X)
    for copies in (True, np.True_):
        assert not np.shares_memory(t.__array__(copy=copies), X)
    assert np.asarray(t, dtype="f4", copy=False).ctypes.data == t.data_ptr
    for tensor, dtype in ((t, "f8"), (t.astype("bfloat16"), None), (t.astype("float8_e4m3fn"), "f4"), (t, np.int32)):
        assert np.asarray(tensor, dtype=dtype).tolist() == X.tolist()
        with pytest.raises(ValueError, match="copy=False, but .* needs a copy"):
            np.asarray(tensor, dtype=dtype, copy=False)


@pytest.mark.parametrize("lists", [list, tuple, np.asarray])
def test_integers_of_python_are_ids_where_ids_are_taken(lists: Any) -> None:
    ids, table = lists([2, 0]), X
    np.testing.assert_array_equal(tc.take(X, ids, axis=0), X[[2, 0]])
    np.testing.assert_array_equal(tc.embedding(ids, table), X[[2, 0]])
    np.testing.assert_array_equal(tc.masked_mean(np.ones((2, 3, 4), np.float32), lists([1, 2])), np.ones((2, 4)))
    assert tc.cross_entropy(X[:2], ids).shape == ()


@pytest.mark.parametrize("x", [X, X.astype(np.float16), X.astype(np.int8), X > 3], ids=lambda x: str(x.dtype))
def test_a_number_is_an_id_beside_any_dtype(x: Any) -> None:
    np.testing.assert_array_equal(tc.take(x, 1, axis=0), x[1])
    np.testing.assert_array_equal(tc.take(x, -1, axis=1), x[:, -1])
    if x.dtype.kind == "f":
        np.testing.assert_array_equal(tc.embedding(1, x), x[1])
        assert tc.cross_entropy(x[0], 1).shape == ()
    with pytest.raises(TypeError, match="indices"):
        tc.take(x, 1.0, axis=0)
    with pytest.raises(TypeError, match="indices"):
        tc.take(x, True, axis=0)


def test_lengths_may_be_lists() -> None:
    q = np.random.default_rng(1).standard_normal((2, 1, 3, 8)).astype(np.float32)
    expected = tc.attention(q, q, q, key_lengths=np.array([1, 3], np.int32))
    np.testing.assert_array_equal(tc.attention(q, q, q, key_lengths=[1, 3]), expected)
    with pytest.raises(ValueError, match="key_lengths"):
        tc.attention(q, q, q, key_lengths=[1, 2**40])


def test_integers_in_lists_are_floats_where_only_floats_are_taken() -> None:
    assert tc.exp([0, 1]).dtype == np.float32 and tc.relu([[1, -2]]).tolist() == [[1.0, 0.0]]
    assert tc.gemm(X, [[1], [0], [0], [2]]).tolist() == (X[:, :1] + 2 * X[:, 3:]).tolist()
    assert tc.embedding([1], [[1, 2], [3, 4]]).tolist() == [[3.0, 4.0]]
    assert tc.add([1, 2], [3, 4]).dtype == np.int64 and tc.sum([1, 2]).dtype == np.int64


def test_a_bool_is_a_condition() -> None:
    for condition in (True, False):
        np.testing.assert_array_equal(tc.where(condition, X, 0.0), X if condition else 0 * X)


@pytest.mark.parametrize("make", [list, np.array, lambda v: tc.asarray(v), lambda v: np.array(v, np.int8)])
def test_widths_and_axes_may_be_arrays(make: Any) -> None:
    np.testing.assert_array_equal(tc.pad(X, make([[1, 0], [0, 2]])), np.pad(X, [[1, 0], [0, 2]]))
    np.testing.assert_array_equal(tc.permute_dims(X, make([1, 0])), X.T)
    assert tc.zeros(make([2, 3])).shape == (2, 3) and tc.asarray(X).reshape(make([4, 3])).shape == (4, 3)
