# SPDX-License-Identifier: Apache-2.0
"""The router, the sort and the combination of a layer of experts, beside NumPy in float64."""

import numpy as np
import pytest

import tensorcraft as tc

RANDOM = np.random.default_rng(5)
TOKENS, EXPERTS, HIDDEN, K = 37, 24, 16, 4
LOGITS = RANDOM.standard_normal((TOKENS, EXPERTS)).astype(np.float32)
X = RANDOM.standard_normal((TOKENS, HIDDEN)).astype(np.float32)


def scores_of(scoring: str) -> np.ndarray:
    x = LOGITS.astype(np.float64)
    if scoring == "softmax":
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)
    if scoring == "sigmoid":
        return 1 / (1 + np.exp(-x))
    return np.sqrt(np.log1p(np.exp(x)))


@pytest.mark.parametrize("scoring", ["softmax", "sigmoid", "sqrtsoftplus"])
@pytest.mark.parametrize("biased", [False, True])
def test_router_agrees_with_numpy(device: str, scoring: str, biased: bool) -> None:
    bias = RANDOM.standard_normal(EXPERTS).astype(np.float32)
    weights, ids = tc.moe_router(
        LOGITS, K, scoring=scoring, bias=bias if biased else None, renormalize=True, scale=2.5, device=device
    )
    scores = scores_of(scoring)
    wanted = np.argsort(-(scores + bias * biased), axis=1, kind="stable")[:, :K]
    np.testing.assert_array_equal(np.asarray(ids), wanted)
    chosen = np.take_along_axis(scores, wanted, 1)
    np.testing.assert_allclose(np.asarray(weights), 2.5 * chosen / chosen.sum(1, keepdims=True), rtol=2e-6)


def test_groups_of_deepseek(device: str) -> None:
    bias = RANDOM.standard_normal(EXPERTS).astype(np.float32) / 8
    _, ids = tc.moe_router(LOGITS, K, scoring="sigmoid", bias=bias, groups=6, group_k=2, device=device)
    choice = (scores_of("sigmoid") + bias).reshape(TOKENS, 6, 4)
    best = np.argsort(-np.sort(choice, axis=2)[:, :, -2:].sum(2), axis=1, kind="stable")[:, :2]
    masked = np.full_like(choice, -np.inf)
    for token, groups in enumerate(best):
        masked[token, groups] = choice[token, groups]
    wanted = np.argsort(-masked.reshape(TOKENS, EXPERTS), axis=1, kind="stable")[:, :K]
    np.testing.assert_array_equal(np.asarray(ids), wanted)


@pytest.mark.parametrize("align", [1, 8])
def test_permute_sorts_and_combine_brings_back(device: str, align: int) -> None:
    ids = RANDOM.integers(-1, EXPERTS + 2, (TOKENS, K)).astype(np.int32)
    weights = RANDOM.standard_normal((TOKENS, K)).astype(np.float32)
    out, offsets, row_map, sources = (
        np.asarray(part) for part in tc.moe_permute(X, ids, EXPERTS, align=align, device=device)
    )
    sort = tc.moe_sort(ids, EXPERTS, align=align, device=device)
    for ours, alone in zip((offsets, row_map, sources), sort, strict=True):
        np.testing.assert_array_equal(ours, np.asarray(alone))
    here = (ids >= 0) & (ids < EXPERTS)
    assert np.all(offsets % align == 0) and np.all((row_map >= 0) == here)
    for expert in range(EXPERTS):
        wanted = np.flatnonzero(ids.ravel() == expert)
        rows = sources[offsets[expert] : offsets[expert + 1]]
        np.testing.assert_array_equal(rows[rows >= 0], wanted)
        np.testing.assert_array_equal(rows[len(wanted) :], -1)
    np.testing.assert_array_equal(out, np.where(sources[:, None] >= 0, X[sources // K], 0))
    back = np.asarray(tc.moe_combine(out, row_map, weights, device=device))
    np.testing.assert_allclose(back, X * (weights * here).astype(np.float64).sum(1)[:, None], rtol=1e-4, atol=1e-5)


def test_what_does_not_fit_is_refused(device: str) -> None:
    x = tc.asarray(LOGITS, device=device)
    with pytest.raises(ValueError, match=r"moe_router: k must be in \[1, 16\], at most 16 and the 24 experts"):
        tc.moe_router(x, 17)
    with pytest.raises(ValueError, match=r"moe_router: groups must be in \[1, 32\] and divide the experts, 24, got 5"):
        tc.moe_router(x, 2, groups=5)
    with pytest.raises(ValueError, match=r"moe_sort: num_experts must be in \[1, 1024\], got 0"):
        tc.moe_sort(tc.asarray([[0]], dtype=tc.int32, device=device), 0)


@pytest.mark.parametrize("how", ["offsets", "sizes", "ids"])
def test_grouped_products_agree_with_numpy(device: str, how: str) -> None:
    sizes = np.array([5, 0, 20, 12])
    b = RANDOM.standard_normal((4, 9, HIDDEN)).astype(np.float32)
    arrays = {"sizes": sizes, "offsets": np.concatenate([[0], np.cumsum(sizes)]), "ids": np.repeat(np.arange(4), sizes)}
    got = np.asarray(tc.grouped_gemm(X, b, transpose_b=True, device=device, **{how: arrays[how]}))
    wanted = np.einsum("rk,rnk->rn", X.astype(np.float64), b[arrays["ids"]])
    np.testing.assert_allclose(got, wanted, atol=1e-5)


def test_masked_products_leave_other_rows_alone(device: str) -> None:
    a = RANDOM.standard_normal((3, 6, HIDDEN)).astype(np.float32)
    b = RANDOM.standard_normal((3, HIDDEN, 5)).astype(np.float32)
    counts = np.array([0, 6, 2], np.int32)
    out = tc.full((3, 6, 5), 7.0, dtype=tc.float32, device=device)
    tc.masked_gemm(a, b, counts, out=out, device=device)
    wanted = np.full((3, 6, 5), 7.0)
    for group, count in enumerate(counts):
        wanted[group, :count] = a[group, :count].astype(np.float64) @ b[group]
    np.testing.assert_allclose(np.asarray(out), wanted, atol=1e-5)
