// SPDX-License-Identifier: Apache-2.0
#include "tests/support/kernel_baseline.hpp"

#include "tensorcraft/core/error.hpp"
#include "tests/jit/test_rung.hpp"

#include <gtest/gtest.h>

namespace tensorcraft::test {
namespace {

constexpr std::string_view kName = "scale_rung float32 bm1";
const KernelUse kUse{
    .registers = 40, .shared_bytes = 1000, .code_bytes = 2000, .threads = 128, .min_blocks = 2};

MeasuredKernel fitting(KernelUse use) {
  return {.use = use, .promised = {12, 1, "registers"}, .blocks_per_sm = 12};
}

KernelBaseline baseline_of(const KernelUse& use) {
  return {"13.0", {{"sm_90a", {{std::string(kName), use}}}}};
}

Findings judge_one(const MeasuredKernel& kernel, const KernelUse& before = kUse,
                   const std::string& nvrtc = "13.0") {
  return judge({{std::string(kName), kernel}}, "sm_90a", nvrtc, baseline_of(before), "run this");
}

TEST(KernelBaseline, AcceptsWhatStayedOrGrewByATenth) {
  EXPECT_TRUE(judge_one(fitting(kUse)).failures.empty());
  KernelUse more = kUse;
  more.registers = 44;
  more.shared_bytes = 1100;
  more.code_bytes = 2200;
  EXPECT_TRUE(judge_one(fitting(more)).failures.empty());
  KernelUse less{.registers = 1, .threads = 128, .min_blocks = 1};
  EXPECT_TRUE(judge_one(fitting(less)).failures.empty());
}

TEST(KernelBaseline, RefusesGrowthWithKernelOldNewAndTheCommand) {
  KernelUse registers = kUse, shared = kUse, code = kUse;
  registers.registers = 45;
  shared.shared_bytes = 1101;
  code.code_bytes = 2201;
  EXPECT_EQ(judge_one(fitting(registers)).failures,
            std::vector<std::string>{
                "scale_rung float32 bm1 for sm_90a: 40 registers before, 45 now: 12 % more; where "
                "that is meant: run this"});
  for (const KernelUse& use : {shared, code}) {
    const auto found = judge_one(fitting(use)).failures;
    ASSERT_EQ(found.size(), 1u);
    EXPECT_NE(found[0].find(": 10 % more"), std::string::npos) << found[0];
  }
  KernelUse from_nothing = kUse;
  from_nothing.shared_bytes = 0;
  const auto found = judge_one(fitting(kUse), from_nothing).failures;
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].find("0 bytes of shared memory before, 1000 now;"), std::string::npos)
      << found[0];
}

TEST(KernelBaseline, OnlyNotesGrowthUnderAnotherCompiler) {
  KernelUse more = kUse;
  more.registers = 80;
  const Findings found = judge_one(fitting(more), kUse, "12.9");
  EXPECT_TRUE(found.failures.empty());
  EXPECT_EQ(found.notes.size(), 1u);
}

TEST(KernelBaseline, RefusesLocalMemoryThatTheVariantDoesNotDeclareUnderAnyCompiler) {
  KernelUse spills = kUse, stack = kUse;
  spills.spill_bytes = 8;
  stack.stack_bytes = 16;
  for (const KernelUse& use : {spills, stack}) {
    for (const std::string nvrtc : {"13.0", "12.9"}) {
      EXPECT_EQ(judge_one(fitting(use), use, nvrtc).failures.size(), 1u) << nvrtc;
      MeasuredKernel declared = fitting(use);
      declared.may_spill = true;
      EXPECT_TRUE(judge_one(declared, use, nvrtc).failures.empty()) << nvrtc;
    }
    MeasuredKernel declared = fitting(use);
    declared.may_spill = true;
    EXPECT_EQ(judge_one(declared).failures.size(), 1u) << "the baseline has none";
  }
}

TEST(KernelBaseline, RefusesLaunchBoundsThatAreNotKept) {
  MeasuredKernel kernel = fitting(kUse);
  kernel.promised.blocks_per_sm = 1;
  const auto found = judge_one(kernel).failures;
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].find("promise 2 blocks of 128 threads"), std::string::npos) << found[0];
  EXPECT_NE(found[0].find("holds 1, limited by registers"), std::string::npos) << found[0];
}

TEST(KernelBaseline, OnlyNotesLaunchBoundsThatSharedMemoryDoesNotKeep) {
  MeasuredKernel kernel = fitting(kUse);
  kernel.blocks_per_sm = 1;
  const Findings found = judge_one(kernel);
  EXPECT_TRUE(found.failures.empty());
  ASSERT_EQ(found.notes.size(), 1u);
  EXPECT_NE(found.notes[0].find("1000 bytes of shared memory a block let a multiprocessor hold 1"),
            std::string::npos)
      << found.notes[0];
  kernel.use.min_blocks = 1;
  EXPECT_TRUE(judge_one(kernel).notes.empty());
}

TEST(KernelBaseline, RefusesAKernelThatOnlyOneSideHas) {
  const KernelBaseline baseline = baseline_of(kUse);
  const auto gone = judge({}, "sm_90a", "12.9", baseline, "run this").failures;
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_NE(gone[0].find("scale_rung float32 bm1 for sm_90a: is gone"), std::string::npos);
  const MeasuredKernels one{{std::string(kName), fitting(kUse)}};
  const auto added = judge(one, "sm_80", "12.9", baseline, "run this").failures;
  ASSERT_EQ(added.size(), 1u);
  EXPECT_NE(added[0].find("scale_rung float32 bm1 for sm_80: is new"), std::string::npos);
  EXPECT_NE(added[0].find("run this"), std::string::npos);
}

TEST(KernelBaseline, ReadsWhatItWrote) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("kernels.json");
  KernelUse use = kUse;
  use.spill_bytes = 12;
  use.stack_bytes = 24;
  KernelBaseline written = baseline_of(use);
  written.texts["sm_90a"]["a"] = "a hash";
  write_baseline(written, path);
  const KernelBaseline read = read_baseline(path);
  EXPECT_EQ(read.nvrtc, "13.0");
  EXPECT_EQ(read.texts, written.texts);
  ASSERT_EQ(read.kernels.at("sm_90a").size(), 1u);
  const KernelUse& row = read.kernels.at("sm_90a").at(std::string(kName));
  EXPECT_EQ(row.registers, 40);
  EXPECT_EQ(row.shared_bytes, 1000u);
  EXPECT_EQ(row.spill_bytes, 12u);
  EXPECT_EQ(row.stack_bytes, 24u);
  EXPECT_EQ(row.code_bytes, 2000u);
  EXPECT_EQ(row.threads, 128);
  EXPECT_EQ(row.min_blocks, 2);
}

std::string error_of(const std::string& path) {
  try {
    read_baseline(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(KernelBaseline, SaysWhichFileIsNone) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("kernels.json");
  EXPECT_NE(error_of(path).find(path + " cannot be read"), std::string::npos) << error_of(path);
  for (const char* text : {"", "{}", R"({"columns": ["a"], "nvrtc": "13.0", "kernels": {}})"}) {
    test::write_file(path, text);
    EXPECT_NE(error_of(path).find(path), std::string::npos) << error_of(path);
  }
}

TEST(KernelBaseline, NamesAKernelByRungDtypesAndConfig) {
  EXPECT_EQ(kernel_name(test::scale_key(DType::float8_e4m3fn, 4)),
            "test_scale float8_e4m3fn bm1_u4");
  EXPECT_EQ(kernel_name(test::scale_key(DType::float32, 0)), "test_scale float32 bm1");
  EXPECT_EQ(kernel_name(test::scale_key(DType::float32, 10)), "test_scale float32 bm1_u10");
  jit::KernelKey plain = test::scale_key();
  static const jit::Rung rung{"test", "scale", "tensorcraft/test/scale.cuh",
                              "tensorcraft::kernel::test::scale"};
  plain.rung = &rung;
  EXPECT_EQ(kernel_name(plain), "test_scale float32");
}

}  // namespace
}  // namespace tensorcraft::test
