// SPDX-License-Identifier: Apache-2.0
// out = 2 * x, in full CUDA C++: nvcc compiles it, so it may include what the toolkit has. The host
// side is in the same file: it checks what it was given and launches on the current stream.
#include "tensorcraft/core/tensor_matcher.hpp"
#include "tensorcraft/cuda/launch_kernel.hpp"

namespace {

template <int kThreads>
__global__ void __launch_bounds__(kThreads) twice(float* out, const float* x, int64_t n) {
  const int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n) out[i] = 2 * x[i];
}

template <int kThreads>
struct MyKernel {
  static void run(const tensorcraft::TensorView& out, const tensorcraft::TensorView& x) {
    namespace tc = tensorcraft;
    tc::SymbolicSize n("n");
    tc::SymbolicDevice device;
    tc::TensorMatcher({n})
        .with_dtype<float>()
        .with_device<tc::dlpack::kDLCUDA>(device)
        .verify(out, "my_kernel", "out")
        .verify(x, "my_kernel", "x");
    if (n.unwrap() == 0) return;
    const int64_t blocks = (n.unwrap() + kThreads - 1) / kThreads;
    tc::LaunchKernel(blocks, kThreads, device.unwrap())(twice<kThreads>, out.data_as<float>(),
                                                        x.data_as<const float>(), n.unwrap());
  }
};

}  // namespace
