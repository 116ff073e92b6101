// SPDX-License-Identifier: Apache-2.0
// A user's kernel is compiled for the library it runs in: the race library sees its accesses.
#include "tensorcraft/jit/user_kernel.hpp"

#include "tensorcraft/core/config.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/jit/host_compiler.hpp"
#include "tensorcraft/simt/launch.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tensorcraft::jit {
namespace {

std::string reverse_text(bool with_barrier) {
  return std::string(R"(#include "tensorcraft/device/shared.cuh"
struct Tile { float values[64]; };
__global__ void reverse(float* y, const float* x) {
  auto& tile = static_shared<Tile>();
  tile.values[threadIdx.x] = x[threadIdx.x];
  )") + (with_barrier ? "__syncthreads();" : "") +
         R"(
  y[threadIdx.x] = tile.values[63 - threadIdx.x];
}
)";
}

TEST(UserKernel, IsSeenByTheRaceLibrary) {
  if (!find_host_compiler(config().search_path)) GTEST_SKIP() << "no C++ compiler on PATH";
  std::vector<float> x(64), y(64);
  for (int i = 0; i < 64; ++i) x[size_t(i)] = float(i);
  const auto run = [&](bool with_barrier) {
    const UserKernel reverse(reverse_text(with_barrier), "reverse(float* y, const float* x)");
    const auto view = [](std::vector<float>& v) {
      return TensorView(v.data(), DType::float32, {64}, Device::simt());
    };
    reverse({.grid = {1}, .block = {64}}, view(y), view(x));
  };
  run(true);
  EXPECT_EQ(y[0], 63);
  EXPECT_EQ(y[63], 0);
  if (!simt::is_race_library()) return;
  try {
    run(false);
    ADD_FAILURE() << "the race was not seen";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::internal);
    const std::string text = error.what();
    EXPECT_NE(text.find("reverse.cu:7, while thread"), text.npos) << text;
    EXPECT_NE(text.find("reverse.cu:5; nothing orders the two"), text.npos) << text;
  }
}

}  // namespace
}  // namespace tensorcraft::jit
