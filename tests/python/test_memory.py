# SPDX-License-Identifier: Apache-2.0
"""tc.memory: what devices' memory is used for."""

import gc

import numpy as np
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


@pytest.fixture(params=["cpu", pytest.param("cuda:0", marks=needs_gpu)])
def place(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_pool_evicts_what_was_used_least_recently_and_keeps_its_bytes(place: str) -> None:
    size = 1 << 20
    pool = tc.MemoryPool(quota=3 * size, device=place)
    assert pool.device == place
    blocks = [pool.allocate(size) for _ in range(3)]
    for n, block in enumerate(blocks):
        x = pool.pin(block, (size // 4,), "int32")
        assert x.device == place and x.shape == (size // 4,)
        x[...] = n
        del x
    pool.touch(blocks[0])
    fourth = pool.allocate(size)  # there is room for three
    where = {b.id: b.on_device for b in pool.blocks()}
    assert where == {blocks[0]: True, blocks[1]: False, blocks[2]: True, fourth: True}
    stats = pool.stats()
    assert (stats.evictions, stats.evicted_blocks, stats.evicted_bytes) == (1, 1, size)
    assert stats.reserved == stats.used + stats.cached and stats.available == stats.quota - stats.used
    for n, block in enumerate(blocks):  # each comes back, for another
        np.testing.assert_array_equal(np.asarray(pool.pin(block, (size // 4,), "int32")), n)
        gc.collect()
    assert pool.stats().restores >= 2


def test_a_pinned_block_stays_while_its_tensor_lives(place: str) -> None:
    size = 1 << 20
    pool = tc.MemoryPool(quota=2 * size, device=place)
    first, second = pool.allocate(size), pool.allocate(size)
    x = pool.pin(first)
    assert x.shape == (size,) and x.dtype == tc.uint8
    view = x[:16]
    y = pool.pin(second)
    for refused in (pool.evict, pool.free):
        with pytest.raises(ValueError, match="has 1 pins"):
            refused(first)
    with pytest.raises(tc.OutOfMemory, match="Memory pool quota exceeded: requested 1048576 bytes, used 2097152, quota 2097152"):
        pool.allocate(size)
    del x, y
    gc.collect()
    third = pool.allocate(size)  # second can go, first has a view yet
    assert {b.id: b.pins for b in pool.blocks()} == {first: 1, second: 0, third: 0}
    del view
    gc.collect()
    pool.evict(first)
    pool.restore(first)
    pool.free(first)
    with pytest.raises(ValueError):
        pool.touch(first)


def test_a_tensor_outlives_its_pool(place: str) -> None:
    pool = tc.MemoryPool(device=place)
    x = pool.pin(pool.allocate(64), (16,), tc.float32)
    x[...] = 3.0
    del pool
    gc.collect()
    np.testing.assert_array_equal(np.asarray(tc.add(x, x)), 6)


def test_what_a_pool_refuses(place: str) -> None:
    pool = tc.MemoryPool(quota=1 << 20, device=place)
    block = pool.allocate(64)
    for call, kind, said in [
        (lambda: tc.MemoryPool(-1, place), ValueError, "quota must be at least 0"),
        (lambda: tc.MemoryPool("much", place), TypeError, "quota"),
        (lambda: tc.MemoryPool(device="simt"), NotImplementedError, "simt has the memory of the host"),
        (lambda: pool.allocate(0), ValueError, "at least 1 byte"),
        (lambda: pool.allocate(1 << 21), tc.OutOfMemory, "Memory pool quota exceeded: requested 2097152 bytes"),
        (lambda: pool.pin(block, (17,), "float32"), ValueError, "17 elements of float32 do not fit in block 1 of 64 bytes"),
        (lambda: pool.pin(block, (-1,)), ValueError, "-1"),
        (lambda: pool.pin(99), ValueError, "99"),
        (lambda: pool.free(99), ValueError, "99"),
        (lambda: pool.evict("x"), TypeError, "block"),
        (lambda: pool.set_quota(-1), ValueError, "quota must be at least 0"),
    ]:
        with pytest.raises(kind, match=said):
            call()
    assert pool.stats().live_blocks == 1
