# SPDX-License-Identifier: Apache-2.0
"""softmax(scale x + bias) of each row in one launch, with the library's own reductions of a block."""

import numpy as np

import tensorcraft as tc

device = "cuda" if "cuda:0" in tc.devices() else "simt"

# the kernel
TEXT = """
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/reduce.cuh"

// One block, one row. kThreads and kMaskBelow are constants of the call of tc.kernel.
template <class T>
__global__ void __launch_bounds__(kThreads)
    softmax(T* out, const T* x, const float* bias, float scale, int cols) {
  auto& scratch = static_shared<BlockReduce<float>>();
  const T* row = x + int64_t(blockIdx.x) * cols;
  const auto logit = [&](int i) {
    const float v = fmaf(scale, float(row[i]), bias[i]);
    return v < kMaskBelow ? -kInfinity : v;
  };
  float top = kLowest, sum = 0;
  for (int i = threadIdx.x; i < cols; i += kThreads) top = fmax_nan(top, logit(i));
  top = block_max(scratch, top);
  for (int i = threadIdx.x; i < cols; i += kThreads) sum += expf(logit(i) - top);
  sum = block_sum(scratch, sum);
  for (int i = threadIdx.x; i < cols; i += kThreads)
    out[int64_t(blockIdx.x) * cols + i] = T(expf(logit(i) - top) / sum);
}
"""
softmax = tc.kernel(
    TEXT,
    "softmax(T* out, const T* x, const float* bias, float scale, int cols)",
    name="fused_softmax.cu",  # what a compiler calls the text
    T=tc.bfloat16,
    kThreads=128,
    kMaskBelow=-1000.0,
)
# end

random = np.random.default_rng(2)
x = tc.asarray(random.standard_normal((5, 300)).astype(np.float32), device=device).astype(tc.bfloat16)
bias = random.standard_normal(300).astype(np.float32)
bias[::7] = -1e9  # masked
out = tc.empty_like(x)
softmax[5, 128](out, x, tc.asarray(bias, device=device), 0.5, 300)

logits = 0.5 * x.astype(tc.float32).numpy().astype(np.float64) + bias
weights = np.where(logits < -1000, 0, np.exp(logits - logits.max(1, keepdims=True)))
np.testing.assert_allclose(out.astype(tc.float32).numpy(), weights / weights.sum(1, keepdims=True), rtol=1e-2, atol=1e-6)
print("rows of", softmax.name, "sum to one:", bool(np.allclose(out.astype(tc.float32).numpy().sum(1), 1, atol=1e-2)))
