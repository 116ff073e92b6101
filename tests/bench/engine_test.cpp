// SPDX-License-Identifier: Apache-2.0
#include "bench/engine.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/runtime/memory/allocator.hpp"
#include "tests/stress/stress.hpp"
#include "tests/support/fake_driver.hpp"
#include "tests/bench/expect_mention.hpp"

#include <gtest/gtest.h>

#include <algorithm>

// The engine with a runner that measures in turn, on the CPU and on the fake driver.
namespace tensorcraft::bench {
namespace {

using test::expect_mention;
using test::FakeDriver;

class InTurn : public Runner {
 public:
  void run(std::vector<Measured>& all) override {
    for (Measured& one : all)
      for (int i = 0; i < one.repetitions && one.error.empty(); ++i) try {
          one.samples.push_back(one.microseconds());
        } catch (const std::exception& error) {
          one.error = error.what();
        }
  }
};

Results run_lines(
    const std::vector<std::string>& lines, Settings settings,
    const std::function<void(const Progress&)>& progress = [](const auto&) {}) {
  std::vector<Case> cases;
  for (const std::string& line : lines) cases.push_back({diagnose::parse_request(line), {}});
  settings.warmup_s = 0;
  if (settings.repetitions == 0) settings.repetitions = 3;
  InTurn runner;
  return run(cases, settings, runner, progress);
}
Settings on_cpu() { return {.device = Device::cpu(), .variant = "all", .peers = {"copy"}}; }
Settings on_gpu() { return {.device = Device::cuda(), .variant = "", .peers = {"copy"}}; }

std::vector<std::string> candidates(const Results& results) {
  std::vector<std::string> names;
  for (const Row& row : results.rows) names.push_back(row.candidate + ' ' + row.variant);
  return names;
}

TEST(EngineOnTheCpu, TimesEveryVariantAndThePeer) {
  const Results results = run_lines({"l2_normalize 16x32"}, on_cpu());
  EXPECT_EQ(candidates(results),
            (std::vector<std::string>{"tensorcraft cpu", "tensorcraft reference", "copy "}));
  for (const Row& row : results.rows) {
    EXPECT_EQ(row.error, "");
    EXPECT_GT(row.median_us, 0) << row.candidate << row.variant;
    EXPECT_LE(row.p10_us, row.median_us);
    EXPECT_GE(row.p90_us, row.median_us);
    EXPECT_EQ(row.runs, 3);
    EXPECT_EQ(row.timing, "wall");
    EXPECT_EQ(row.bytes, 2 * 16 * 32 * 4);
    EXPECT_EQ(row.name, "16x32 float32");
  }
  EXPECT_EQ(std::ranges::count_if(results.rows, &Row::chosen), 1);
  EXPECT_TRUE(results.rows[0].chosen);
  EXPECT_EQ(results.device.at("arch"), "cpu");
}

TEST(EngineOnTheCpu, WarmIsSaidInTheRow) {
  Settings settings = on_cpu();
  settings.warm = true;
  EXPECT_EQ(run_lines({"relu 64"}, settings).rows[0].cache, "warm");
  settings.warm = false;
  const int64_t large = int64_t(1) << 22;  // 16 MiB an array, two of them, 256 copies at most
  settings.repetitions = 1;
  settings.variant = "cpu";
  EXPECT_EQ(run_lines({"relu " + std::to_string(large)}, settings).rows[0].cache, "cold");
}

TEST(EngineOnTheCpu, OneVariantByItsName) {
  Settings settings = on_cpu();
  settings.variant = "reference";
  const Results results = run_lines({"l2_normalize 4x8"}, settings);
  EXPECT_EQ(candidates(results), (std::vector<std::string>{"tensorcraft reference", "copy "}));
  EXPECT_FALSE(results.rows[0].chosen);
}

TEST(EngineOnTheCpu, ACaseThatCannotBeSetUpIsARowAndTheOthersGoOn) {
  const Results results = run_lines({"relu 4x", "nothing 4", "relu 8", "gemm 4x4 5x4"}, on_cpu());
  EXPECT_EQ(results.skipped,
            (std::vector<std::string>{"nothing 4 float32: there is no operator nothing"}));
  ASSERT_GE(results.rows.size(), 3u);
  EXPECT_TRUE(results.rows.front().failed());
  EXPECT_EQ(results.rows[1].error, "");
  EXPECT_NE(results.rows.back().error.find("gemm: b: Size mismatch"), std::string::npos);
}

TEST(EngineOnTheCpu, OneCaseAloneThrowsWhatIsWrongWithIt) {
  expect_mention(
      ErrorKind::value, [] { run_lines({"relu 4x"}, on_cpu()); }, "relu: x must be a shape");
  expect_mention(ErrorKind::key, [] { run_lines({"relux 4"}, on_cpu()); }, "no operator is named");
  Settings settings = on_cpu();
  settings.variant = "best";
  expect_mention(
      ErrorKind::value, [&] { run_lines({"relu 4"}, settings); }, "no variant of cpu is named");
  settings = on_cpu();
  settings.peers = {"mkl"};
  expect_mention(
      ErrorKind::value, [&] { run_lines({"relu 4"}, settings); }, "no peer is named \"mkl\"");
  settings.device = Device::simt();
  expect_mention(ErrorKind::value, [&] { run_lines({"relu 4"}, settings); }, "simt emulates a GPU");
}

TEST(EngineOnTheCpu, APeerWithoutTheOperatorSaysSoWhereItIsNamed) {
  Settings settings = on_cpu();
  settings.peers = {"cublaslt"};
  const Row row = run_lines({"relu 4"}, settings).rows.back();
  EXPECT_EQ(row.candidate, "cublaslt");
  EXPECT_TRUE(row.error.starts_with("n/a: ")) << row.error;
  EXPECT_FALSE(row.failed());
  settings.peers = {"all"};
  EXPECT_EQ(run_lines({"relu 4"}, settings).rows.back().candidate, "copy");
}

TEST(EngineOnTheCpu, RowsHaveTheGroupOfTheirCase) {
  InTurn runner;
  Settings settings = on_cpu();
  settings.warmup_s = 0;
  settings.repetitions = 1;
  const std::vector<Case> cases{{diagnose::parse_request("relu 8"), {}, {}, "small ones"},
                                {diagnose::parse_request("relu 4x"), {}, {}, "wrong ones"}};
  const Results results = run(cases, settings, runner, [](const auto&) {});
  for (const Row& row : results.rows)
    EXPECT_EQ(row.group, row.failed() ? "wrong ones" : "small ones");
  EXPECT_EQ(results.rows.back().group, "wrong ones");
}

TEST(EngineOnTheCpu, SaysHowFarItIs) {
  std::vector<double> fractions;
  std::vector<std::string> finished;
  run_lines({"relu 8", "relu 9"}, on_cpu(), [&](const Progress& p) {
    EXPECT_EQ(p.total, 2u);
    fractions.push_back(p.fraction);
    if (p.so_far) finished.push_back(p.so_far->rows.empty() ? "" : p.so_far->rows.back().name);
  });
  EXPECT_EQ(finished, (std::vector<std::string>{"", "8 float32"}));
  EXPECT_EQ(fractions.front(), 0);
  EXPECT_TRUE(std::ranges::is_sorted(fractions));
  EXPECT_GT(fractions.back(), 0.5);
  EXPECT_LE(fractions.back(), 1);
}

TEST(EngineOnAGpu, TimesLargeCallsByEvents) {
  FakeDriver fake;
  const Results results = run_lines({"relu 2048x4096"}, on_gpu());
  ASSERT_EQ(results.rows.size(), 2u);
  const Row& ours = results.rows[0];
  EXPECT_EQ(ours.error, "");
  EXPECT_EQ(ours.timing, "events");
  EXPECT_EQ(ours.cache, "cold");
  EXPECT_DOUBLE_EQ(ours.median_us, 1000);  // each launch takes a millisecond there
  EXPECT_GT(ours.floor_us, 0);
  EXPECT_EQ(results.rows[1].candidate, "copy");
  EXPECT_EQ(results.device.at("arch"), "sm_90a");
  EXPECT_EQ(results.machine.at("gpu"), "Fake H200");
}

TEST(EngineOnAGpu, TimesSmallCallsByAGraph) {
  FakeDriver fake;
  const Row row = run_lines({"relu 64x64"}, on_gpu()).rows[0];
  EXPECT_EQ(row.timing, "graph");
  EXPECT_DOUBLE_EQ(row.median_us, 1000);
  EXPECT_EQ(row.cache, "warm");  // more copies than a graph holds would be needed
  allocator(Device::cuda()).trim();
  EXPECT_EQ(fake.alive() - fake.libraries, 0);
}

TEST(EngineOnAGpu, AKernelThatFailsIsARowAndTheOthersGoOn) {
  FakeDriver fake;
  fake.fail_at("cuLaunchKernelEx", 1, 801);
  const Results results = run_lines({"relu 2048x4096", "silu 2048x4096"}, on_gpu());
  ASSERT_EQ(results.rows.size(), 4u);
  EXPECT_TRUE(results.rows[0].failed());
  EXPECT_NE(results.rows[0].error.find("801"), std::string::npos);
  EXPECT_EQ(results.rows[1].error, "");
  EXPECT_EQ(results.rows[2].error, "");
  EXPECT_GT(results.rows[2].median_us, 0);
}

TEST(EngineOnAGpu, ALostDeviceIsSaidInEveryRowThatIsLeft) {
  FakeDriver fake;
  fake.fail_at("cuLaunchKernelEx", 2, 719);
  const Results results = run_lines({"relu 2048x4096", "silu 2048x4096"}, on_gpu());
  ASSERT_GE(results.rows.size(), 3u);
  EXPECT_TRUE(results.rows.front().failed());
  EXPECT_TRUE(results.rows.back().failed());
  EXPECT_NE(results.rows.back().error.find("719"), std::string::npos);
}

}  // namespace
}  // namespace tensorcraft::bench
