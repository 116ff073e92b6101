# SPDX-License-Identifier: Apache-2.0
"""Reductions from Python: NumPy's arguments, values and errors."""

from typing import Any

import numpy as np
import pytest

import tensorcraft as tc

RNG = np.random.default_rng(5)
X = RNG.standard_normal((4, 6, 10)).astype(np.float32)
AXES: list[Any] = [None, 0, -1, (0, 2), (2, 0), [1], (), (0, 1, 2)]


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "var", "any", "all"])
@pytest.mark.parametrize("axis", AXES)
def test_axes_are_those_of_numpy(name: str, axis: Any, device: str) -> None:
    numpys = tuple(axis) if isinstance(axis, list) else axis
    for keepdims in (False, True):
        result = getattr(tc, name)(X, axis, keepdims=keepdims, device=device)
        expected = getattr(np, name)(X.astype(np.float64), axis=numpys, keepdims=keepdims)
        assert result.shape == expected.shape
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


def test_argmax_and_correction_are_those_of_numpy(device: str) -> None:
    for axis in (None, 0, 1, -1):
        result = tc.argmax(X, axis=axis, keepdims=True, device=device)
        assert result.dtype == np.int64
        np.testing.assert_array_equal(result, X.argmax(axis, keepdims=True))
    np.testing.assert_allclose(tc.var(X, axis=1, correction=1, device=device), X.var(1, ddof=1), rtol=1e-5)


def test_views_that_run_backwards_or_repeat_are_read_in_place(device: str) -> None:
    for x in (X[::-1, :, ::-2], X.T, np.broadcast_to(X[:1], (3, 6, 10)), X[:, 3]):
        np.testing.assert_allclose(tc.sum(x, axis=0, device=device), x.sum(0), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(tc.argmax(x, device=device), x.argmax())


def test_integers_and_bools_count_in_64_bits(device: str) -> None:
    large = np.full(3, 2**31 - 1, np.int32)
    assert tc.sum(large, device=device) == 3 * (2**31 - 1)
    assert tc.sum(X > 0, device=device) == (X > 0).sum()
    assert tc.sum(X > 0, device=device).dtype == np.int64


def test_axes_that_are_not_there_are_errors() -> None:
    with pytest.raises(IndexError, match=r"sum: axis must be in \[-3, 3\), got 3"):
        tc.sum(X, axis=3)
    with pytest.raises(ValueError, match="sum: axis -3 is named twice"):
        tc.sum(X, axis=(0, -3))
    with pytest.raises(ValueError, match="max: x: axis 0 of shape .* must have at least one element"):
        tc.max(X[:0], axis=(0, 1))
    with pytest.raises(TypeError, match="argmax: axis must be"):
        tc.argmax(X, axis=(0, 1))
    with pytest.raises(TypeError, match="sum: axis must be"):
        tc.sum(X, axis=0.5)


def test_cumulative_sum_and_topk(device: str) -> None:
    np.testing.assert_allclose(tc.cumulative_sum(X, 1, device=device), X.cumsum(1), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(tc.cumulative_sum(X[0, 0], device=device), X[0, 0].cumsum(), rtol=1e-5, atol=1e-5)
    result = tc.topk(X, 3, device=device)
    assert result._fields == ("out", "indices") and result.indices.dtype == np.int64
    order = np.argsort(-X, axis=-1, kind="stable")[..., :3]
    np.testing.assert_array_equal(result.indices, order)
    np.testing.assert_array_equal(result.out, np.take_along_axis(X, order, -1))
