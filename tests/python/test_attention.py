# SPDX-License-Identifier: Apache-2.0
"""The options of attention as Python passes them, against NumPy in double precision."""

from __future__ import annotations

import numpy as np
import pytest

import tensorcraft as tc

Q = np.random.default_rng(1).standard_normal((2, 4, 5, 16)).astype(np.float32)
K, V = np.random.default_rng(2).standard_normal((2, 2, 2, 9, 16)).astype(np.float32)


def expected(q, k, v, seen, softcap=None, added=0.0, sinks=None):
    """By the definition; seen and added broadcast to (batch, heads, queries, keys)."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    scores = q @ k.swapaxes(2, 3) / np.sqrt(q.shape[3])
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    weights = np.exp(scores + added) * seen
    total = weights.sum(3) + (np.exp(np.float64(sinks))[None, :, None] if sinks is not None else 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(weights @ v / total[..., None]), np.log(total)


def check(result, wanted) -> None:
    np.testing.assert_allclose(np.asarray(result.out), wanted[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.asarray(result.lse), wanted[1], rtol=1e-4, atol=1e-5)


def test_window_softcap_and_sinks(device: str) -> None:
    sinks = np.array([0.5, -1, 2, -np.inf], np.float32)
    at = np.arange(5)[:, None] + 4 - np.arange(9)[None, :]
    result = tc.attention(Q, K, V, causal=True, window=(3, 0), softcap=2, sinks=sinks, return_lse=True, device=device)
    check(result, expected(Q, K, V, (at >= 0) & (at <= 3), softcap=2, sinks=sinks))


def test_masks_of_both_kinds(device: str) -> None:
    seen = np.random.default_rng(3).random((2, 1, 5, 9)) > 0.4
    seen[1, 0, 2] = False
    check(tc.attention(Q, K, V, mask=seen, return_lse=True, device=device), expected(Q, K, V, seen))
    added = np.random.default_rng(4).standard_normal((4, 1, 9)).astype(np.float32)
    check(tc.attention(Q, K, V, mask=added, return_lse=True, device=device), expected(Q, K, V, True, added=added))


@pytest.mark.parametrize("kind", ["list", "numpy", "bool"])
def test_causal_of_each_request(device: str, kind: str) -> None:
    each = {"list": [True, False], "numpy": np.array([True, False]), "bool": np.True_}[kind]
    seen = np.ones((2, 1, 5, 9), bool)
    for b in (0, 1):
        if kind == "bool" or b == 0:
            seen[b] = np.arange(5)[:, None] + 4 >= np.arange(9)[None, :]
    check(tc.attention(Q, K, V, causal=each, return_lse=True, device=device), expected(Q, K, V, seen))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_a_ragged_batch(device: str, dtype: type) -> None:
    q_starts, k_starts = np.array([0, 3, 3, 8], dtype), np.array([0, 4, 6, 15], dtype)
    rows = np.random.default_rng(5).standard_normal((15, 4, 8)).astype(np.float32)
    q, k, v = rows[:8], rows[:, :2], np.concatenate([rows[:, 2:]] * 2, axis=2)
    result = tc.attention(
        q, k, v, cu_seqlens_q=q_starts, cu_seqlens_k=k_starts, causal=True, return_lse=True, device=device
    )
    assert result.out.shape == (8, 4, 16)
    assert result.lse.shape == (4, 8)
    for b in range(3):
        n, keys = q_starts[b + 1] - q_starts[b], k_starts[b + 1] - k_starts[b]
        of_q, of_k = slice(q_starts[b], q_starts[b + 1]), slice(k_starts[b], k_starts[b + 1])
        seen = np.arange(n)[:, None] + keys - n >= np.arange(keys)[None, :]
        wanted = expected(*(x.swapaxes(0, 1)[None] for x in (q[of_q], k[of_k], v[of_k])), seen)
        np.testing.assert_allclose(np.asarray(result.out)[of_q], wanted[0][0].swapaxes(0, 1), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(np.asarray(result.lse)[:, of_q], wanted[1][0], rtol=1e-4, atol=1e-5)


def test_errors_name_the_option() -> None:
    with pytest.raises(ValueError, match="attention: mask: expected a shape that broadcasts to .*, got"):
        tc.attention(Q, K, V, mask=np.ones((3, 9), bool), device="cpu")
    with pytest.raises(ValueError, match="attention: causal: "):
        tc.attention(Q, K, V, causal=[True, True, False], device="cpu")
    with pytest.raises(TypeError, match="attention: causal: .*bool"):
        tc.attention(Q, K, V, causal=[1.0, 0.0], device="cpu")
    q, k, v = (x[0].swapaxes(0, 1).copy() for x in (Q, K, V))
    with pytest.raises(ValueError, match="give cu_seqlens_q and cu_seqlens_k, or neither"):
        tc.attention(q, k, v, cu_seqlens_q=[0, 5], device="cpu")
    with pytest.raises(IndexError, match="they must not decrease"):
        tc.attention(q, k, v, cu_seqlens_q=[0, 6], cu_seqlens_k=[0, 2], device="cpu")


def test_the_other_names_of_operators_are_the_operators(device: str) -> None:
    scale = 0.3
    q, k, v = (a.astype(np.float64) for a in (Q[:, :2], K, V))
    weights = np.exp(scale * q @ k.swapaxes(2, 3))
    wanted = weights @ v / weights.sum(3, keepdims=True)
    np.testing.assert_allclose(tc.flash_attention(Q[:, :2], K, V, scale, device=device), wanted, rtol=1e-4, atol=1e-5)
    x, weight, bias = Q[0, 0], K[0, 0, 0], V[0, 0, 0]
    y = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * weight + bias
    wanted = 0.5 * y * (1 + np.tanh(0.7978845608028654 * (y + 0.044715 * y**3)))
    got = tc.fused_layer_norm_activation(x, weight=weight, bias=bias, activation="gelu_tanh", device=device)
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
