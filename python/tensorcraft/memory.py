# SPDX-License-Identifier: Apache-2.0
"""The memory of a device: what tensors use, what the pool keeps for the next ones, and how much it may.

A GPU's tensors come from a pool: what is freed is kept and reused in the order of its stream. The setting `gpu_allocator`
names the driver's own memory instead. `device` is "cuda:0" and its like, "cpu" or "simt", by default the default device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from . import _tensorcraft as native
from ._tensorcraft import Tensor

__all__ = ["Block", "MemoryPool", "Piece", "Stats", "pinned", "set_quota", "snapshot", "stats", "trim"]


class Stats(NamedTuple):
    """Memory of one device, in bytes where nothing else is said.

    At any time `reserved == used + cached` and `available == quota - used` hold for a pool; the counts of other sources
    are 0 where they do not apply.
    """

    live_blocks: int  # tensors and workspaces that have memory
    live_bytes: int  # of them, as asked for
    quota: int  # of used and cached together; what the device has if none was set
    reserved: int  # taken from the driver
    used: int  # live_bytes, what rounding adds, and what graphs own alone
    cached: int  # kept for the next tensors
    available: int  # what may still come into use
    peak_used: int
    peak_reserved: int
    captured: int  # of used: freed by the program, and owned by a graph
    free_blocks: int  # pieces that cached memory is in
    allocations: int  # since the process began
    reuses: int  # of them without the driver
    driver_allocations: int  # calls of the driver
    evictions: int  # blocks moved to the host
    restores: int  # and back
    evicted_blocks: int  # on the host now
    evicted_bytes: int
    pinned_blocks: int  # that must stay where they are


class Piece(NamedTuple):
    """A piece of a pool's memory. Pieces of one segment lie beside each other."""

    segment: int  # address of what was taken from the driver at once
    address: int
    bytes: int
    free: bool
    captured: bool  # owned by a graph


def stats(device: str | None = None) -> Stats:
    """What the memory of a device is used for now, and what was done since the process began."""
    return Stats(**native.memory_stats(device))


def trim(device: str | None = None) -> int:
    """Gives cached memory back to the driver, waiting for the work that used it; returns how many bytes."""
    return native.memory_trim(device)


def set_quota(bytes: int, device: str | None = None) -> None:
    """Limits used and cached memory of a GPU together; 0 for no limit but the device's.

    Raises ValueError for less than what is in use, NotImplementedError on a device that has no pool.
    """
    native.memory_set_quota(bytes, device)


def snapshot(device: str | None = None) -> tuple[Piece, ...]:
    """Every piece of a GPU's pool, by address: where memory went, and how it is cut. Empty on a device without a pool."""
    return tuple(Piece(*piece) for piece in native.memory_snapshot(device))


def pinned(shape: Sequence[int], dtype: Any = None, device: str | None = None) -> Tensor:
    """An uninitialised tensor of page-locked host memory, which kernels of the GPU reach and copies need no detour for.

    It is on the device "cpu". `numpy()` waits for what a GPU was given to do with it; other readers synchronise the stream.
    Where `device` is no GPU the memory is plain.
    """
    return native.memory_pinned(shape, dtype, device)


class Block(NamedTuple):
    """A block of a MemoryPool."""

    id: int
    bytes: int
    on_device: bool  # else its bytes are on the host
    last_access: int  # counts accesses of the pool
    pins: int  # tensors that need it where it is


class MemoryPool:
    """Blocks of a device's memory that are known by numbers, and move to the host if memory is short.

        pool = tc.MemoryPool(quota=1 << 30)
        block = pool.allocate(256 << 20)
        x = pool.pin(block, (64, 1 << 20), "float32")  # a tensor; the block stays until it is gone
        del x

    A block that no tensor pins is evicted, the least recently used first, if another one needs its room; its bytes are
    kept and come back when it is pinned. On a GPU it goes to page-locked memory, and all is enqueued on the current
    stream in its order. Memory of a pool's own, beside that of tensors: `quota` bounds it.

    quota: bytes of used and cached memory together; 0 for what the device has.
    device: "cuda:0" and its like, or "cpu"; by default the default device.

    Raises ValueError: an id that no block has, a block that is pinned where it must not be.
    OutOfMemory: there is no room even with all unpinned blocks on the host; nothing has changed then.
    NotImplementedError: the device is "simt".
    """

    def __init__(self, quota: int = 0, device: str | None = None) -> None:
        self._native = native.MemoryPool(quota, device)

    def allocate(self, bytes: int) -> int:
        """A new block of so many bytes, uninitialised; gives its id. May evict others."""
        return self._native.allocate(bytes)

    def free(self, block: int) -> None:
        """Gives it back to the pool, after all work on it; its id is unknown then."""
        self._native.free(block)

    def evict(self, block: int) -> None:
        """Moves it to the host."""
        self._native.evict(block)

    def restore(self, block: int) -> None:
        """Moves it back to the device, where it may be evicted again."""
        self._native.restore(block)

    def touch(self, block: int) -> None:
        """Makes it the most recently used one."""
        self._native.touch(block)

    def pin(self, block: int, shape: Sequence[int] | int | None = None, dtype: Any = None) -> Tensor:
        """A tensor in the block's memory, which stays on the device until the tensor and its views are gone.

        Without a shape it has all the block; without a dtype bytes, uint8.
        """
        return self._native.pin(block, shape, dtype)

    def trim(self) -> int:
        """Gives cached memory back to the device; returns how many bytes."""
        return self._native.trim()

    def set_quota(self, quota: int) -> None:
        """Changes the quota; ValueError for less than what is in use, 0 for none."""
        self._native.set_quota(quota)

    def stats(self) -> Stats:
        """Its memory now, and what was done since it was made."""
        return Stats(**self._native.stats())

    def blocks(self) -> list[Block]:
        """All blocks, the least recently used first."""
        return [Block(*row) for row in self._native.blocks()]

    @property
    def device(self) -> str:
        """The device, as text."""
        return self._native.device
