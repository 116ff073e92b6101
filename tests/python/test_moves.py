# SPDX-License-Identifier: Apache-2.0
"""`pad` and `scatter` beside NumPy's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorcraft as tc

VARIANTS = [
    {"device": "cpu", "variant": "cpu"},
    {"device": "cpu", "variant": "reference"},
    *({"device": "simt", "variant": None} for device in tc.devices() if device == "simt"),
]
X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("options", VARIANTS)
@pytest.mark.parametrize("width", [0, 2, (1, 2), [3, 0], ((0, 1), (2, 0), (1, 1)), [[1, 0]], ((5, 4),) * 3])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64", "bool"])
def test_pad_is_numpys(width: Any, dtype: str, options: dict[str, Any]) -> None:
    x = X.astype(dtype)
    found = tc.pad(x, width, 1, **options)
    wanted = np.pad(x, width, constant_values=1)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(tc.pad(x.T[::2], width, 1, **options), np.pad(x.T[::2], width, constant_values=1))


def test_pad_refuses_widths_in_words_of_python() -> None:
    for width, error, text in (
        (-1, ValueError, r"pad: pad_width must be at least 0, got \(-1, -1\) for axis 0"),
        ((1, 2, 3), TypeError, "a pair for each axis, got a list of 3 ints"),
        (((1, 2), (3, 4)), TypeError, "a pair for each of the 3 axes of x, got 2 widths for one side"),
        (((1, 2), (3, 4, 5), (0, 0)), TypeError, r"such a pair for each axis, got \(3, 4, 5\) among them"),
        (((1, 2), 3, 4), TypeError, "pad: pad_width must be an int, .* got 3 among them"),
        (((1, 2), ("a", 4), (0, 0)), TypeError, "pad: pad_width must be an integer, got str"),
        (0.5, TypeError, "pad: pad_width must be an int, a pair of ints or a pair for each axis, got a float"),
        (None, TypeError, "pad_width must not be None"),
        (2**62, ValueError, "pad"),
        (2**70, ValueError, "pad"),
    ):
        with pytest.raises(error, match=text):
            tc.pad(X, width)
    with pytest.raises(TypeError, match="pad_width"):
        tc.pad(X)  # type: ignore[call-arg]


@pytest.mark.parametrize("options", VARIANTS)
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8", "int64", "bool"])
def test_scatter_writes_what_take_along_axis_reads(dtype: str, axis: int, options: dict[str, Any]) -> None:
    random = np.random.default_rng(axis + 5)
    x = X.astype(dtype)
    indices = np.argsort(random.random(x.shape), axis)  # each place once
    indices -= x.shape[axis] * random.integers(0, 2, x.shape)
    updates = random.integers(0, 2, x.shape).astype(dtype)
    wanted = x.copy()
    np.put_along_axis(wanted, indices, updates, axis)
    found = tc.scatter(x, indices, updates, axis, **options)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(tc.take_along_axis(found, indices, axis), updates)
    assert found.dtype == x.dtype


@pytest.mark.parametrize("options", VARIANTS)
@pytest.mark.parametrize(("reduction", "at"), [("add", np.add), ("multiply", np.multiply), ("max", np.maximum), ("min", np.minimum)])
def test_a_reduction_is_that_of_ufunc_at(reduction: Any, at: Any, options: dict[str, Any]) -> None:
    random = np.random.default_rng(3)
    x = random.integers(1, 4, (5, 6)).astype(np.float32)
    indices, updates = random.integers(-6, 6, (5, 9)), random.integers(-2, 3, (5, 9)).astype(np.float32)
    wanted = x.copy()
    at.at(wanted, (np.arange(5)[:, None], indices), updates)
    np.testing.assert_array_equal(tc.scatter(x, indices, updates, reduction=reduction, **options), wanted)


def test_scatter_into_x_itself_and_with_one_update() -> None:
    x = X.copy()
    result = tc.scatter(x, np.full((2, 3, 1), -1), np.float32(7), out=x)
    assert result is x
    np.testing.assert_array_equal(x[..., -1], np.full((2, 3), 7))
    np.testing.assert_array_equal(x[..., :-1], X[..., :-1])


def test_scatter_refuses_what_does_not_fit() -> None:
    x = X.copy()
    with pytest.raises(IndexError, match=r"scatter: indices: element 1 is 4, expected \[-4, 4\), the axis of x"):
        tc.scatter(x, np.array([[[0, 4]] * 3] * 2), np.float32(1), out=x, device="cpu")  # a GPU leaves them out
    np.testing.assert_array_equal(x, X)
    with pytest.raises(ValueError, match="scatter: indices"):
        tc.scatter(X, np.zeros((2, 2, 1), np.int64), X[:, :2, :1])
    with pytest.raises(ValueError, match=r"scatter: updates: expected the shape of indices, \[2, 3, 1\], or one that broadcasts to it, got \[2\]"):
        tc.scatter(X, np.zeros((2, 3, 1), np.int64), np.ones(2, np.float32))
    with pytest.raises(TypeError, match="scatter: updates: expected the dtype of x, float32, but got int32"):
        tc.scatter(X, np.zeros((2, 3, 1), np.int64), np.ones(1, np.int32))
    with pytest.raises(TypeError, match="scatter: x with a reduction"):
        tc.scatter(np.ones(3, np.int8), [0], np.ones(1, np.int8), reduction="add")
    with pytest.raises(ValueError, match='reduction "mean" is not known; there are none, add, multiply, max, min'):
        tc.scatter(X, np.zeros((2, 3, 1), np.int64), X[..., :1], reduction="mean")  # type: ignore[arg-type]
