// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/nvrtc.hpp"
#include "tests/jit/test_rung.hpp"
#include "tests/support/kernel_baseline.hpp"

#include <gtest/gtest.h>

// Rungs with the defects that the compile gate looks for, through the same compiler and judge.
namespace tensorcraft::test {
namespace {

// Sums `values` numbers that one thread holds all at a time.
const jit::Rung& planted_rung(int values) {
  static const jit::Rung rung{"test", "planted", "tensorcraft/test/planted.cuh",
                              "tensorcraft::kernel::test::planted"};
  test::add_scale_header();  // brings Params
  jit::add_source("tensorcraft/test/planted.cuh", R"(#pragma once
#include "tensorcraft/test/params.h"
namespace tensorcraft::kernel::test {
TC_DEVICE void planted(const Params& p) {
  constexpr int kValues = )" + std::to_string(values) +
                                                      R"(;
  const volatile float* in = static_cast<const volatile float*>(p.in);
  float value[kValues];
#pragma unroll
  for (int i = 0; i < kValues; ++i) value[i] = in[threadIdx.x + i * p.count];
#pragma unroll
  for (int i = 1; i < kValues; ++i) value[0] = value[0] * value[kValues - i] + value[i];
  static_cast<float*>(p.out)[threadIdx.x] = value[0];
}
}
)");
  return rung;
}

struct Bounds {
  int threads = 128, min_blocks = 1;
};

MeasuredKernels measure_planted(int values, const Bounds& bounds = {}) {
  const DeviceInfo hopper = device_info_of_arch("sm_90a");
  op::Step step;
  step.kernel = {
      .rung = &planted_rung(values), .threads = bounds.threads, .min_blocks = bounds.min_blocks};
  step.launch = {.grid = {1}, .block = {uint32_t(bounds.threads)}};
  const op::KernelReport report = op::report_kernel(step, hopper);
  EXPECT_EQ(report.problem, "");
  return {{kernel_name(step.kernel), measured_kernel(report, hopper, false)}};
}

KernelBaseline accepted(const MeasuredKernels& measured) {
  KernelBaseline baseline{"13.0", {}};
  for (const auto& [name, kernel] : measured) baseline.kernels["sm_90a"][name] = kernel.use;
  return baseline;
}

std::vector<std::string> failures(const MeasuredKernels& measured, const KernelBaseline& baseline) {
  return judge(measured, "sm_90a", "13.0", baseline, "run this").failures;
}

TEST(PlantedRung, PassesWhereItHasNoDefect) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  const auto measured = measure_planted(16);
  EXPECT_TRUE(failures(measured, accepted(measured)).empty());
}

TEST(PlantedRung, ThatSpillsFailsEvenWhereTheBaselineHasIt) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  const auto measured = measure_planted(128, {.threads = 1024});
  EXPECT_GT(measured.begin()->second.use.spill_bytes, 0u);
  const auto found = failures(measured, accepted(measured));
  ASSERT_FALSE(found.empty());
  EXPECT_NE(found[0].find("bytes of spills"), std::string::npos) << found[0];
}

TEST(PlantedRung, ThatGrewFails) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  const auto before = measure_planted(16), after = measure_planted(64);
  std::string text;
  for (const std::string& failure : failures(after, accepted(before))) text += failure + '\n';
  EXPECT_NE(text.find(" registers before, "), std::string::npos) << text;
  EXPECT_NE(text.find(" bytes of code before, "), std::string::npos) << text;
  EXPECT_TRUE(failures(before, accepted(after)).empty()) << "less is no failure";
}

TEST(PlantedRung, WhoseLaunchBoundsCannotBeKeptFails) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  const auto measured = measure_planted(16, {.threads = 1024, .min_blocks = 3});
  const auto found = failures(measured, accepted(measured));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(
      found[0].find("promise 3 blocks of 1024 threads (3 before), but a multiprocessor holds 2"),
      std::string::npos)
      << found[0];
}

}  // namespace
}  // namespace tensorcraft::test
