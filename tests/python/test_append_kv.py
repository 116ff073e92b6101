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


def e4m3(codes: np.ndarray) -> np.ndarray:
    """The numbers of codes of float8_e4m3fn."""
    sign, exponent, fraction = codes >> 7, codes >> 3 & 15, codes & 7
    value = np.where(exponent == 0, fraction * 2.0**-9, (8 + fraction) * 2.0 ** (exponent.astype(int) - 10))
    return np.where(codes & 127 == 127, np.nan, np.where(sign == 1, -value, value))


def numbers_of_rows(rows: np.ndarray) -> np.ndarray:
    """The numbers of rows of 656 bytes: 512 codes, 4 scales, 64 values of bfloat16."""
    scales = rows[..., 512:528].copy().view(np.float32).repeat(128, axis=-1)
    ends = rows[..., 528:].copy().view(np.uint16).astype(np.uint32) << 16
    return np.concatenate([e4m3(rows[..., :512]) * scales, ends.view(np.float32)], axis=-1).astype(np.float32)


def test_a_latent_cache_has_no_values(device: str) -> None:
    random = np.random.default_rng(3)
    rows, turns = random.standard_normal((3, 1, 24)).astype(np.float32), random.standard_normal((2, 5, 4)).astype(np.float32)
    k, k_pe = rows[..., :16].copy(), rows[..., 16:].copy()
    cache, other = put(device, *np.zeros((2, 2, 4, 1, 24), np.float32))
    slots, positions = put(device, np.array([6, -1, 1], np.int32), np.array([4, 0, 2], np.int32))
    cos, sin, q, whole, k, k_pe = put(device, *turns, rows, rows, k, k_pe)
    assert tc.append_kv(cache, None, whole, None, slots, cos=cos, sin=sin, positions=positions) is cache
    result = tc.append_kv(other, None, k, None, slots, k_pe=k_pe, q=q, cos=cos, sin=sin, positions=positions)
    assert result._fields == ("k_cache_out", "q_out") and result.k_cache_out is other
    written = np.asarray(cache)
    np.testing.assert_array_equal(np.asarray(other), written)
    np.testing.assert_array_equal(written[1, 2, 0, :16], rows[0, 0, :16])
    np.testing.assert_array_equal(written[1, 2], np.asarray(result.q_out)[0])
    first, second, (c, s) = rows[0, 0, 16:20], rows[0, 0, 20:], turns[:, 4]
    np.testing.assert_allclose(written[1, 2, 0, 16:], np.concatenate([first * c - second * s, second * c + first * s]), rtol=1e-5)
    assert np.count_nonzero(written) == 48
    with pytest.raises(ValueError, match="append_kv: v is given, but no v_cache; give both, or neither"):
        tc.append_kv(cache, None, whole, whole, slots)


def test_rows_of_bytes_are_written_and_read(device: str) -> None:
    random = np.random.default_rng(4)
    k, q = random.standard_normal((6, 1, 576)).astype(np.float32), random.standard_normal((1, 2, 4, 576)).astype(np.float32)
    cache = np.zeros((3, 4, 656), np.uint8)
    tc.append_kv(cache, None, k, None, np.array([8, 9, 10, 11, 0, 1], np.int32), device="cpu")
    numbers = numbers_of_rows(cache)
    np.testing.assert_allclose(numbers[2], k[:4, 0], atol=0.15)
    rows, tables, lengths, at = put(device, cache, np.array([[2, 0]], np.int32), np.array([6], np.int32), q)
    got = np.asarray(tc.paged_attention(at, rows, None, tables, lengths, scale=0.05))
    keys = np.concatenate([numbers[2], numbers[0, :2]])[None, :, None]
    wanted = tc.paged_attention(q, keys, None, [[0]], [6], scale=0.05, device="cpu")
    np.testing.assert_allclose(got, np.asarray(wanted), rtol=1e-4, atol=1e-4)
    # Latent and rope parts in arrays of their own.
    parts = put(device, q[..., :512].copy(), numbers[:, :, None, :512].copy(), q[..., 512:].copy(), numbers[:, :, None, 512:].copy())
    apart = tc.paged_attention(parts[0], parts[1], None, tables, lengths, scale=0.05, q_pe=parts[2], k_pe=parts[3])
    np.testing.assert_allclose(np.asarray(apart), got, rtol=1e-4, atol=1e-4)
