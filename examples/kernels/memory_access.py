# SPDX-License-Identifier: Apache-2.0
"""Memory accesses, the good form beside the bad one: counted on every device, and timed on a GPU."""

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

import tensorcraft as tc

device = "cuda" if "cuda:0" in tc.devices() else "simt"
on_gpu = device == "cuda"

# the copies
COPY = """
// Neighbours in a warp read elements that lie kApart apart, and write neighbours.
TC_DEVICE int64_t element() {
  return (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) * kApart + blockIdx.y;
}
TC_DEVICE int64_t thread() {
  return (int64_t(blockIdx.y) * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;
}
__global__ void copy(float* out, const float* x) { out[thread()] = x[element()]; }
__global__ void touch(int64_t* elements) { elements[thread()] = element(); }
"""
# the transposes
TRANSPOSE = """
#include "tensorcraft/device/shared.cuh"

struct Tile {
  float words[32 * kPitch];
};
// The word of shared memory that holds an element of the tile.
TC_DEVICE int word(int row, int column) {
  return row * kPitch + (kSwizzled ? column ^ row : column);
}
// Where it goes, from the block's tile of `x` to the tile opposite. Staged, neighbours write a row.
TC_DEVICE int64_t target(int row, int column, int n) {
  const int left = blockIdx.x * 32, top = blockIdx.y * 32;
  return kStaged ? int64_t(left + row) * n + top + column : int64_t(left + column) * n + top + row;
}
// A block of 32 x 8 threads turns a tile. Each of its 8 warps reads a row at a time.
__global__ void __launch_bounds__(256) transpose(float* out, const float* x, int n) {
  const int column = threadIdx.x;
  const float* in = x + int64_t(blockIdx.y) * 32 * n + blockIdx.x * 32;
  if constexpr (kStaged) {
    auto& tile = static_shared<Tile>();
    for (int row = threadIdx.y; row < 32; row += 8)
      tile.words[word(row, column)] = in[int64_t(row) * n + column];
    __syncthreads();  // the tile is complete before its columns are read
    for (int row = threadIdx.y; row < 32; row += 8)
      out[target(row, column, n)] = tile.words[word(column, row)];
  } else {
    for (int row = threadIdx.y; row < 32; row += 8)
      out[target(row, column, n)] = in[int64_t(row) * n + column];
  }
}
// What each warp of the block stores to and loads from.
__global__ void touch(int64_t* targets, int64_t* stored, int64_t* loaded, int n) {
  for (int row = threadIdx.y, column = threadIdx.x; row < 32; row += 8) {
    targets[row * 32 + column] = target(row, column, n);
    stored[row * 32 + column] = word(row, column);
    loaded[row * 32 + column] = word(column, row);
  }
}
"""


# the counts
def sectors(elements: np.ndarray) -> int:
    """How many sectors of 32 bytes the worst warp asks memory for; four hold what 32 floats need."""
    return max(len(np.unique(warp // 8)) for warp in elements.reshape(-1, 32))


def passes(words: np.ndarray) -> int:
    """How often shared memory answers the worst warp: words that share one of the 32 banks wait for each other."""
    return max(int(np.bincount(np.unique(warp) % 32).max()) for warp in words.reshape(-1, 32))


# end
def rate(launch: Callable[..., object], *arguments: object, moved: int) -> str:
    """GB/s of a launch on a GPU: the median of ten, after one more."""
    if not on_gpu:
        return "on a GPU"
    milliseconds = []
    with tc.Stream(device) as stream:
        for _ in range(11):
            begin, end = tc.Event(device, timing=True), tc.Event(device, timing=True)
            begin.record(stream)
            launch(*arguments)
            end.record(stream)
            end.synchronize()
            milliseconds.append(tc.Event.elapsed_ms(begin, end))
    return f"{moved / statistics.median(milliseconds[1:]) * 1e-6:.0f}"


def copies(n: int) -> None:
    print(f"\n{'copy':<24}{'sectors a load':>16}{'GB/s':>32}")
    x = np.arange(n, dtype=np.float32)
    for name, apart in [("coalesced", 1), ("strided by 2", 2), ("strided by 32", 32)]:
        elements = tc.empty((256,), "int64", device=device)
        tc.kernel(COPY, "touch(int64* elements)", kApart=apart)[1, 256](elements)

        launch = tc.kernel(COPY, "copy(float* out, const float* x)", kApart=apart)[(n // apart // 256, apart), 256]
        given, out = tc.asarray(x, device=device), tc.empty((n,), "float32", device=device)
        launch(out, given)
        np.testing.assert_array_equal(out.numpy(), x.reshape(-1, apart).T.ravel())
        print(f"{name:<24}{sectors(elements.numpy()):>16}{rate(launch, out, given, moved=8 * n):>32}")


def transposes(n: int) -> None:
    print(f"\n{'transpose':<24}{'sectors a store':>16}{'passes a shared load':>22}{'GB/s':>10}")
    x = np.arange(n * n, dtype=np.float32).reshape(n, n)
    given, out = tc.asarray(x, device=device), tc.empty((n, n), "float32", device=device)
    for name, staged, pitch, swizzled in [
        ("direct", False, 32, False),
        ("staged, conflicts", True, 32, False),
        ("staged, padded", True, 33, False),
        ("staged, swizzled", True, 32, True),
    ]:
        form: dict[str, Any] = {"kStaged": staged, "kPitch": pitch, "kSwizzled": swizzled}
        targets, stored, loaded = (tc.empty((1024,), "int64", device=device) for _ in range(3))
        touch = tc.kernel(TRANSPOSE, "touch(int64* targets, int64* stored, int64* loaded, int n)", **form)
        touch[1, (32, 8)](targets, stored, loaded, n)
        assert passes(stored.numpy()) == 1  # a row goes into the tile without a conflict in each form

        kernel = tc.kernel(TRANSPOSE, "transpose(float* out, const float* x, int n)", **form)
        launch = kernel[(n // 32, n // 32), (32, 8)]
        launch(out, given, n)
        np.testing.assert_array_equal(out.numpy(), x.T)
        in_shared = passes(loaded.numpy()) if staged else "none"
        gbs = rate(launch, out, given, n, moved=8 * n * n)
        print(f"{name:<24}{sectors(targets.numpy()):>16}{in_shared:>22}{gbs:>10}")


def occupancies() -> None:
    print(f"\n{'shared bytes of a block':<24}{'blocks at a time':>16}{'occupancy':>32}")
    signature = "transpose(float* out, const float* x, int n)"
    kernel = tc.kernel(TRANSPOSE, signature, kStaged=True, kPitch=33, kSwizzled=False)
    for more in (0, 40_000, 100_000, 200_000):  # shared memory that the launch asks for, beside the tile
        found = kernel.explain((32, 8), more, arch="sm_90a")
        if found.problem:
            print(found.problem)
            return
        print(f"{found.shared_bytes:<24,}{found.blocks_per_sm:>16}{found.occupancy:>32.1%}")


print("on", device)
copies(1 << 27 if on_gpu else 1 << 13)
transposes(8192 if on_gpu else 64)
occupancies()
