# SPDX-License-Identifier: Apache-2.0
"""append_kv writes the caller's arrays, whatever they are, and paged_attention reads them."""

import numpy as np
import pytest

import tensorcraft as tc


def caches(device: str, kind: str) -> list[tc.Tensor | np.ndarray]:
    if kind == "numpy" and device.startswith("cuda"):
        pytest.skip("a host array is refused there")
    arrays = [np.zeros((3, 4, 1, 8), np.float32) for _ in range(2)]
    return arrays if kind == "numpy" else [tc.asarray(a, device=device) for a in arrays]


def put(device: str, *arrays: object) -> list[tc.Tensor]:
    return [tc.asarray(a, device=device) for a in arrays]


@pytest.mark.parametrize("kind", ["numpy", "tensor"])
def test_the_caches_themselves_are_written_and_returned(device: str, kind: str) -> None:
    k_cache, v_cache = caches(device, kind)
    k, v = np.arange(32, dtype=np.float32).reshape(2, 2, 1, 8)
    given = k, v, np.array([5, -1], np.int32)
    result = tc.append_kv(k_cache, v_cache, *(given if kind == "numpy" else put(device, *given)), device=device)
    assert result.k_cache_out is k_cache and result.v_cache_out is v_cache
    for cache, tokens in ((k_cache, k), (v_cache, v)):
        wanted = np.zeros((3, 4, 1, 8), np.float32)
        wanted[1, 1] = tokens[0]
        np.testing.assert_array_equal(np.asarray(cache), wanted)


def test_out_leaves_the_caches_as_they_are(device: str) -> None:
    k_cache, v_cache = caches(device, "tensor")
    other = tc.asarray(np.full((3, 4, 1, 8), 7, np.float32), device=device)
    ones, slots = put(device, np.ones((1, 1, 8), np.float32), np.zeros(1, np.int32))
    result = tc.append_kv(k_cache, v_cache, ones, ones, slots, out=(other, None), device=device)
    assert result.k_cache_out is other and result.v_cache_out is v_cache
    assert float(np.asarray(k_cache).sum()) == 0 and float(np.asarray(other).sum()) == 8


def test_what_cannot_be_written_is_refused(device: str) -> None:
    v_cache = caches(device, "tensor")[1]
    ones, slots = put(device, np.ones((1, 1, 8), np.float32), np.zeros(1, np.int32))
    with pytest.raises(TypeError, match="append_kv: k_cache is written in place, so it must be an array, got a list"):
        tc.append_kv(np.zeros((3, 4, 1, 8), np.float32).tolist(), v_cache, ones, ones, slots, device=device)
    if not device.startswith("cuda"):
        fixed = np.zeros((3, 4, 1, 8), np.float32)
        fixed.flags.writeable = False
        with pytest.raises(BufferError, match="k_cache_out: the tensor is read-only"):
            tc.append_kv(fixed, np.zeros((3, 4, 1, 8), np.float32), ones, ones, [0], device=device)


def test_a_sequence_grows_token_by_token(device: str) -> None:
    """The last row of causal attention, at every length."""
    random = np.random.default_rng(1)
    k, v, q = random.standard_normal((3, 9, 1, 8)).astype(np.float32)
    k_cache, v_cache = caches(device, "tensor")
    table = [2, 0, 1]
    for n in range(9):
        slot = table[n // 4] * 4 + n % 4
        at, *tokens = put(device, q[n : n + 1], k[n : n + 1], v[n : n + 1])
        slots, tables, lengths = (x.astype(tc.int32) for x in put(device, [slot], [table], [n + 1]))
        tc.append_kv(k_cache, v_cache, *tokens, slots)
        got = tc.paged_attention(at, k_cache, v_cache, tables, lengths)
        wanted = tc.attention(q[None, n : n + 1], k[None, : n + 1], v[None, : n + 1], layout="bshd", device="cpu")
        np.testing.assert_allclose(np.asarray(got), np.asarray(wanted)[0], rtol=1e-5, atol=1e-5)


def test_a_query_takes_nothing_from_the_keys_behind_it(device: str) -> None:
    """Neither a NaN that stands there, nor a bit by how many queries are beside it."""
    random = np.random.default_rng(2)
    q = random.standard_normal((1, 9, 4, 8)).astype(np.float32)
    k, v = random.standard_normal((2, 12, 2, 8)).astype(np.float32)
    pages = np.array([[2, 0, 1]], np.int32)

    def attend(queries: np.ndarray, length: int) -> np.ndarray:
        caches = [tc.asarray(x.reshape(3, 4, 2, 8)[[1, 2, 0]], device=device) for x in (k, v)]
        at, keys = tc.asarray(queries, device=device), np.array([length], np.int32)
        return np.asarray(
            tc.paged_attention(at, *caches, tc.asarray(pages, device=device), tc.asarray(keys, device=device))
        )

    whole = attend(q, 9)
    if device == "cpu":
        np.testing.assert_array_equal(attend(q[:, 3:6], 6), whole[:, 3:6])
    k[7:] = v[7:] = np.nan
    behind = attend(q, 9)
    np.testing.assert_array_equal(behind[:, :7], whole[:, :7])
    assert np.isnan(behind[:, 7:]).all()
