# SPDX-License-Identifier: Apache-2.0
"""softmax and its relatives from Python: values against float64, sums of rows, what masks and targets mean."""

from typing import Any

import numpy as np
import pytest

import tensorcraft as tc

RNG = np.random.default_rng(11)


def logsumexp(x: Any) -> Any:
    top = x.max(-1, keepdims=True)
    return top + np.log(np.exp(x - top).sum(-1, keepdims=True))


def mean_loss(x: Any, targets: Any) -> Any:
    counts = np.flatnonzero(targets != -100)
    return np.mean(logsumexp(x)[counts, 0] - x[counts, targets[counts]])


@pytest.mark.parametrize("cols", [1, 2, 31, 384, 1025, 20000])
def test_rows_sum_to_one_and_logarithms_are_those_of_float64(cols: int, device: str) -> None:
    x = RNG.normal(0, 5, (7, cols)).astype(np.float32)
    lse = logsumexp(x.astype(np.float64))
    weights = tc.softmax(x, device=device)
    assert weights.min() >= 0
    np.testing.assert_allclose(weights.sum(-1, dtype=np.float64), 1, atol=1e-5)
    np.testing.assert_allclose(tc.log_softmax(x, device=device), x - lse, rtol=1e-5, atol=2e-5)
    np.testing.assert_allclose(tc.logsumexp(x, device=device), lse[:, 0], rtol=1e-5, atol=1e-5)
    assert tc.logsumexp(x, axis=0, keepdims=True, device=device).shape == (1, cols)


def test_softmax_correctness(device: str) -> None:
    for _ in range(100):
        x = RNG.normal(0, 5, tuple(RNG.integers(1, 40, 2))).astype(np.float32)
        exact = np.exp(x.astype(np.float64) - logsumexp(x.astype(np.float64)))
        np.testing.assert_allclose(tc.softmax(x, device=device), exact, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("cols", [6, 104, 9000])
def test_a_masked_row_sums_to_one_over_what_is_left(cols: int, device: str) -> None:
    x = RNG.normal(0, 5, (2, 3, cols)).astype(np.float32)
    keep = RNG.random((3, cols)) < 0.5
    keep[0, 1], keep[1] = True, False
    x[:, :, 0], keep[:, 0] = np.nan, False
    weights = tc.softmax(x, scale=0.5, mask=keep, device=device)
    assert not weights[:, ~keep].any() and not weights[:, 1].any()
    np.testing.assert_allclose(weights[:, [0, 2]].sum(-1), 1, atol=1e-5)
    added = np.where(keep, 0, -np.inf).astype(np.float32)
    x[:, :, 0] = 0
    same = tc.softmax(x, scale=0.5, mask=added, device=device)
    np.testing.assert_allclose(same[:, [0, 2]], weights[:, [0, 2]], rtol=1e-5)
    assert np.isnan(same[:, 1]).all()


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("classes", [10, 1001, 50257])
def test_cross_entropy_is_that_of_float64(classes: int, dtype: type, device: str) -> None:
    x = RNG.normal(0, 3, (9, classes)).astype(np.float32)
    targets = RNG.integers(0, classes, 9).astype(dtype)
    targets[4] = -100
    loss = tc.cross_entropy(x, targets, device=device)
    assert loss.shape == () and loss.dtype == np.float32
    np.testing.assert_allclose(loss, mean_loss(x.astype(np.float64), targets), rtol=1e-5)
    result = tc.cross_entropy(x, targets, reduction="none", return_lse=True, device=device)
    assert result._fields == ("out", "lse") and result.out[4] == 0
    np.testing.assert_allclose(
        result.out.sum(), tc.cross_entropy(x, targets, reduction="sum", device=device), rtol=1e-6
    )
    np.testing.assert_allclose(result.lse, logsumexp(x.astype(np.float64))[:, 0], rtol=1e-6)


def test_a_target_that_is_no_class_is_an_index_error_where_the_host_computes() -> None:
    x = np.zeros((2, 3), np.float32)
    with pytest.raises(IndexError, match=r"targets: element 1 is 3, expected \[0, 3\), the classes of logits"):
        tc.cross_entropy(x, [0, 3], device="cpu")
    assert tc.cross_entropy(x, [0, 3], ignore_index=3, device="cpu") == np.float32(np.log(3))


@pytest.mark.skipif("simt" not in tc.devices(), reason="built without the emulator")
def test_a_kernel_gives_nan_for_a_target_that_is_no_class() -> None:
    x = np.zeros((3, 5), np.float32)
    losses = tc.cross_entropy(x, [0, 5, -1], reduction="none", device="simt")
    np.testing.assert_allclose(losses, [np.log(5), np.nan, np.nan], rtol=1e-6)


def test_options_are_checked() -> None:
    x = np.zeros((2, 3), np.float32)
    with pytest.raises(ValueError, match='cross_entropy: reduction "average" is not known; there are mean, sum, none'):
        tc.cross_entropy(x, [0, 1], reduction="average")
    with pytest.raises(TypeError, match="cross_entropy: targets: Dtype value"):
        tc.cross_entropy(x, np.zeros(2, np.float32))
    with pytest.raises(ValueError, match="softmax: mask must broadcast to x: shapes .* do not broadcast"):
        tc.softmax(x, mask=[True, False])
    with pytest.raises(ValueError, match="softmax: scale must be finite"):
        tc.softmax(x, scale=float("nan"))
    with pytest.raises(TypeError, match="softmax: mask: Dtype value"):
        tc.softmax(x, mask=np.zeros(3, np.int32))
