// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/diagnose/fragments.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/driver.hpp"
#include "tensorcraft/cuda/nvrtc.hpp"
#include "tensorcraft/jit/source.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tensorcraft::diagnose {
namespace {

TEST(FragmentsOnGpu, AreWhatTheMapsSay) {
  if (cuda_device_count() == 0) GTEST_SKIP() << cuda::driver_problem();
  const int capability = device_info(Device::cuda(0)).compute_capability;
  const auto checks = verify_fragments(Device::cuda(0));
  EXPECT_EQ(checks.size(), capability == 90 ? 10u : capability >= 89 ? 9u : 8u);
  for (const FragmentCheck& check : checks) {
    EXPECT_GT(check.registers, 0) << check.instruction;
    EXPECT_EQ(check.wrong, 0) << check.instruction << ": " << check.first;
  }
}

// Needs no GPU.
TEST(FragmentsOnGpu, HaveKernelsThatCompile) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  std::string source =
      "#include \"tensorcraft/device/fragments.cuh\"\n"
      "using namespace tensorcraft::kernel::fragments;\n"
      "extern \"C\" __global__ void all(const __grid_constant__ Params p) {\n";
  for (const char* name : {"mma_f16", "mma_bf16", "mma_tf32", "mma_e4m3", "mma_s8", "ldmatrix",
                           "ldmatrix_trans", "wmma_tf32", "wmma_f16", "wgmma_bf16"})
    source += join(name, "(p);\n");
  source += "}\n";
  const auto closure = jit::include_closure("tensorcraft/device/fragments.cuh");
  std::vector<std::pair<const char*, const char*>> headers;
  for (const auto& header : *closure)
    headers.emplace_back(header->name.c_str(), header->text.c_str());
  const std::string options[] = {"--gpu-architecture=sm_90a", "--std=c++20"};
  const auto result = cuda::nvrtc_compile(source, "fragments.cu", headers, options);
  EXPECT_TRUE(result.ok) << result.log;
}

}  // namespace
}  // namespace tensorcraft::diagnose
