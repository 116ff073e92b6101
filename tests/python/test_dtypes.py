# SPDX-License-Identifier: Apache-2.0
"""tc.DType: equal to every spelling of it, and read from each wherever a dtype is taken; arrays of ml_dtypes."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import tensorcraft as tc

SPELLINGS: dict[str, list[Any]] = {
    "float32": ["f4", "<f4", "=f4", "float", float, np.float32, np.dtype("f4")],
    "float16": ["f2", "<f2", np.float16, np.dtype("f2")],
    "bfloat16": [],
    "float8_e4m3fn": [],
    "float8_e5m2": [],
    "int8": ["i1", "|i1", np.int8, np.dtype("i1")],
    "int16": ["i2", np.int16, np.dtype("i2")],
    "int32": ["i4", "<i4", np.int32, np.dtype("i4")],
    "int64": ["i8", "int", int, np.int64, np.dtype("i8")],
    "uint8": ["u1", "|u1", np.uint8, np.dtype("u1")],
    "bool": ["?", "|b1", "b1", bool, np.bool_, np.dtype("?")],
}
FOREIGN = ["float64", ">f4", "f8", "f", "", "x", np.float64, np.dtype(">f4"), object(), None, 1, 1.5, [], (1,), b"f4", complex, np.ones(2)]  # fmt: skip


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_dtype_equals_its_spellings_and_no_other(name: str) -> None:
    dtype = tc.DType(name)
    for spelling in (name, f"torch.{name}", dtype, *SPELLINGS[name]):
        assert dtype == spelling and spelling == dtype and (dtype != spelling) is False
    for other in (*FOREIGN, *(s for key, all_of in SPELLINGS.items() if key != name for s in (key, tc.DType(key), *all_of))):
        assert dtype != other and (dtype == other) is False


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_a_comparison_never_fails() -> None:
    assert tc.float32 != Unprintable() and tc.float32 != np.ones((2, 2)) and tc.float32 != tc.zeros(2)


@pytest.mark.parametrize("name", SPELLINGS)
def test_what_a_dtype_says_of_itself(name: str) -> None:
    dtype = tc.DType(name)
    assert str(dtype) == f"{dtype}" == dtype.name == name and hash(dtype) == hash(name)
    assert {name: 1}[dtype] == 1 and {dtype: 1}[name] == 1  # type: ignore[index]
    if SPELLINGS[name]:
        assert (dtype.itemsize, dtype.kind) == (np.dtype(name).itemsize, np.dtype(name).kind)
    else:
        assert (dtype.itemsize, dtype.kind) == (2 if name == "bfloat16" else 1, "f")
    assert pickle.loads(pickle.dumps(dtype)) is dtype is copy.deepcopy(dtype)


@pytest.mark.parametrize("name", SPELLINGS)
def test_every_spelling_is_read(name: str) -> None:
    x = np.ones((2, 2), np.float32)
    for spelling in (name, tc.DType(name), *SPELLINGS[name]):
        assert tc.asarray(x).astype(spelling).dtype == name
        assert tc.astype(tc.asarray(x), spelling).dtype == name
        assert tc.zeros((2,), dtype=spelling).dtype == name and tc.zeros_like(x, dtype=spelling).dtype == name
        assert tc.asarray([1, 0], dtype=spelling).dtype == name and tc.DType(spelling) is tc.DType(name)
    for wrong in FOREIGN:
        if wrong is not None:
            with pytest.raises(tc.errors.TensorCraftTypeError):
                tc.asarray(x).astype(wrong)


@pytest.fixture
def ml_dtypes() -> Any:
    return pytest.importorskip("ml_dtypes")


ML = ["bfloat16", "float8_e4m3fn", "float8_e5m2"]


@pytest.mark.parametrize("name", ML)
def test_arrays_of_ml_dtypes_go_in_without_a_copy(name: str, ml_dtypes: Any) -> None:
    kind = getattr(ml_dtypes, name)
    x = np.arange(12, dtype=np.float32).reshape(3, 4).astype(kind)
    for array in (x, x.T, x[1:, ::2], x[:0], x[0, 0:1]):
        for t in (tc.asarray(array), tc.from_dlpack(array)):
            assert t.dtype == kind == np.dtype(kind) == t.dtype and t.shape == array.shape
            assert t.tolist() == array.astype(np.float32).tolist()
            assert array.size == 0 or t.data_ptr == array.ctypes.data
    assert tc.zeros(2, dtype=kind).dtype == tc.DType(kind) == name
    x.flags.writeable = False
    assert tc.asarray(x).read_only


@pytest.mark.parametrize("name", ML)
def test_arrays_of_ml_dtypes_come_back_from_numpy(name: str, ml_dtypes: Any) -> None:
    t = tc.asarray([[1.0, 2.0], [3.0, 4.0]]).astype(name)
    array = t.numpy()
    assert array.dtype == getattr(ml_dtypes, name) and array.ctypes.data == t.data_ptr
    assert t.T.numpy().astype(np.float32).tolist() == [[1.0, 3.0], [2.0, 4.0]]
    array[0, 0] = 8
    assert t[0, 0].item() == 8.0


def test_an_operator_takes_arrays_of_ml_dtypes(ml_dtypes: Any) -> None:
    x = np.linspace(-1, 1, 8).astype(ml_dtypes.bfloat16)
    result = tc.exp(x)
    assert isinstance(result, tc.Tensor) and result.dtype == "bfloat16"
    out = np.empty_like(x)
    assert tc.exp(x, out=out) is out and out.tolist() == result.tolist()


def test_a_result_that_numpy_has_no_dtype_for_is_a_tensor() -> None:
    x = np.linspace(-1, 1, 8, dtype=np.float32)
    result = tc.astype(x, "bfloat16")
    assert isinstance(result, tc.Tensor) and result.dtype == tc.bfloat16
    codes, scales = tc.quantize(x[None])
    assert isinstance(codes, tc.Tensor) and codes.dtype.name.startswith("float8")
    np.testing.assert_allclose(np.asarray(tc.dequantize(codes, tc.asarray(scales))), x[None], atol=0.05)
