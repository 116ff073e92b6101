// SPDX-License-Identifier: Apache-2.0
// A kernel of one's own from C++: y += a x on the emulator; with tensors of a GPU it runs there.
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/jit/user_kernel.hpp"

#include <iostream>
#include <vector>

namespace tc = tensorcraft;

constexpr const char* kText = R"(
__global__ void axpy(float* y, const float* x, float a, int64_t n) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
)";

int main() {
  const tc::jit::UserKernel axpy(kText, "axpy(float* y, const float* x, float a, int64 n)");
  std::vector<float> x(1000, 3), y(1000, 1);
  const int64_t n = int64_t(x.size());
  const auto view = [&](std::vector<float>& v) {
    return tc::TensorView(v.data(), tc::DType::float32, {n}, tc::Device::simt());
  };
  axpy({.grid = {4}, .block = {256}}, view(y), view(x), 2, n);
  std::cout << "y[0] = " << y[0] << ", y[999] = " << y[999] << "\n";
  std::cout << to_string(axpy.report(tc::device_info_of_arch("sm_90a")));
  // end
}
