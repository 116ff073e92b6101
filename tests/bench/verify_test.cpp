// SPDX-License-Identifier: Apache-2.0
#include "bench/verify.hpp"

#include "tests/support/fake_driver.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tensorcraft::bench {
namespace {

TEST(Report, IsTheTextOfTheInventory) {
  const TestCase small{.name = "Small", .problem = {64, 64, 64}};
  const TestCase square{.suite = TestSuite::performance,
                        .name = "Square",
                        .problem = {2048, 2048, 2048},
                        .precision = DType::bfloat16,
                        .expected_performance = 500};
  const std::vector<TestResult> results = {
      {.test = small, .passed = true, .message = "relative error 1e-07", .execution_time = 0.5},
      {.test = square,
       .passed = false,
       .message = "300 TFLOPS, expected 500",
       .execution_time = 2,
       .achieved_tflops = 300}};
  EXPECT_EQ(report(results),
            "=== Test Report ===\n"
            "Total Tests: 2\n"
            "\u2713 correctness: Small 64x64x64 float32: relative error 1e-07 (0.5 ms)\n"
            "\u2717 performance: Square 2048x2048x2048 bfloat16: 300 TFLOPS, expected 500 (2 ms)\n"
            "Summary: 1 passed, 1 failed\n"
            "Success Rate: 50.0%\n"
            "2048: 300 TFLOPS FAIL\n");
  EXPECT_FALSE(all_passed(results));
  EXPECT_TRUE(all_passed({results[0]}));
}

TEST(Report, OfNoTestsIsNoSuccess) {
  EXPECT_EQ(report({}),
            "=== Test Report ===\nTotal Tests: 0\nSummary: 0 passed, 0 failed\n"
            "Success Rate: 0.0%\n");
  EXPECT_FALSE(all_passed({}));
}

TEST(AutomatedTestFramework, HasTheNamedCasesInEverySuiteOnAGpu) {
  test::FakeDriver fake;
  AutomatedTestFramework tests(Device::cuda(0));
  tests.add_standard();
  std::array<int, kNumTestSuites> counts{};
  std::vector<std::string> correctness, rates;
  for (const TestCase& test : tests.tests()) {
    ++counts[size_t(test.suite)];
    EXPECT_EQ(test.tolerance, 1e-3);
    if (test.suite == TestSuite::correctness) correctness.push_back(describe(test));
    if (test.expected_performance > 0) rates.push_back(describe(test));
  }
  for (const int count : counts) EXPECT_GT(count, 0);
  for (const char* const name :
       {"Small 64x64x64 float32", "Medium 1024x1024x1024 float32", "Large 8192x8192x8192 bfloat16",
        "Rect 16384x512x1024 float16", "FP8 1024x1024x1024 float8_e4m3fn",
        "Cube 256x256x256 float32", "Cube 4096x4096x4096 bfloat16"})
    EXPECT_EQ(std::ranges::count(correctness, name), 1) << name;
  EXPECT_EQ(rates, (std::vector<std::string>{"Square 2048x2048x2048 bfloat16",
                                             "Square 4096x4096x4096 bfloat16",
                                             "Square 8192x8192x8192 bfloat16"}));
}

TEST(AutomatedTestFramework, AsksTheEmulatorOnlyWhatItCanAnswerInSeconds) {
  AutomatedTestFramework tests(Device::simt());
  tests.add_standard();
  std::array<int, kNumTestSuites> counts{};
  double flops = 0;
  for (const TestCase& test : tests.tests()) {
    ++counts[size_t(test.suite)];
    flops += test.problem.flops() * test.runs;
  }
  for (const int count : counts) EXPECT_GT(count, 0);
  EXPECT_LT(flops, 5e9);
}

TEST(AutomatedTestFramework, ARateAboveThePeakIsNoRate) {
  TestResult result{.test = {.suite = TestSuite::performance, .expected_performance = 500},
                    .achieved_tflops = 2993};
  judge_speed(result, 989);
  EXPECT_FALSE(result.passed);
  EXPECT_EQ(result.message,
            "2993 TFLOPS, expected 500, above the peak of 989: that is no time of the product");
  result.achieved_tflops = 700;
  judge_speed(result, 989);
  EXPECT_TRUE(result.passed);
  judge_speed(result, 0);
  EXPECT_TRUE(result.passed) << "nothing is known of the device";
  result.achieved_tflops = 400;
  judge_speed(result, 989);
  EXPECT_FALSE(result.passed);
  result.achieved_tflops = result.test.expected_performance = 0;
  judge_speed(result, 989);
  EXPECT_FALSE(result.passed) << "nothing was measured";
}

TEST(AutomatedTestFramework, TimesAGpuByItsEvents) {
  test::FakeDriver fake;
  AutomatedTestFramework tests(Device::cuda(0));
  tests.add({.suite = TestSuite::performance, .name = "Square", .problem = {64, 64, 64}});
  const std::vector<TestResult> results = tests.run();
  EXPECT_GT(fake.calls["cuEventElapsedTime"], 0) << results.at(0).message;
  EXPECT_TRUE(results[0].passed) << results[0].message;
}

TEST(AutomatedTestFramework, RunsSuitesInOrderAndSaysWhatFails) {
  AutomatedTestFramework tests(Device::cpu());
  tests.add({.suite = TestSuite::regression, .name = "Last", .problem = {8, 8, 8}});
  tests.add({.suite = TestSuite::performance,
             .name = "Too much",
             .problem = {8, 8, 8},
             .expected_performance = 1e6});
  tests.add({.name = "Right", .problem = {33, 17, 65}, .runs = 3});
  tests.add({.name = "Too exact", .problem = {64, 64, 64}, .tolerance = -1});
  tests.add({.name = "Unknown", .problem = {8, 8, 8}, .config = "no such variant"});
  tests.add({.suite = TestSuite::boundary, .name = "Empty", .problem = {8, 8, 0}});
  std::vector<std::string> told;
  const std::vector<TestResult> results =
      tests.run([&](size_t, size_t, const std::string& what) { told.push_back(what); });
  ASSERT_EQ(results.size(), 6u);
  ASSERT_EQ(told.size(), 6u);
  EXPECT_EQ(told[0], "Right 33x17x65 float32, 3 runs");
  EXPECT_TRUE(results[0].passed) << results[0].message;
  EXPECT_FALSE(results[1].passed);
  EXPECT_NE(results[1].message.find("at most -1"), std::string::npos);
  EXPECT_FALSE(results[2].passed);
  EXPECT_NE(results[2].message.find("no such variant"), std::string::npos);
  EXPECT_EQ(results[3].test.name, "Too much");
  EXPECT_FALSE(results[3].passed);
  EXPECT_GT(results[3].achieved_tflops, 0);
  EXPECT_TRUE(results[4].passed) << results[4].message;
  EXPECT_TRUE(results[5].passed) << results[5].message;
  for (const TestResult& result : results) EXPECT_GE(result.execution_time, 0);
}

}  // namespace
}  // namespace tensorcraft::bench
