# SPDX-License-Identifier: Apache-2.0
"""A matrix product by tiles in shared memory, for any dtype and tile: template arguments of a kernel."""

import numpy as np

import tensorcraft as tc

device = "cuda" if "cuda:0" in tc.devices() else "simt"

# the kernel
TEXT = """
#include "tensorcraft/device/shared.cuh"

template <class T, int tile>
struct Tiles {  // one for the block: what CUDA calls __shared__ on every device
  T a[tile][tile], b[tile][tile];
};

// d = a b, row-major; a is m x k and b is k x n. Each element that is loaded is used `tile` times.
template <class T, int tile>
__global__ void matmul(T* d, const T* a, const T* b, int m, int n, int k) {
  auto& s = static_shared<Tiles<T, tile>>();
  const int column = threadIdx.x, row = threadIdx.y;
  const int j = blockIdx.x * tile + column, i = blockIdx.y * tile + row;
  float sum = 0;
  for (int first = 0; first < k; first += tile) {
    const bool has_a = i < m && first + column < k, has_b = first + row < k && j < n;
    s.a[row][column] = has_a ? a[int64_t(i) * k + first + column] : T(0.f);
    s.b[row][column] = has_b ? b[int64_t(first + row) * n + j] : T(0.f);
    __syncthreads();  // the tiles are complete
    for (int at = 0; at < tile; ++at) sum += float(s.a[row][at]) * float(s.b[at][column]);
    __syncthreads();  // all have read them
  }
  if (i < m && j < n) d[int64_t(i) * n + j] = T(sum);
}
"""


def matmul(a: tc.Tensor, b: tc.Tensor, tile: int) -> tc.Tensor:
    signature = "matmul<T, kTile>(T* d, const T* a, const T* b, int m, int n, int k)"
    kernel = tc.kernel(TEXT, signature, T=a.dtype, kTile=tile)
    (m, k), n = a.shape, b.shape[1]
    d = tc.empty((m, n), a.dtype, device=a.device)
    grid = ((n + tile - 1) // tile, (m + tile - 1) // tile)
    kernel[grid, (tile, tile)](d, a, b, m, n, k)
    return d


# end
for dtype, tile in ((tc.float32, 8), (tc.float16, 8), (tc.bfloat16, 16)):
    random = np.random.default_rng(1)
    a, b = (tc.asarray(random.integers(-3, 4, shape).astype(np.float32), device=device) for shape in ((33, 20), (20, 17)))
    d = matmul(a.astype(dtype), b.astype(dtype), tile)
    np.testing.assert_array_equal(d.astype(tc.float32).numpy(), a.numpy() @ b.numpy())  # small integers: exact
    print(dtype.name, "in tiles of", tile, "is exact")
