# SPDX-License-Identifier: Apache-2.0
"""Reductions of numbers near the limits of their dtype, far from zero, and of many elements: NumPy's values in double."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tensorcraft as tc

RNG = np.random.default_rng(11)
REDUCTIONS = ("sum", "mean", "var", "std")
FAR = {
    "alternating": (1e9 + np.arange(4096) % 2 * 64).astype(np.float32),
    "small steps": (1e7 + np.arange(4096) % 2).astype(np.float32),
    "random": (1e6 + RNG.standard_normal(5000) * 100).astype(np.float32),
    "one outlier": np.append(np.full(999, 1e8, np.float32), np.float32(1e8 + 8000)),
    "negative": (-3e5 + RNG.standard_normal(777)).astype(np.float32),
}


def results(name: str, x: np.ndarray, device: str, **options: Any) -> Iterator[tuple[str, np.ndarray]]:
    """What each variant that takes the array gives."""
    for variant in tc.explain(name, x, device=device, **options).variants:
        if variant.accepted:
            yield variant.name, np.asarray(getattr(tc, name)(x, device=device, variant=variant.name, **options))


@pytest.mark.parametrize("values", [[1e19, -1e19], [3e38, -3e38], [3e38] * 9, [2e19, 0, 1], [np.inf, 1], [np.nan, 1]])
def test_var_of_the_largest_floats_is_numpys(values: list[float], device: str) -> None:
    x = np.array(values, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        var = x.astype(np.float64).var().astype(np.float32)
        std = x.astype(np.float64).std().astype(np.float32) if np.isfinite(var) else var
    columns = np.repeat(x[:, None], 8, axis=1)
    for name, expected in (("var", var), ("std", std)):
        for array, axis in ((x, 0), (columns, 0), (np.ascontiguousarray(columns.T), 1)):
            found = list(results(name, array, device, axis=axis))
            assert found
            for variant, result in found:
                if variant == "reference" and np.isinf(expected):
                    continue  # its square root is taken in double
                np.testing.assert_allclose(result, np.full(result.shape, expected), rtol=1e-6, err_msg=variant)


@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize("case", FAR)
@pytest.mark.parametrize("correction", [0, 1, 0.5])
def test_spread_about_a_far_mean(name: str, case: str, correction: float, device: str) -> None:
    x = FAR[case]
    expected = getattr(np, name)(x.astype(np.float64), ddof=correction)
    columns = np.repeat(x[:, None], 8, axis=1)
    for array, axis in ((x, None), (columns, 0), (columns.T, 1)):
        for variant, result in results(name, array, device, axis=axis, correction=correction):
            np.testing.assert_allclose(result, np.full(result.shape, expected), rtol=2e-5, err_msg=variant)


def test_the_first_values_are_exact(device: str) -> None:
    assert float(tc.var(FAR["alternating"], device=device)) == 1024
    assert float(tc.var(FAR["small steps"], device=device)) == 0.25


@pytest.mark.parametrize("name", ["sum", "cumulative_sum"])
def test_sums_of_many_elements_keep_their_digits(name: str, device: str) -> None:
    x = RNG.uniform(0.5, 1.5, 100_000).astype(np.float32)
    expected = np.cumsum(x.astype(np.float64))
    for variant, result in results(name, x, device):
        bound = 2e-7 if variant == "naive" else 5e-6
        np.testing.assert_allclose(
            result, expected if name == "cumulative_sum" else expected[-1], rtol=bound, err_msg=variant
        )


def test_an_infinite_sum_stays_infinite(device: str) -> None:
    x = np.array([1, np.inf, 2, 3], np.float32)
    for _, result in results("sum", x, device):
        assert result == np.inf
    for _, result in results("cumulative_sum", x, device):
        np.testing.assert_array_equal(result, np.cumsum(x))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "float32", "float16"])
def test_new_reductions_are_those_of_numpy(dtype: str, device: str) -> None:
    x = RNG.integers(0 if dtype == "uint8" else -2, 3, (5, 7, 9)).astype(dtype)
    for axis in (None, 0, 1, -1):
        np.testing.assert_array_equal(tc.argmin(x, axis=axis, device=device), x.argmin(axis))
        np.testing.assert_array_equal(tc.count_nonzero(x, axis, device=device), np.count_nonzero(x, axis))
        expected = x.astype(np.float64 if x.dtype.kind == "f" else np.int64).prod(axis)
        result = tc.prod(x, axis, device=device)
        assert result.dtype == (dtype if x.dtype.kind == "f" else np.int64)
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(result, expected.astype(result.dtype))


@pytest.mark.parametrize("smallest", [np.nan, -np.inf])
def test_argmin_finds_the_first_of_equals_and_a_nan(smallest: float, device: str) -> None:
    x = np.array([3, 1, smallest, 0, smallest], np.float32)
    assert tc.argmin(x, device=device) == 2 == np.argmin(x)


NUMBERS = ("int8", "int32", "int64", "uint8", "float32", "bfloat16")
TOTALS = [(name, given) for name in ("sum", "prod", "cumulative_sum", "cumulative_prod") for given in NUMBERS] + [
    ("sum", "bool"),
    ("prod", "bool"),
    ("cumulative_prod", "bool"),
]


@pytest.mark.parametrize(("name", "given"), TOTALS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int16", "int32", "int64", "uint8"])
def test_the_result_is_of_the_dtype_that_is_asked_for(name: str, given: str, dtype: str, device: str) -> None:
    x = tc.astype(tc.asarray(RNG.integers(0, 3, (4, 6)).astype(np.float32), device=device), given)
    options = {"axis": 1, "dtype": dtype}
    if x.dtype.kind == "f" and not dtype.startswith("float"):
        with pytest.raises(
            TypeError, match=f"{name}: dtype must be float32, float16 or bfloat16 for x of {given}, got {dtype}"
        ):
            getattr(tc, name)(x, **options)
        return
    result = getattr(tc, name)(x, **options)
    assert str(result.dtype) == dtype
    numpys = {"sum": np.sum, "prod": np.prod, "cumulative_sum": np.cumsum, "cumulative_prod": np.cumprod}[name]
    expected = numpys(np.asarray(tc.astype(x, "float32")).astype(np.int64), axis=1)
    np.testing.assert_array_equal(np.asarray(result), expected.astype(dtype))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("turn", [[0, 1e30, 1e30], [1e-30, 1e30, 1e30], [1e30, 1e-30, 1e-30], [1e30, 1e30, 1e-30]])
def test_products_up_to_each_element_are_numpys(turn: list[float], dtype: str, device: str) -> None:
    factors = np.clip(turn, 1e-4, 1e4) * np.sign(turn) if dtype == "float16" else np.array(turn)
    x = tc.astype(tc.asarray(np.tile(factors.astype(np.float32), (5, 3)), device=device), dtype)
    wide = np.asarray(tc.astype(x, "float32"))
    for axis in (0, 1):
        with np.errstate(over="ignore", under="ignore"):
            products = np.cumprod(wide, axis=axis, dtype=np.float32)
        expected = np.asarray(tc.astype(tc.astype(products, dtype), "float32"))
        result = tc.cumulative_prod(x, axis=axis, include_initial=True)
        assert str(result.dtype) == dtype
        found = np.moveaxis(np.asarray(tc.astype(result, "float32")), axis, 0)
        np.testing.assert_array_equal(found[0], 1)
        np.testing.assert_array_equal(found[1:], np.moveaxis(expected, axis, 0))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_product_may_exceed_its_dtype_on_the_way(dtype: str, device: str) -> None:
    large = 2.0**13 if dtype == "float16" else 2.0**100
    for factors, product in (
        ([large, 1 / large] * 9, 1),
        (([large] * 4 + [1 / large] * 4) * 40, 1),
        ([large] * 24, np.inf),
        ([1 / large] * 24, 0),
        ([0, np.inf], np.nan),
        ([np.inf, -1 / large], -np.inf),
    ):
        rows = np.tile(np.float32(factors), (8, 1))
        for array, axis in ((rows, 1), (np.ascontiguousarray(rows.T), 0), (rows[0], None)):
            x = tc.astype(tc.asarray(array, device=device), dtype)
            for variant in tc.explain("prod", x, axis=axis).variants:
                if variant.accepted:
                    result = np.asarray(tc.astype(tc.prod(x, axis=axis, variant=variant.name), "float32"))
                    np.testing.assert_array_equal(result, np.full(result.shape, product), err_msg=variant.name)


def test_a_zero_may_come_before_the_sums(device: str) -> None:
    x = RNG.integers(-9, 9, (3, 4, 5)).astype(np.int32)
    for axis in range(3):
        result = tc.cumulative_sum(x, axis=axis, include_initial=True, device=device)
        expected = np.concatenate([np.zeros_like(x.take([0], axis)), x.cumsum(axis)], axis)
        np.testing.assert_array_equal(result, expected)
    assert tc.cumulative_sum(np.zeros((2, 0), np.float32), axis=1, include_initial=True, device=device).shape == (2, 1)
    if device.startswith("cuda"):
        return  # a host array for its result must be contiguous
    out = np.full((3, 9), np.nan, np.float32)
    tc.cumulative_sum(np.ones((3, 4), np.float32), axis=1, include_initial=True, out=out[:, ::2], device=device)
    np.testing.assert_array_equal(out[:, ::2], np.tile(np.arange(5, dtype=np.float32), (3, 1)))
    assert np.isnan(out[:, 1::2]).all()


@pytest.mark.parametrize("name", REDUCTIONS)
def test_nothing_but_nan_comes_of_nan(name: str, device: str) -> None:
    x = np.array([1, np.nan, 2], np.float32)
    assert np.isnan(getattr(tc, name)(x, device=device))
