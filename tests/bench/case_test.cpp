// SPDX-License-Identifier: Apache-2.0
#include "bench/case.hpp"

#include "tensorcraft/ops/all.hpp"
#include "tests/bench/expect_mention.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace tensorcraft::bench {
namespace {

using test::expect_mention;

constexpr std::string_view kText = R"({"groups": [
  {"suite": "a", "title": "rows", "calls": ["softmax {m}x{n} --option axis=0", "cross_entropy {m}x{n} {m}:int64"],
   "sizes": [{"m": 2, "n": 30}, {"m": 4, "n": 5}], "dtypes": ["float32", "bfloat16"],
   "below": {"targets": "{n}"}, "step": {"x": "{m}"}},
  {"suite": "b", "calls": ["relu 7", "softmax 2x30 --option axis=0"], "dtypes": ["float32"]}]})";

std::vector<std::string> names_of(std::string_view suite) {
  std::vector<std::string> names;
  for (const Case& c : suite_cases(kText, suite)) names.push_back(c.request.op + ' ' + c.name());
  return names;
}

TEST(Suites, AreEveryCallWithEverySizeAndDtype) {
  EXPECT_EQ(suite_names(kText), (std::vector<std::string>{"a", "b", "all"}));
  const auto names = names_of("a");
  ASSERT_EQ(names.size(), 8u);
  EXPECT_EQ(names[0], "softmax 2x30 float32 axis=0");
  EXPECT_EQ(names[1], "softmax 2x30 bfloat16 axis=0");
  EXPECT_EQ(names[7], "cross_entropy 4x5 4:int64 bfloat16");
  EXPECT_EQ(suite_cases(kText, "a")[7].below.at("targets"), 5);
  EXPECT_EQ(suite_cases(kText, "a")[7].step.at("x"), 4);
  EXPECT_EQ(suite_cases(kText, "a")[7].group, "rows");
}

TEST(Suites, AllHasEachCaseOnce) {
  EXPECT_EQ(names_of("all").size(), 9u);
  EXPECT_EQ(names_of("b"),
            (std::vector<std::string>{"relu 7 float32", "softmax 2x30 float32 axis=0"}));
}

TEST(Suites, AnUnknownOneNamesThoseThereAre) {
  expect_mention(
      ErrorKind::value, [] { suite_cases(kText, "c"); },
      "there is no suite \"c\"; there are a, b, all");
}

TEST(Suites, TextOfAnotherFormIsRefused) {
  expect_mention(ErrorKind::value, [] { suite_names("{"); }, "the suites are no JSON");
  constexpr std::string_view kNoSize =
      R"({"groups": [{"suite": "a", "calls": ["relu {m}"], "dtypes": ["float32"]}]})";
  expect_mention(
      ErrorKind::value, [=] { suite_cases(kNoSize, "a"); }, "has a name that no size gives");
}

// The file of the repository: Python reads the same one.
TEST(Suites, OfTheRepositoryAreThere) {
  const auto names = suite_names(kSuitesText);
  for (const char* name : {"headline", "matrix", "smoke", "all"})
    EXPECT_NE(std::ranges::find(names, name), names.end()) << name;
  EXPECT_GT(suite_cases(kSuitesText, "headline").size(), 80u);
}

// Every call of the product's suites is one that the operator takes, in the shape that is meant.
TEST(Suites, OfProductsAreCallsOfGemm) {
  const DeviceInfo device = device_info_of_arch("sm_90a");
  for (const char* suite : {"gemm", "gemm-bytes", "gemm-llm", "gemm-epilogue"})
    for (const Case& c : suite_cases(kSuitesText, suite)) {
      SCOPED_TRACE(c.name());
      EXPECT_NE(c.group, "");
      const diagnose::Request request(find_operator(c.request.op), c.request, device);
      const op::Explanation explanation = request.explain();
      EXPECT_NE(explanation.variant, "");
      EXPECT_GT(explanation.cost.flops, 0);
    }
}

}  // namespace
}  // namespace tensorcraft::bench
