# SPDX-License-Identifier: Apache-2.0
"""One rule of conversion for every dtype and every way in: floats to floats are rounded once, floats to integers saturate."""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tensorcraft as tc

FLOATS = ["float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8"]
ALL = [*FLOATS, *INTEGERS, "bool"]
# Half-way values and what lies beside them by less than a float32 sees, edges of every dtype, and specials.
REALS = [
    0.0, -0.0, 1.5, -1.5, 2.5, 0.999, -0.5, 3e-46, 2.0**-134 * (1 + 2.0**-40), 2.0**-25, 2.0**-25 * (1 + 2.0**-40), 2.0**-10,
    2.0**-10 * (1 + 2.0**-40), 2.0**-17 * (1 + 2.0**-40), 127.5, 128.0, 255.9, 256.0, 300.0, -300.0, 432.0, 464.0, 465.0,
    32768.0, 57344.0, 61440.0, 65504.0, 65519.999, 65520.0, 1e6, -1e6, 2147483647.0, 2147483648.0, -2147483649.0,
    2.0**53 - 1, 2.0**63, -(2.0**63), 1e20, -1e20, 3.4028235e38, 3.4028235677973366e38, 1e39, -1e300, math.inf, -math.inf, math.nan,
    *(sign * (1 + 2.0**-bits + tail) for bits in (3, 4, 8, 9, 11, 12, 24, 25) for tail in (0.0, 2.0**-40, -(2.0**-40)) for sign in (1, -1)),
]  # fmt: skip
WHOLES = [
    0, 1, -1, 127, 128, 300, -129, 2049, 65519, 65520, 2**24 + 1, 2**26 + 2**18, 2**26 + 2**18 + 1, -(2**26) - 2**18 - 1,
    2**31 - 1, 2**60 + 2**52, 2**60 + 2**52 + 1, 2**60 + 2**36 + 1, 2**53 + 1, 2**63 - 1, -(2**63),
]  # fmt: skip


def rounded(value: Any, dtype: str) -> float:
    """The number nearest to `value`, of two the even one: exact arithmetic with the limits that tc.finfo gives."""
    limits = tc.finfo(dtype)
    saturates = dtype.startswith("float8")
    if isinstance(value, float) and math.isnan(value):
        return value
    if isinstance(value, float) and math.isinf(value):
        return math.copysign(limits.max if saturates else math.inf, value)
    exact = Fraction(value)
    exponent = math.floor(math.log2(limits.smallest_normal))
    size = abs(exact)
    while size >= Fraction(2) ** (exponent + 1):
        exponent += 1
    step = Fraction(2) ** exponent * Fraction(limits.eps)
    result = float(round(size / step) * step) if size < Fraction(2) ** 200 else math.inf  # round() goes to even
    if result > limits.max:
        result = limits.max if saturates else math.inf
    return math.copysign(result, value)


def converted(value: Any, dtype: str) -> Any:
    if dtype in FLOATS:
        return rounded(value, dtype)
    if dtype == "bool":
        return value != 0
    limits = tc.iinfo(dtype)
    if isinstance(value, int):  # keeps the low bits
        return (value - limits.min) % (limits.max - limits.min + 1) + limits.min
    if math.isnan(value):
        return 0
    return int(min(max(value, limits.min), limits.max)) if math.isfinite(value) else limits.max if value > 0 else limits.min


def check(found: Any, values: list[Any], dtype: str, what: str) -> None:
    assert found.dtype == dtype, what
    wanted = [converted(v, dtype) for v in values]
    for got, want, value in zip(found.tolist(), wanted, values, strict=True):
        same = got == want and math.copysign(1, got) == math.copysign(1, want)
        assert same or (math.isnan(got) and math.isnan(want)), f"{what}: {value!r} became {got!r}, expected {want!r}"


def assigned(device: str, dtype: str, size: int, key: Any, value: Any) -> Any:
    target = tc.zeros(size, dtype, device)
    target[key] = value
    return target


def doors(device: str, dtype: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every way from float64 to a dtype."""
    array, n = np.array(REALS), len(REALS)
    every, mask = np.arange(n), np.ones(n, np.bool_)
    yield "asarray of an array", lambda: tc.asarray(array, dtype, device)
    yield "asarray of every second element", lambda: tc.asarray(np.repeat(array, 2)[::2], dtype, device)
    yield "asarray of a list", lambda: tc.asarray(REALS, dtype, device)
    yield "asarray of numbers", lambda: tc.stack([tc.asarray(v, dtype, device) for v in REALS])
    yield "full", lambda: tc.stack([tc.full((), v, dtype, device) for v in REALS])
    yield "full_like", lambda: tc.stack([tc.full_like(tc.zeros((), dtype, device), v) for v in REALS])
    yield "t[...] = array", lambda: assigned(device, dtype, n, ..., array)
    yield "t[...] = list", lambda: assigned(device, dtype, n, ..., REALS)
    yield "t[i] = list", lambda: assigned(device, dtype, n, every, REALS)
    yield "t[mask] = array", lambda: assigned(device, dtype, n, mask, array)
    yield "t[...] = number", lambda: tc.stack([assigned(device, dtype, 1, ..., v)[0] for v in REALS])
    yield "t[i] = number", lambda: tc.stack([assigned(device, dtype, 1, [0], v)[0] for v in REALS])


@pytest.mark.parametrize("dtype", ALL)
def test_float64_is_converted_once_by_every_way_in(dtype: str, device: str) -> None:
    for name, door in doors(device, dtype):
        check(door(), REALS, dtype, name)


@pytest.mark.parametrize("source", ALL)
@pytest.mark.parametrize("dtype", ALL)
def test_every_dtype_becomes_every_other_as_exact_arithmetic_has_it(source: str, dtype: str, device: str) -> None:
    if source in FLOATS:
        values = [float(v) for v in tc.asarray(REALS, source, "cpu").tolist()]
    elif source == "bool":
        values = [True, False]
    else:
        limits = tc.iinfo(source)
        values = [v for v in WHOLES if limits.min <= v <= limits.max]
    x = tc.asarray(values, source, device)
    for variant in [None, *(v for v in ("reference", "cpu", "naive") if (device == "cpu") == (v != "naive"))]:
        check(tc.astype(x, dtype, variant=variant), values, dtype, f"astype, variant {variant}")
    check(tc.asarray(x, dtype=dtype), values, dtype, "asarray")
    target = tc.zeros(len(values), dtype, device)
    target[...] = x
    check(target, values, dtype, "t[...] = x")
    cast = tc.elementwise(f"{dtype}(x)", x=x)
    check(cast, values, dtype, "a cast of an expression")


def test_the_cases_that_users_met(device: str) -> None:
    beyond = [300.0, math.nan, math.inf]
    for given in (np.array(beyond), np.array(beyond, np.float32), beyond, tc.asarray(beyond, device=device)):
        assert tc.asarray(given, dtype=tc.int8, device=device).tolist() == [127, 0, 127]
    assert tc.asarray(1 + 2**-8 + 2**-40, dtype=tc.bfloat16, device=device).item() == 1.0078125
    assert tc.full((), 1 + 2**-11 + 2**-40, "float16", device).item() == 1.0009765625
    # A number beside an array becomes the array's dtype by the same rule.
    one = tc.zeros((), "bfloat16", device) + (1 + 2**-8 + 2**-40)
    assert one.dtype is tc.bfloat16 and one.item() == 1.0078125


def test_python_integers_that_a_dtype_has_not_are_refused_in_lists_and_assignments(device: str) -> None:
    for call in (
        lambda: tc.asarray([300], tc.int8, device),
        lambda: tc.asarray(300, tc.int8, device),
        lambda: assigned(device, "int8", 1, ..., [300]),
    ):
        with pytest.raises(tc.errors.TensorCraftValueError, match=r"300.*int8"):
            call()
    assert tc.asarray([2**70], tc.float32, device).item() == 2.0**70
    assert tc.asarray([2**62 + 1, 0.5], tc.int64, device).tolist() == [2**62, 0]


def test_float64_of_torch_is_taken_with_a_dtype() -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor([300.0, math.nan, 1 + 2**-8 + 2**-40], dtype=torch.float64)
    assert tc.asarray(x, dtype=tc.int8).tolist() == [127, 0, 1]
    assert tc.asarray(x[2:], dtype=tc.bfloat16).tolist() == [1.0078125]
    with pytest.raises(TypeError, match="float64"):
        tc.asarray(x)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_the_sign_of_a_nan_is_seen(dtype: str, device: str) -> None:
    patterns = {
        "float32": np.array([0xFFC00000, 0x7FC00000, 0xFF800001, 0x80000000], np.uint32).view(np.int32),
        "float16": np.array([0xFE00, 0x7E00, 0xFFFF, 0x8000], np.uint16).view(np.int16),
        "bfloat16": np.array([0xFFC0, 0x7FC0, 0xFFFF, 0x8000], np.uint16).view(np.int16),
    }
    x = tc.asarray(patterns[dtype], device=device)._with_dtype(dtype)
    assert tc.isnan(x).tolist() == [True, True, True, False]
    variants: list[Any] = [None, "reference"] if device == "cpu" else [None]
    for variant in variants:
        assert tc.signbit(x, variant=variant).tolist() == [True, False, True, True]
    assert tc.copysign(tc.ones_like(x), x).tolist() == [-1, 1, -1, -1]
