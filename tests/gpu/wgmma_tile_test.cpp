// SPDX-License-Identifier: Apache-2.0
// The text that runs on the emulator in tests/simt/wgmma_tile_test.cpp, on a Hopper GPU.
#include "tests/support/wgmma_tile.hpp"
#include "tests/support/kernel_text.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/driver.hpp"
#include "tensorcraft/cuda/launch_kernel.hpp"
#include "tensorcraft/cuda/memory.hpp"
#include "tensorcraft/cuda/tensor_map.hpp"
#include "tensorcraft/simt/launch.hpp"
#include "tensorcraft/simt/tensor_map.hpp"

#include <gtest/gtest.h>

#include <iostream>

namespace tensorcraft {
namespace {

namespace tile = kernel::wgmma_tile;

std::vector<float> run_on_simt(test::TileProblem& problem) {
  std::vector<float> c(tile::kM * tile::kN, NAN);
  const tile::Params params{simt::encode_tiled(problem.tiled(problem.a.data())),
                            simt::encode_tiled(problem.tiled(problem.b.data())), c.data()};
  simt::launch(
      {.name = "wgmma_tile", .block = {tile::kThreads}, .shared_bytes = sizeof(tile::Shared)},
      [](const void* p) { tile::run(*static_cast<const tile::Params*>(p)); }, &params);
  return c;
}

std::vector<float> run_on_gpu(const test::TileProblem& problem, const std::string& image) {
  const auto kernel = LoadedKernel::load(std::as_bytes(std::span(image)), "tc_entry", 0);
  const StreamRef stream;
  const size_t operand = problem.a.size() * sizeof(bf16);
  std::vector<float> c(tile::kM * tile::kN, NAN);
  const size_t result = c.size() * sizeof(float);
  void *a = cuda::allocate(operand, stream), *b = cuda::allocate(operand, stream);
  void* out = cuda::allocate(result, stream);
  cuda::copy_async(a, problem.a.data(), operand, stream);
  cuda::copy_async(b, problem.b.data(), operand, stream);
  const tile::Params params{cuda::encode_tiled(problem.tiled(a)),
                            cuda::encode_tiled(problem.tiled(b)), static_cast<float*>(out)};
  LaunchKernel({1}, {tile::kThreads}, stream, sizeof(tile::Shared))(*kernel, params);
  cuda::copy_async(c.data(), out, result, stream);
  stream.synchronize();
  for (void* memory : {a, b, out}) cuda::deallocate(memory, stream);
  return c;
}

TEST(WgmmaTileOnGpu, AgreesWithTheSimtDevice) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  if (cuda_device_count() == 0) GTEST_SKIP() << cuda::driver_problem();
  if (device_info(Device::cuda(0)).arch() != "sm_90a") GTEST_SKIP() << "wgmma needs sm_90a";
  const auto compiled = test::compile_wgmma_tile();
  ASSERT_TRUE(compiled.ok) << compiled.log;
  test::TileProblem problem;
  const auto gpu = run_on_gpu(problem, compiled.image), simt = run_on_simt(problem);
  const double gpu_error = problem.worst_error(gpu), simt_error = problem.worst_error(simt);
  std::cout << "error in units of 2^-18 of the terms' magnitudes: GPU " << gpu_error
            << ", emulator " << simt_error << '\n';
  EXPECT_LT(gpu_error, 16);
  EXPECT_LT(simt_error, 1);
}

}  // namespace
}  // namespace tensorcraft
