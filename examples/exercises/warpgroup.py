# SPDX-License-Identifier: Apache-2.0
"""7. wgmma: four warps multiply by an instruction that runs beside them, and two lines that order it are missing."""

import numpy as np
from course import run, say, wrong

import tensorcraft as tc

# the exercise
TEXT = """
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/ptx/cvta.cuh"
#include "tensorcraft/device/ptx/fence.cuh"
#include "tensorcraft/device/ptx/wgmma.cuh"
#include "tensorcraft/device/shared.cuh"

constexpr Wgmma kOp{.n = 8};  // D 64 x 8 = A 64 x 16 times B 16 x 8
struct alignas(1024) Operands {
  bf16 a[64 * 16], b[8 * 16];
};
// Where element k of a row stands: pieces of 8 rows, in which 16-byte units along k follow.
TC_DEVICE int place(int row, int k) { return row / 8 * 128 + k / 8 * 64 + row % 8 * 8 + k % 8; }

__global__ void __launch_bounds__(128) product(float* d, const bf16* a, const bf16* b) {
  auto& s = static_shared<Operands>();
  for (int i = threadIdx.x; i < 64 * 16; i += 128) s.a[place(i / 16, i % 16)] = a[i];
  s.b[place(threadIdx.x / 16, threadIdx.x % 16)] = b[threadIdx.x];
  // 1: wgmma reads by another way than threads write, a proxy: ptx::fence_proxy_async()
  __syncthreads();
  const auto operand = [](const bf16* tile) {
    return wgmma_descriptor({.address = ptx::cvta_to_shared(tile), .leading = 128, .stride = 256});
  };
  float sums[4] = {};
  // 2: what threads did to its registers comes first: ptx::wgmma_fence()
  ptx::wgmma_mma_async<kOp>(sums, operand(s.a), operand(s.b), false);
  ptx::wgmma_commit_group();
  ptx::wgmma_wait_group<0>();
  ptx::wgmma_landed(sums);
  const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
  for (int i = 0; i < 4; ++i) d[(row + i / 2 * 8) * 8 + column + i % 2] = sums[i];
}
"""
# end
random = np.random.default_rng(1)
a, b = random.integers(-3, 4, (64, 16)).astype(np.float32), random.integers(-3, 4, (8, 16)).astype(np.float32)
d = tc.asarray(np.zeros((64, 8), np.float32), device="simt")
of_a, of_b = (tc.asarray(x, device="simt").astype(tc.bfloat16) for x in (a, b))
fault = run(TEXT, "product(float* d, const bfloat16* a, const bfloat16* b)", 1, 128, d, of_a, of_b)
found = wrong(d.numpy(), a @ b.T)
say(fault or f"{found} of 512 are wrong", not fault and found == 0)
