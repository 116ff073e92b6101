# SPDX-License-Identifier: Apache-2.0
"""Numbers beside arrays: of Python, of NumPy, arrays without axes, and lists of one, on every device."""

import operator
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from valid_calls import filled, valid_call

import tensorcraft as tc
from tensorcraft import _tensorcraft as native

FORMS: dict[str, Callable[[float], Any]] = {
    "float": float,
    "int": int,
    "float32": np.float32,
    "float16": np.float16,
    "float64": np.float64,
    "int64": np.int64,
    "uint16": np.uint16,
    "array of no axes": np.array,
    "list": lambda value: [value],
    "list of an int": lambda value: [int(value)],
    "list of a float16": lambda value: [np.float16(value)],
}


def float32_operands() -> list[tuple[str, str]]:
    described = {name: native.describe(op._index) for name, op in tc.ops().items()}
    return [
        (name, p["name"])
        for name, parameters in described.items()
        for p in (*parameters["inputs"], *parameters["options"])
        if p["kind"] == "tensor" and "float32" in p["dtypes"] and "float16" not in p["dtypes"]
    ]


def test_the_walk_knows_the_operands_that_are_float32() -> None:
    known = set(float32_operands())
    for name, operands in {
        "append_kv": ("k_scale", "v_scale"), "attention": ("k_scale", "q_scale", "sinks", "v_scale"), "dequantize": ("scales",),
        "gemm": ("a_scale", "b_scale", "out_scale"), "merge_attention": ("lse_a", "lse_b"), "mqa_logits": ("k_scale", "weights"),
        "paged_attention": ("k_scale", "sinks", "v_scale"), "quantize": ("scales",),
    }.items():  # fmt: skip
        assert {(name, operand) for operand in operands} <= known


@pytest.mark.parametrize(("name", "operand"), float32_operands())
def test_a_float32_operand_takes_a_number_beside_every_dtype(name: str, operand: str, device: str) -> None:
    """If the call is refused, then not for the dtype of the number."""
    places = {p["name"]: i for i, p in enumerate(native.describe(tc.ops()[name]._index)["inputs"])}
    for dtype in tc.ops()[name].dtypes:

        def array(*how: Any, dtype: str = dtype) -> tc.Tensor:
            x = tc.asarray(filled(*how), device=device)
            return x.astype(dtype) if x.dtype == tc.float32 else x

        given, options = valid_call(name, array)
        for form, make in FORMS.items():
            arrays, named = list(given), dict(options)
            if operand in places and places[operand] < len(arrays):
                arrays[places[operand]] = make(1)
            else:
                named[operand] = make(1)
            try:
                tc.ops()[name].function(*arrays, **named)
            except tc.errors.Error as error:
                refused = re.search(rf": {operand}: dtype", str(error), re.IGNORECASE)
                assert not refused, f"{form} beside {dtype}: {error}"


def put(device: str, array: Any, dtype: str) -> tc.Tensor:
    return tc.asarray(array, device=device).astype(dtype)


def forms_of(value: float) -> Iterator[Any]:
    for form, make in FORMS.items():
        if "int" not in form or value == int(value):
            yield make(value)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("codes", ["int8", "float8_e4m3fn", "float8_e5m2"])
def test_numbers_are_scales_of_a_paged_cache(device: str, dtype: str, codes: str) -> None:
    random = np.random.default_rng(0)
    q, k, v = (put(device, random.standard_normal(s).astype(np.float32), dtype) for s in ((2, 2, 8), (2, 2, 8), (2, 2, 8)))
    tables, lengths, slots = (put(device, x, "int32") for x in ([[0], [1]], [1, 1], [0, 4]))
    for scale in (0.5, 2):
        results = []
        for one in (*(tc.full(shape, scale, "float32", device) for shape in ((2, 2), (2,))), *forms_of(scale)):
            k_cache, v_cache = (tc.zeros((3, 4, 2, 8), codes, device) for _ in range(2))
            tc.append_kv(k_cache, v_cache, k, v, slots, k_scale=one, v_scale=one)
            is_each = isinstance(one, tc.Tensor) and one.ndim == 2
            whole = tc.full((3, 4, 2), scale, "float32", device) if is_each else one
            out = tc.paged_attention(q, k_cache, v_cache, tables, lengths, k_scale=whole, v_scale=whole)
            results.append(np.asarray(out.astype("float32")))
        for found in results:
            np.testing.assert_array_equal(found, results[0])


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("codes", ["int8", "float8_e4m3fn"])
def test_a_number_is_the_scale_of_quantize(device: str, dtype: str, codes: str) -> None:
    x = tc.full((4, 8), 2, dtype, device)
    for scale in forms_of(0.5):
        q = tc.quantize(x, codes, scales=scale)  # the codes alone
        np.testing.assert_array_equal(np.asarray(q.astype("float32")), np.full((4, 8), 4))
        np.testing.assert_array_equal(np.asarray(tc.dequantize(q, scale).astype("float32")), np.full((4, 8), 2))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_number_is_a_logarithm_of_merge_attention(device: str, dtype: str) -> None:
    a, b = tc.ones((8,), dtype, device), tc.zeros((8,), dtype, device)
    for lse in (0.0, 0, np.float16(0), np.array(0.0)):
        found = tc.merge_attention(a, lse, b, lse)
        assert found.lse.dtype == tc.float32 and found.out.tolist() == [0.5] * 8


def test_a_list_or_a_number_does_not_say_what_comes_back(device: str) -> None:
    t = tc.asarray(np.float32([2, 4]), device=device)
    for first in (2.0, np.float32(2), np.array(2, np.float32), [2.0, 2.0]):
        found = tc.maximum(first, t)
        assert isinstance(found, tc.Tensor) and found.device == device and found.tolist() == [2, 4]


NUMBERS = [np.float32(2), np.float16(2), np.float64(2), np.int64(2), np.array(2, np.float32), np.array(2.0)]
OPERATORS = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "le", "gt", "ge", "eq", "ne"]


@pytest.mark.parametrize("number", NUMBERS, ids=repr)
def test_an_operator_takes_a_number_of_numpy(device: str, number: Any) -> None:
    x = np.float32([1, 2, 4.5])
    t = tc.asarray(x, device=device, copy=True)
    for name in OPERATORS:
        function = getattr(operator, name)
        for found, wanted in ((function(t, number), function(x, float(number))), (function(number, t), function(float(number), x))):
            assert isinstance(found, tc.Tensor) and found.device == device, name
            np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-6, err_msg=name)
    for quotient, rest in (divmod(t, number), np.divmod(t, number)):
        assert quotient.tolist() == [0, 1, 2] and rest.tolist() == [1, 0, 0.5]
    quotient, rest = divmod(number, t)
    assert quotient.tolist() == [2, 1, 0] and rest.tolist() == [0, 0, 2]
    assert number in t and number + 7 not in t
    for name in ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow"):
        y = tc.asarray(x, device=device, copy=True)
        assert getattr(operator, name)(y, number) is y
        np.testing.assert_allclose(np.asarray(y), getattr(operator, name)(x.copy(), np.float32(number)), rtol=1e-6, err_msg=name)


def test_numbers_of_numpy_beside_integers_and_masks(device: str) -> None:
    i = tc.asarray(np.int32([1, 2, 6]), device=device, copy=True)
    for found, wanted in (
        (i + np.int64(1), [2, 3, 7]), (np.int64(1) + i, [2, 3, 7]), (i << np.int32(1), [2, 4, 12]), (i & np.int32(2), [0, 2, 2]),
        (np.maximum(np.int32(2), i), [2, 2, 6]), (np.array(7, np.int32) - i, [6, 5, 1]),
    ):  # fmt: skip
        assert found.device == device and found.tolist() == wanted
    i += np.int64(1)  # a number gives no dtype to what is written
    assert i.dtype == tc.int32 and i.tolist() == [2, 3, 7]
    mask = i > np.int64(2)
    assert (mask & np.True_).tolist() == (np.True_ & mask).tolist() == [False, True, True]
    half = tc.ones((2,), "float16", device)
    half *= np.float32(3)
    assert half.dtype == tc.float16 and half.tolist() == [3, 3]


def test_an_array_of_numpy_beside_a_tensor_has_one_rule(device: str) -> None:
    """It joins the devices whose memory is the host's, whether a function or an operator is called; a GPU refuses it."""
    x = np.float32([[1, 2], [3, 5]])
    mask = x > 2
    t, m = tc.asarray(x, device=device, copy=True), tc.asarray(mask, device=device, copy=True)
    calls: list[tuple[Callable[[], Any], Any]] = [
        (lambda: t + x, x + x), (lambda: x + t, x + x), (lambda: tc.add(t, x), x + x), (lambda: t @ x, x @ x),
        (lambda: x @ t, x @ x), (lambda: tc.matmul(t, x), x @ x), (lambda: t @ x[0], x @ x[0]), (lambda: tc.vecdot(t, x), (x * x).sum(-1)),
        (lambda: m & mask, mask), (lambda: mask & m, mask), (lambda: np.maximum(x, t), x), (lambda: t >= x, mask | True),
        (lambda: tc.concat([t, x]), np.concatenate([x, x])),
    ]  # fmt: skip
    for call, wanted in calls:
        if device.startswith("cuda"):
            with pytest.raises(tc.errors.TensorCraftValueError, match="host and device arrays are mixed; move the host array"):
                call()
            continue
        found = call()
        assert isinstance(found, tc.Tensor) and found.device == device
        np.testing.assert_allclose(np.asarray(found), wanted)


def test_statistics_of_numpy_take_tensors(device: str) -> None:
    x = np.float32([[1, 2, 3], [4, 5, 9]])
    t = tc.asarray(x, device=device)
    for function in (np.mean, np.std, np.var):
        np.testing.assert_allclose(float(function(t)), function(x), rtol=1e-6)
        np.testing.assert_allclose(np.asarray(function(t, axis=0, keepdims=True)), function(x, axis=0, keepdims=True), rtol=1e-6)
        assert function(t, dtype=np.float16).dtype == tc.float16
    for function in (np.std, np.var):
        np.testing.assert_allclose(float(function(t, ddof=1)), function(x, ddof=1), rtol=1e-6)
    with pytest.raises(TypeError, match="ddof"):
        t.mean(ddof=1)


def test_results_of_one_call_are_of_one_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy has no float8, so scales beside such codes are a tensor too."""
    x = np.random.default_rng(0).standard_normal((4, 256)).astype(np.float32)
    for found in (tc.quantize(x), tc.quantize(x, "float8_e5m2", scheme="block"), tc.rms_norm(x, out_dtype="float8_e4m3fn", per_token=True)):
        assert [type(part) for part in found] == [tc.Tensor, tc.Tensor]
        assert {part.device for part in found} == {"cpu"}
    for found in (tc.quantize(x, "int8"), tc.quantize(x, "int8", asymmetric=True), tc.topk(x, 2)):
        assert {type(part) for part in found} == {np.ndarray}
