// SPDX-License-Identifier: Apache-2.0
// A user's kernel is compiled for the library it runs in: the race library sees its accesses.
#include "tensorcraft/jit/user_kernel.hpp"

#include "tensorcraft/core/config.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/jit/host_compiler.hpp"
#include "tensorcraft/simt/instrumentation.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tensorcraft::jit {
namespace {

// Without the second barrier a thread writes the next tile while another reads the one before.
std::string reverse_text(bool with_barrier) {
  return std::string(R"(#include "tensorcraft/device/shared.cuh"
struct Tile { float values[64]; };
__global__ void reverse(float* y, const float* x) {
  auto& tile = static_shared<Tile>();
  for (int begin = 0; begin < 128; begin += 64) {
    tile.values[threadIdx.x] = x[begin + threadIdx.x];
    __syncthreads();
    y[begin + threadIdx.x] = tile.values[63 - threadIdx.x];
    )") + (with_barrier ? "__syncthreads();" : "") +
         "\n  }\n}\n";
}

TEST(UserKernel, IsSeenByTheRaceLibrary) {
  if (!find_host_compiler(config().search_path)) GTEST_SKIP() << "no C++ compiler on PATH";
  std::vector<float> x(128), y(128);
  for (int i = 0; i < 128; ++i) x[size_t(i)] = float(i);
  const auto run = [&](bool with_barrier) {
    const UserKernel reverse(reverse_text(with_barrier), "reverse(float* y, const float* x)");
    const auto view = [](std::vector<float>& v) {
      return TensorView(v.data(), DType::float32, {128}, Device::simt());
    };
    reverse({.grid = {1}, .block = {64}}, view(y), view(x));
  };
  run(true);
  EXPECT_EQ(y[0], 63);
  EXPECT_EQ(y[127], 64);
  if (!simt::is_race_library()) return;
  try {
    run(false);
    ADD_FAILURE() << "the race was not seen";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kernel_fault);
    const std::string text = error.what();
    EXPECT_NE(text.find("reverse.cu:8, while thread"), text.npos) << text;
    EXPECT_NE(text.find("reverse.cu:6; nothing orders the two"), text.npos) << text;
  }
}

}  // namespace
}  // namespace tensorcraft::jit
