# SPDX-License-Identifier: Apache-2.0
"""6. Tensor cores: a warp computes 16 x 8 sums by one instruction, and stores half of them to a wrong row."""

import numpy as np
from course import run, say, wrong

import tensorcraft as tc

# the exercise
TEXT = """
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/ptx/mma.cuh"

TC_DEVICE uint32_t pair(const bf16* at) { return *reinterpret_cast<const uint32_t*>(at); }

// D = A B for A 16 x 16 and B 16 x 8, whose columns lie one after the other. Which lane holds what
// stands at the top of device/ptx/mma.cuh.
__global__ void __launch_bounds__(32) product(float* d, const bf16* a, const bf16* b) {
  const int g = threadIdx.x / 4, t = threadIdx.x % 4 * 2;
  const bf16* rows = a + g * 16 + t;
  const uint32_t of_a[4] = {pair(rows), pair(rows + 8 * 16), pair(rows + 8), pair(rows + 8 * 16 + 8)};
  const uint32_t of_b[2] = {pair(b + g * 16 + t), pair(b + g * 16 + t + 8)};
  const float zero[4] = {};
  float sums[4];
  ptx::mma_m16n8k16_f32_bf16_bf16_f32(sums, of_a, of_b, zero);
  const int second = g + 1;  // the row of sums[2] and sums[3]
  d[g * 8 + t] = sums[0];
  d[g * 8 + t + 1] = sums[1];
  d[second * 8 + t] = sums[2];
  d[second * 8 + t + 1] = sums[3];
}
"""
# end
random = np.random.default_rng(1)
a, b = random.integers(-3, 4, (16, 16)).astype(np.float32), random.integers(-3, 4, (8, 16)).astype(np.float32)
d = tc.asarray(np.zeros((16, 8), np.float32), device="simt")
of_a, of_b = (tc.asarray(x, device="simt").astype(tc.bfloat16) for x in (a, b))
fault = run(TEXT, "product(float* d, const bfloat16* a, const bfloat16* b)", 1, 32, d, of_a, of_b)
found = wrong(d.numpy(), a @ b.T)
say(fault or f"{found} of 128 are wrong", not fault and found == 0)
