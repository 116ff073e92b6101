# SPDX-License-Identifier: Apache-2.0
"""Caches of keys and values between devices, and between a device and the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorcraft as tc

LAYERS, TOKENS, DIM = 3, 32, 64


class OnlyDlpack:
    """An array of another framework."""

    def __init__(self, array: np.ndarray) -> None:
        self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__


def cache(*shape: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def order(n: int, of: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).permutation(of)[:n]


def put(device: str, *arrays: np.ndarray) -> list[tc.Tensor]:
    return [tc.asarray(a, device=device) for a in arrays]


def host(array: np.ndarray, device: str) -> tc.Tensor:
    """A copy in memory of the host that the device reaches."""
    t = tc.memory.pinned(array.shape, array.dtype, device)
    t.numpy()[...] = array
    return t


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_one_layer_there_and_back(device: str, index: type) -> None:
    k, v = put(device, cache(TOKENS, DIM, seed=1), cache(TOKENS, DIM, seed=2))
    near, far = put(device, order(20, TOKENS, 3).astype(index), order(20, 2 * TOKENS, 4).astype(index))
    k_far, v_far = host(np.zeros((2 * TOKENS, DIM), np.float32), device), host(np.zeros((2 * TOKENS, DIM), np.float32), device)
    result = tc.transfer_hicache_one_layer(k_far, v_far, far, k, v, near)
    assert result.k_dst_out is k_far and result.v_dst_out is v_far
    at = far.numpy()
    np.testing.assert_array_equal(k_far.numpy()[at], k.numpy()[near.numpy()])
    np.testing.assert_array_equal(v_far.numpy()[at], v.numpy()[near.numpy()])
    assert np.count_nonzero(k_far.numpy().any(axis=1)) == 20
    k_back, v_back = tc.zeros_like(k), tc.zeros_like(v)
    tc.transfer_hicache_one_layer(k_back, v_back, near, k_far, v_far, far, unroll=2, block_quota=2)
    np.testing.assert_array_equal(k_back.numpy()[near.numpy()], k.numpy()[near.numpy()])
    np.testing.assert_array_equal(v_back.numpy()[near.numpy()], v.numpy()[near.numpy()])


@pytest.mark.parametrize("layout", ["layer_first", "page_first", "page_first_direct"])
def test_all_layers_to_the_host_and_back(device: str, layout: str) -> None:
    k, v = put(device, cache(LAYERS, TOKENS, DIM, seed=1), cache(LAYERS, TOKENS, DIM, seed=2))
    near, far = put(device, order(16, TOKENS, 3), order(16, TOKENS, 4))
    page = 4
    shape = {
        "layer_first": (LAYERS, TOKENS, DIM), "page_first": (TOKENS, LAYERS, DIM),
        "page_first_direct": (TOKENS // page, LAYERS, page, DIM),
    }[layout]  # fmt: skip
    k_host, v_host = host(np.zeros(shape, np.float32), device), host(np.zeros(shape, np.float32), device)
    tc.transfer_hicache_all_layer(k_host, v_host, far, k, v, near, dst_layout=layout)
    for layer in range(LAYERS):
        for source, token in zip(near.numpy(), far.numpy(), strict=True):
            place = {
                "layer_first": (layer, token), "page_first": (token, layer),
                "page_first_direct": (token // page, layer, token % page),
            }[layout]  # fmt: skip
            np.testing.assert_array_equal(k_host.numpy()[place], k.numpy()[layer, source])
            np.testing.assert_array_equal(v_host.numpy()[place], v.numpy()[layer, source])
    k_back, v_back = tc.zeros_like(k), tc.zeros_like(v)
    tc.transfer_hicache_all_layer(k_back, v_back, near, k_host, v_host, far, src_layout=layout)
    np.testing.assert_array_equal(k_back.numpy()[:, near.numpy()], k.numpy()[:, near.numpy()])
    np.testing.assert_array_equal(v_back.numpy()[:, near.numpy()], v.numpy()[:, near.numpy()])


@pytest.mark.parametrize("array", [lambda table: table, OnlyDlpack], ids=["numpy", "dlpack"])
def test_tables_may_be_of_uint64(array: Any) -> None:
    layers = [put("cpu", cache(TOKENS, DIM, seed=i), cache(TOKENS, DIM, seed=10 + i)) for i in range(LAYERS)]
    tables = [array(np.array([address(pair[i]) for pair in layers], np.uint64)) for i in (0, 1)]
    k, v = (np.zeros((TOKENS, LAYERS, DIM), np.float32) for _ in range(2))
    tokens = np.arange(TOKENS)
    tc.transfer_hicache_all_layer(k, v, tokens, *tables, tokens, dst_layout="page_first", device="cpu")
    for i, (k_layer, v_layer) in enumerate(layers):
        np.testing.assert_array_equal(k[:, i], k_layer.numpy())
        np.testing.assert_array_equal(v[:, i], v_layer.numpy())


def test_tables_name_the_layers(device: str) -> None:
    layers = [put(device, cache(TOKENS, DIM, seed=i), cache(TOKENS, DIM, seed=10 + i)) for i in range(LAYERS)]
    tables = [
        tc.asarray(np.array([address(pair[i]) for pair in layers]), device=device) for i in (0, 1)
    ]
    k, v = put(device, *(np.zeros((TOKENS, LAYERS, DIM), np.float32) for _ in range(2)))
    all_tokens = tc.asarray(np.arange(TOKENS), device=device)
    tc.transfer_hicache_all_layer(k, v, all_tokens, *tables, all_tokens, dst_layout="page_first")
    for i, (k_layer, v_layer) in enumerate(layers):
        np.testing.assert_array_equal(k.numpy()[:, i], k_layer.numpy())
        np.testing.assert_array_equal(v.numpy()[:, i], v_layer.numpy())


def address(t: tc.Tensor) -> int:
    if t.device.startswith("cuda"):
        return int(pytest.importorskip("torch").from_dlpack(t).data_ptr())
    return int(t.numpy().__array_interface__["data"][0])


def test_a_cache_of_another_shape_is_refused(device: str) -> None:
    k, other, tokens = put(device, np.zeros((4, 8), np.float32), np.zeros((4, 7), np.float32), np.arange(2))
    v = tc.zeros_like(k)
    with pytest.raises(ValueError, match="HicacheKernel: cache dimension mismatch"):
        tc.transfer_hicache_one_layer(k, v, tokens, tc.zeros_like(k), v, tokens, element_dim=7)
    with pytest.raises(ValueError, match=r"shape#1\('head dimension'\): expected 8 but got 7"):
        tc.transfer_hicache_one_layer(k, v, tokens, other, other, tokens)
    with pytest.raises(ValueError, match="unroll must be 1, 2 or 4, got 0"):
        tc.transfer_hicache_one_layer(k, v, tokens, k, v, tokens, unroll=0)


@pytest.mark.gpu
@pytest.mark.skipif("cuda:0" not in tc.devices(), reason="no GPU")
@pytest.mark.parametrize("layout", ["layer_first", "page_first"])
def test_pageable_memory_there_and_back(layout: str) -> None:
    tokens, dim = 4096, 1031  # more bytes than three windows have, in elements that begin anywhere
    shape = (LAYERS, tokens, dim) if layout == "layer_first" else (tokens, LAYERS, dim)
    k, v = cache(LAYERS, tokens, dim, seed=1), cache(LAYERS, tokens, dim, seed=2)
    k_gpu, v_gpu = put("cuda:0", k, v)
    near, far = order(3001, tokens, 3), order(3001, tokens, 4)
    near_gpu, far_gpu = put("cuda:0", near, far)
    k_host, v_host = (tc.full(shape, float("nan"), dtype=tc.float32, device="cpu") for _ in range(2))
    tc.transfer_hicache_all_layer(k_host, v_host, far_gpu, k_gpu, v_gpu, near_gpu, dst_layout=layout)
    came = [t.numpy() if layout == "layer_first" else t.numpy().swapaxes(0, 1) for t in (k_host, v_host)]
    for there, here in zip(came, (k, v), strict=True):
        np.testing.assert_array_equal(there[:, far], here[:, near])
        assert np.isnan(np.delete(there, far, axis=1)).all()
    k_back, v_back = tc.zeros_like(k_gpu), tc.zeros_like(v_gpu)
    call = (k_back, v_back, near_gpu, k_host, v_host, far_gpu)
    tc.transfer_hicache_all_layer(*call, src_layout=layout)
    np.testing.assert_array_equal(k_back.numpy()[:, near], k[:, near])
    np.testing.assert_array_equal(v_back.numpy()[:, near], v[:, near])
    e = tc.explain("transfer_hicache_all_layer", *call, src_layout=layout)
    assert e.staged.startswith("k_ptr_src, v_ptr_src: pageable memory") and e.staged in str(e)
    with pytest.raises(IndexError, match="idx_src: element 0 is -1"):
        tc.transfer_hicache_all_layer(*call[:5], tc.full((3001,), -1, dtype=tc.int64, device="cuda:0"), src_layout=layout)


def test_arrays_of_numpy_stand_beside_those_of_a_device(device: str) -> None:
    k, v, near, far = cache(TOKENS, DIM, seed=1), cache(TOKENS, DIM, seed=2), order(20, TOKENS, 3), order(20, TOKENS, 4)
    near_there, far_there, k_there, v_there = put(device, near, far, k, v)
    k_host, v_host = np.zeros_like(k), np.zeros_like(v)
    result = tc.transfer_hicache_one_layer(k_host, v_host, far_there, k_there, v_there, near_there)
    assert result.k_dst_out is k_host and result.v_dst_out is v_host
    np.testing.assert_array_equal(k_host[far], k[near])
    np.testing.assert_array_equal(v_host[far], v[near])
    assert np.count_nonzero(k_host.any(axis=1)) == 20
    k_back, v_back = tc.zeros_like(k_there), tc.zeros_like(v_there)
    tc.transfer_hicache_one_layer(k_back, v_back, near_there, k_host, v_host, far_there)
    np.testing.assert_array_equal(k_back.numpy()[near], k[near])
    np.testing.assert_array_equal(v_back.numpy()[near], v[near])
    staged = tc.explain("transfer_hicache_one_layer", k_back, v_back, near_there, k_host, v_host, far_there).staged
    assert staged.startswith("k_src, v_src: pageable memory") if device.startswith("cuda") else staged == ""


def test_explain_says_who_moves_how_many_bytes(device: str) -> None:
    k, tokens = tc.zeros((8, 64), device=device), tc.asarray(np.arange(4), device=device)
    e = tc.explain("transfer_hicache_one_layer", k, tc.zeros_like(k), tokens, k, k, tokens)
    assert "element_bytes 256" in str(e) and e.staged == ""
    assert e.variant == ("cpu" if device == "cpu" else "vectorized")


def test_pinned_memory_is_a_tensor_of_the_host() -> None:
    t = tc.memory.pinned((2, 3), tc.int32)
    t.numpy()[...] = 7
    assert t.device == "cpu" and t.shape == (2, 3) and t.dtype == tc.int32 and int(tc.sum(t)) == 42
