// SPDX-License-Identifier: Apache-2.0
// Each primitive of device/reduce.cuh on a GPU; without one its text is still compiled.
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/driver.hpp"
#include "tensorcraft/cuda/launch_kernel.hpp"
#include "tensorcraft/cuda/memory.hpp"
#include "tensorcraft/cuda/nvrtc.hpp"
#include "tensorcraft/jit/source.hpp"

#include <gtest/gtest.h>

#include <array>

namespace tensorcraft {
namespace {

constexpr int kThreads = 96;

struct Params {
  float* out;
};

struct Primitive {
  const char *name, *expression;  // of thread i
  float (*expected)(int i);
};
// GoogleTest prints a parameter by its bytes otherwise.
void PrintTo(const Primitive& primitive, std::ostream* out) { *out << primitive.expression; }

std::string compile(const std::string& expression, const std::string& arch) {
  const std::string source =
      "#include \"tensorcraft/device/reduce.cuh\"\n"
      "using namespace tensorcraft;\n"
      "struct Params { float* out; };\n"
      "struct Shared { BlockReduce<float> reduce; };\n"
      "extern \"C\" __global__ void primitive(const __grid_constant__ Params p) {\n"
      "  BlockReduce<float>& shared = static_shared<Shared>().reduce;\n"
      "  (void)shared;\n"
      "  const int i = thread_rank();\n"
      "  p.out[i] = float(" +
      expression + ");\n}\n";
  const auto closure = jit::include_closure("tensorcraft/device/reduce.cuh");
  std::vector<std::pair<const char*, const char*>> headers;
  for (const auto& header : *closure)
    headers.emplace_back(header->name.c_str(), header->text.c_str());
  const std::string options[] = {"--gpu-architecture=" + arch, "--std=c++20"};
  const cuda::NvrtcResult result = cuda::nvrtc_compile(source, "primitive.cu", headers, options);
  EXPECT_TRUE(result.ok) << result.log;
  return result.image;
}

class WarpOnGpu : public testing::TestWithParam<Primitive> {};

TEST_P(WarpOnGpu, GivesEachThreadItsValue) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  const bool has_gpu = cuda_device_count() > 0;
  const std::string image =
      compile(GetParam().expression, has_gpu ? device_info(Device::cuda(0)).arch() : "sm_90a");
  if (!has_gpu) GTEST_SKIP() << cuda::driver_problem();
  const auto kernel = LoadedKernel::load(std::as_bytes(std::span(image)), "primitive", 0);
  const StreamRef stream;
  std::array<float, kThreads> got{};
  void* out = cuda::allocate(sizeof got, stream);
  LaunchKernel({1}, {kThreads}, stream)(*kernel, Params{static_cast<float*>(out)});
  cuda::copy_async(got.data(), out, sizeof got, stream);
  stream.synchronize();
  cuda::deallocate(out, stream);
  for (int i = 0; i < kThreads; ++i)
    EXPECT_EQ(got[size_t(i)], GetParam().expected(i)) << "thread " << i;
}

// The sum of the 32 numbers of a warp from its first.
float warp_total(int i) { return float(32 * (i / 32 * 32) + 496); }

INSTANTIATE_TEST_SUITE_P(
    Primitives, WarpOnGpu,
    testing::Values(
        Primitive{"Sum", "warp_sum(float(i))", warp_total},
        Primitive{"Max", "warp_max(float(i))", [](int i) { return float(i / 32 * 32 + 31); }},
        Primitive{"Group", "warp_reduce<8>(float(i), Sum())",
                  [](int i) { return float(8 * (i / 8 * 8) + 28); }},
        // Every lane calls, and lane 0 has the result.
        Primitive{"Down", "warp_broadcast(warp_reduce_down(float(i), Sum()))", warp_total},
        Primitive{"Broadcast", "warp_broadcast(float(i), 21)",
                  [](int i) { return float(i / 32 * 32 + 21); }},
        Primitive{"All", "warp_all(i != 40)", [](int i) { return float(i / 32 != 1); }},
        Primitive{"Any", "warp_any(i == 40)", [](int i) { return float(i / 32 == 1); }},
        Primitive{"BlockSum", "block_sum(shared, float(i))", [](int) { return 4560.0f; }},
        Primitive{"BlockMax", "block_max(shared, float(i))", [](int) { return 95.0f; }}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tensorcraft
