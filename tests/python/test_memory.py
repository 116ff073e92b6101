# SPDX-License-Identifier: Apache-2.0
"""tc.memory: what devices' memory is used for."""

import pytest

import tensorcraft as tc

HAS_GPU = any(d.startswith("cuda") for d in tc.devices())
needs_gpu = pytest.mark.skipif(not HAS_GPU, reason="there is no GPU")


def test_stats_count_tensors_of_the_host():
    before = tc.memory.stats("cpu")
    x = tc.zeros((100,), dtype="float32", device="cpu")
    now = tc.memory.stats("cpu")
    assert now.live_blocks == before.live_blocks + 1
    assert now.live_bytes == before.live_bytes + x.nbytes
    assert now.allocations > before.allocations
    del x
    assert tc.memory.stats("cpu").live_bytes == before.live_bytes


def test_the_host_has_no_pool():
    assert tc.memory.trim("cpu") == 0
    assert tc.memory.snapshot("cpu") == ()
    with pytest.raises(NotImplementedError, match="set_quota: the memory of cpu comes from no pool"):
        tc.memory.set_quota(1 << 30, "cpu")


def test_devices_and_sizes_are_checked():
    with pytest.raises(ValueError):
        tc.memory.stats("tpu")
    with pytest.raises(TypeError):
        tc.memory.set_quota("much", "cpu")
    with pytest.raises(ValueError, match="set_quota: -1 bytes"):
        tc.memory.set_quota(-1, "cpu")


@needs_gpu
def test_a_gpu_pool_reuses_and_gives_back():
    x = tc.empty((1 << 20,), dtype="float32", device="cuda:0")
    address = x.data_ptr
    now = tc.memory.stats("cuda:0")
    assert now.reserved == now.used + now.cached
    assert now.available == now.quota - now.used
    del x
    y = tc.empty((1 << 20,), dtype="float32", device="cuda:0")
    assert y.data_ptr == address
    pieces = tc.memory.snapshot("cuda:0")
    assert sum(p.bytes for p in pieces) == tc.memory.stats("cuda:0").reserved
    assert any(p.address == address and not p.free for p in pieces)
    del y
    tc.memory.trim("cuda:0")
    assert tc.memory.stats("cuda:0").cached <= now.reserved


@needs_gpu
def test_a_quota_is_held():
    tc.memory.trim("cuda:0")
    used = tc.memory.stats("cuda:0").reserved
    tc.memory.set_quota(used + (64 << 20), "cuda:0")
    try:
        with pytest.raises(MemoryError, match="Memory pool quota exceeded: requested 134217728 bytes, used "):
            tc.empty((128 << 20,), dtype="uint8", device="cuda:0")
    finally:
        tc.memory.set_quota(0, "cuda:0")
    tc.empty((128 << 20,), dtype="uint8", device="cuda:0")
