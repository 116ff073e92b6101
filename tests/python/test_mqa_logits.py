# SPDX-License-Identifier: Apache-2.0
"""Scores of an indexer over keys side by side and in pages, beside NumPy in float64."""

import numpy as np
import pytest

import tensorcraft as tc

RANDOM = np.random.default_rng(7)
QUERIES, HEADS, DIM, KEYS, PAGE = 21, 5, 16, 70, 8
Q = RANDOM.standard_normal((QUERIES, HEADS, DIM)).astype(np.float16)
K = RANDOM.standard_normal((KEYS, DIM)).astype(np.float16)
WEIGHTS = RANDOM.standard_normal((QUERIES, HEADS)).astype(np.float32)
SCALE = RANDOM.uniform(0.5, 2, KEYS).astype(np.float32)
START = RANDOM.integers(0, KEYS, QUERIES).astype(np.int32)
END = RANDOM.integers(0, KEYS + 9, QUERIES).astype(np.int32)


def wanted(q: np.ndarray, k: np.ndarray, weights: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    dots = np.maximum(np.einsum("ihd,jd->ijh", q.astype(np.float64), k.astype(np.float64)), 0)
    logits = np.einsum("ijh,ih->ij", dots, weights.astype(np.float64))
    j = np.arange(len(k))
    return np.where((j >= start[:, None]) & (j < end[:, None]), logits, -np.inf)


@pytest.mark.parametrize("variant", ["cpu", "reference", "naive", "tensor_core", "wgmma"])
def test_agrees_with_numpy(device: str, variant: str) -> None:
    if (variant in ("cpu", "reference")) != (device == "cpu"):
        pytest.skip("the variant is of other devices")
    out = tc.mqa_logits(Q, K, WEIGHTS, k_scale=SCALE, k_start=START, k_end=END, device=device, variant=variant)
    np.testing.assert_allclose(np.asarray(out), wanted(Q, K, WEIGHTS, START, END) * SCALE, rtol=1e-4, atol=1e-4)


def test_pages_hold_the_same_keys(device: str) -> None:
    pages = RANDOM.permutation(2 * 9).astype(np.int32)
    cache = np.full((18, PAGE, DIM), np.nan, np.float16)
    padded = np.concatenate([K, np.full((2, DIM), np.nan, np.float16)]).reshape(9, PAGE, DIM)
    cache[pages[:9]] = padded
    cache[pages[9:]] = padded
    q = Q[:6].reshape(2, 3, HEADS, DIM)
    lengths = np.array([KEYS, 33], np.int32)
    out = tc.mqa_logits(
        q, cache, WEIGHTS[:6].reshape(2, 3, HEADS), block_tables=pages.reshape(2, 9), lengths=lengths, device=device
    )
    assert out.shape == (2, 3, 72)
    for b in range(2):
        end = lengths[b] - 2 + np.arange(3)  # the newest query sees the newest key
        alone = wanted(q[b], K, WEIGHTS[3 * b : 3 * b + 3], np.zeros(3), end)
        np.testing.assert_allclose(np.asarray(out)[b, :, :KEYS], alone, rtol=1e-4, atol=1e-4)
        assert (np.asarray(out)[b, :, KEYS:] == -np.inf).all()


def test_a_page_that_is_not_there_is_an_index_error() -> None:
    with pytest.raises(IndexError, match="entry 1 of request 0 is 3, expected"):
        tc.mqa_logits(Q[:1], K[:24].reshape(3, 8, DIM), WEIGHTS[:1], block_tables=[[0, 3]], lengths=[9], device="cpu")
