# SPDX-License-Identifier: Apache-2.0
"""3. Reuse: the tiles are in shared memory, and the sum still reads global memory."""

import numpy as np
from course import run, say, wrong

# the exercise
TEXT = """
#include "tensorcraft/device/shared.cuh"

struct Tiles {
  float a[8][8], b[8][8];
};
// A load from global memory, counted.
TC_DEVICE float load(const float* from, int& loads) {
  ++loads;
  return *from;
}
// D = A B, n x n, by blocks of 8 x 8 threads.
__global__ void product(float* d, const float* a, const float* b, int* counts, int n) {
  auto& s = static_shared<Tiles>();
  const int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * 8 + x, row = blockIdx.y * 8 + y;
  int loads = 0;
  float sum = 0;
  for (int first = 0; first < n; first += 8) {
    s.a[y][x] = load(a + row * n + first + x, loads);
    s.b[y][x] = load(b + (first + y) * n + column, loads);
    __syncthreads();  // the tiles are complete
    for (int k = 0; k < 8; ++k)  // take both factors from the tiles
      sum += load(a + row * n + first + k, loads) * load(b + (first + k) * n + column, loads);
    __syncthreads();  // all have read them
  }
  d[row * n + column] = sum;
  counts[row * n + column] = loads;
}
"""
# end
n = 32
random = np.random.default_rng(1)
a, b = (random.integers(-3, 4, (n, n)).astype(np.float32) for _ in range(2))
d, counts = np.empty_like(a), np.empty((n, n), np.int32)
run(TEXT, "product(float* d, const float* a, const float* b, int32* counts, int n)", (4, 4), (8, 8), d, a, b, counts, n)
found, loads = wrong(d, a @ b), int(counts.sum())
say(f"{found} of {d.size} are wrong, {loads} loads from memory, where {2 * n**3} need no tile",
    found == 0 and loads == 2 * n**3 // 8)  # fmt: skip
