# SPDX-License-Identifier: Apache-2.0
"""The memory of a device: what tensors use, what the pool keeps for the next ones, and how much it may.

A GPU's tensors come from a pool: what is freed is kept and reused in the order of its stream. The setting `gpu_allocator`
names the driver's own memory instead. `device` is "cuda:0" and its like, "cpu" or "simt", by default the default device.
"""

from __future__ import annotations

from typing import NamedTuple

from . import _tensorcraft as native

__all__ = ["Piece", "Stats", "set_quota", "snapshot", "stats", "trim"]


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
