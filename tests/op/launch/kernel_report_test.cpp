// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/launch/kernel_report.hpp"

#include "tensorcraft/cuda/nvrtc.hpp"
#include "tensorcraft/jit/kernel.hpp"
#include "tensorcraft/diagnose/request.hpp"
#include "tensorcraft/ops/all.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace tensorcraft::op {
namespace {

Explanation explain(std::string_view line, const DeviceInfo& device) {
  const diagnose::RequestText text = diagnose::parse_request(line);
  Explanation e = diagnose::Request(find_operator(text.op), text, device).explain();
  add_kernel_reports(e, device);
  return e;
}

TEST(KernelReport, SaysWhatTheCompilerMadeOfTheChosenKernel) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  const DeviceInfo hopper = device_info_of_arch("sm_90a");
  const Explanation e = explain("l2_normalize 64x256", hopper);
  ASSERT_EQ(e.kernels.size(), 1u);
  const KernelReport& k = e.kernels[0];
  EXPECT_EQ(k.problem, "");
  EXPECT_EQ(k.arch, "sm_90a");
  EXPECT_TRUE(k.signature.starts_with("l2_normalize_in_registers_float32")) << k.signature;
  EXPECT_GT(k.registers, 8);
  EXPECT_LE(k.registers, 255);
#if !defined(TENSORCRAFT_JIT_DEBUG)  // which keeps every variable in memory
  EXPECT_EQ(k.spill_bytes, 0u);
  EXPECT_EQ(k.stack_bytes, 0u);
#endif
  EXPECT_EQ(k.min_blocks, 1);
  const auto& row =
      *std::ranges::find(e.variants, e.variant, [](const Considered& c) { return c.variant.name; });
  const std::string image = jit::compile(row.plan->first().kernel, "sm_90a").image;
  EXPECT_GT(k.code_bytes, 500u);
  EXPECT_LT(k.code_bytes, image.size());
  EXPECT_EQ(k.code_bytes % 128, 0u);  // ptxas fills a function up to that
  const Occupancy o = occupancy(hopper, {int(k.launch.block.count()), k.registers, k.shared_bytes});
  EXPECT_EQ(k.occupancy.blocks_per_sm, o.blocks_per_sm);
  EXPECT_GT(k.occupancy.fraction, 0);
  const std::string text = to_string(e);
  EXPECT_NE(text.find("kernel for sm_90a: grid "), std::string::npos) << text;
  EXPECT_NE(text.find(" registers a thread, "), std::string::npos) << text;
  EXPECT_NE(text.find("  occupancy "), std::string::npos) << text;
}

TEST(KernelReport, CountsDynamicSharedMemoryToo) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  const DeviceInfo hopper = device_info_of_arch("sm_90a");
  const diagnose::RequestText text = diagnose::parse_request("l2_normalize 64x256");
  Explanation e = diagnose::Request(find_operator(text.op), text, hopper).explain();
  Plan plan = *e.variants[0].plan;
  const size_t before = report_kernel(plan.first(), hopper).shared_bytes;
  plan.first().launch.shared_bytes += 150 << 10;
  const KernelReport report = report_kernel(plan.first(), hopper);
  EXPECT_EQ(report.shared_bytes, before + (150 << 10));
  EXPECT_EQ(report.occupancy.limit, "shared memory");
  EXPECT_EQ(report.occupancy.blocks_per_sm, 1);
}

TEST(KernelReport, WhatCannotBeCompiledIsAProblemAndNoError) {
  const DeviceInfo nowhere{.device = Device::cuda(0), .name = "none", .compute_capability = 10};
  const diagnose::RequestText text = diagnose::parse_request("l2_normalize 64x256");
  const Explanation e =
      diagnose::Request(find_operator(text.op), text, device_info_of_arch("sm_90a")).explain();
  const KernelReport report = report_kernel(e.variants[0].plan->first(), nowhere);
  EXPECT_NE(report.problem, "");
  EXPECT_EQ(report.problem.find('\n'), std::string::npos);
  EXPECT_EQ(report.registers, 0);
}

TEST(KernelReport, TheEmulatorHasNoRegisters) {
  const Explanation e = explain("l2_normalize 64x256", device_info(Device::simt()));
  ASSERT_EQ(e.kernels.size(), 1u);
  EXPECT_EQ(e.kernels[0].registers, 0);
  EXPECT_EQ(e.kernels[0].problem, "the emulator runs host code; ask about sm_90a instead");
  EXPECT_NE(to_string(e).find("l2_normalize on simt: "), std::string::npos);
}

TEST(KernelReport, TheCpuHasNoKernel) {
  const Explanation e = explain("l2_normalize 64x256", device_info(Device::cpu()));
  EXPECT_TRUE(e.kernels.empty());
  EXPECT_EQ(to_string(e).find("kernel"), std::string::npos);
}

}  // namespace
}  // namespace tensorcraft::op
