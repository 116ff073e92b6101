# SPDX-License-Identifier: Apache-2.0
"""1. Neighbours: 32 threads of a warp store 32 rows of D. Let them store 32 columns of one row."""

import numpy as np
from course import run, say, sectors, wrong

# the exercise
TEXT = """
// Change these two lines: the threads of a warp differ in threadIdx.x.
TC_DEVICE int row() { return blockIdx.x * 32 + threadIdx.x; }
TC_DEVICE int column() { return blockIdx.y * 8 + threadIdx.y; }

// D = A B, n x n, and the element of D that each thread stores, thread after thread.
__global__ void product(float* d, const float* a, const float* b, int64_t* stored, int n) {
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[row() * n + k] * b[k * n + column()];
  d[row() * n + column()] = sum;
  const int block = blockIdx.y * gridDim.x + blockIdx.x;
  stored[block * 256 + threadIdx.y * 32 + threadIdx.x] = row() * n + column();
}
"""
# end
n = 64
random = np.random.default_rng(1)
a, b = (random.integers(-3, 4, (n, n)).astype(np.float32) for _ in range(2))
d, stored = np.empty_like(a), np.empty(n * n, np.int64)
run(
    TEXT, "product(float* d, const float* a, const float* b, int64* stored, int n)", (2, 8), (32, 8), d, a, b, stored, n
)
found = wrong(d, a @ b)
say(f"{found} of {d.size} are wrong, a warp stores to {sectors(stored)} sectors", found == 0 and sectors(stored) == 4)
