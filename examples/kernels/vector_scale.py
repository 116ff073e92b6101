# SPDX-License-Identifier: Apache-2.0
"""Your first kernel: out = a x. Runs on a GPU if there is one, else on the emulator."""

import numpy as np

import tensorcraft as tc

device = "cuda" if "cuda:0" in tc.devices() else "simt"

# the kernel
TEXT = """
__global__ void scale(float* out, const float* x, float a, int64_t n) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a * x[i];
}
"""
scale = tc.kernel(TEXT, "scale(float* out, const float* x, float a, int64 n)")

# the call
n = 1000
x = tc.asarray(np.arange(n, dtype=np.float32), device=device)
out = tc.empty_like(x)
scale[(n + 255) // 256, 256](out, x, 0.5, n)
# end
np.testing.assert_array_equal(out.numpy(), 0.5 * np.arange(n, dtype=np.float32))

# An array of another dtype is not taken for one of float32, and a grid of 0 is no launch.
try:
    scale[4, 256](out, x.astype(tc.int32), 0.5, n)
except TypeError as error:
    print(error)
try:
    scale[0, 256](out, x, 0.5, n)
except ValueError as error:
    print(error)
print(scale.explain(arch="sm_90a"))
