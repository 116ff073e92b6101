// SPDX-License-Identifier: Apache-2.0
#include "tests/support/compare.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/float16.cuh"
#include "tests/support/tolerance.hpp"

#include <cmath>
#include <limits>
#include <sstream>

#include <gtest/gtest.h>

namespace tensorcraft::test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

TEST(Compare, TakesNanAsEqualToNothing) {
  for (const double x : {kNaN, 0.0, 1.0, kInf, -kInf}) {
    EXPECT_FALSE(is_close(kNaN, x, {kInf, kInf}));
    EXPECT_FALSE(is_close(x, kNaN, {kInf, kInf}));
  }
}

TEST(Compare, TakesAnInfinityAsEqualToItselfAlone) {
  EXPECT_TRUE(is_close(kInf, kInf));
  EXPECT_TRUE(is_close(-kInf, -kInf));
  for (const double x : {-kInf, 0.0, 1.0, 1e300}) {
    EXPECT_FALSE(is_close(kInf, x, {1, 1}));
    EXPECT_FALSE(is_close(x, kInf, {1, 1}));
  }
}

TEST(Compare, AddsTheAbsoluteAndTheRelativeTolerance) {
  EXPECT_TRUE(is_close(100.125, 100.0, {.rtol = 0.001, .atol = 0.025}));
  EXPECT_FALSE(is_close(100.126, 100.0, {.rtol = 0.001, .atol = 0.025}));
  EXPECT_TRUE(is_close(0.0, 0.0, {0, 0}));
  EXPECT_FALSE(is_close(1e-9, 0.0, {.rtol = 1, .atol = 0}));
}

TEST(Compare, ReportsTheErrorsAndTheFirstMismatch) {
  const float got[] = {1.0f, 2.5f, 7.0f}, expected[] = {1.0f, 2.0f, 4.0f};
  const Comparison c = compare(got, expected, 3, {.rtol = 1e-3, .atol = 0});
  EXPECT_FALSE(c);
  EXPECT_EQ(join(c),
            "2 mismatches; at index 1 got 2.5, expected 2; max abs error 3 (at index 2), max rel "
            "error 0.75");
}

TEST(Compare, ReportsTheLargestErrorWhereAllMatch) {
  const float got[] = {1.0f, 2.5f, 4.0f}, expected[] = {1.0f, 2.0f, 4.0f};
  const Comparison c = compare(got, expected, 3, {.rtol = 1, .atol = 0});
  EXPECT_TRUE(c);
  EXPECT_EQ(c.index, 1);
  EXPECT_EQ(c.max_abs_error, 0.5);
  EXPECT_EQ(c.max_rel_error, 0.25);
}

TEST(Compare, ANanMakesTheErrorInfinite) {
  const double got[] = {kNaN, kInf}, expected[] = {1.0, kInf};
  const Comparison c = compare(got, expected, 2, {1, 1});
  EXPECT_EQ(c.mismatches, 1);
  EXPECT_EQ(c.max_abs_error, kInf);
  EXPECT_EQ(c.max_rel_error, kInf);
}

TEST(Compare, TakesNarrowTypesAndNoElements) {
  const bf16 got[] = {bf16(1.0f), bf16(2.0f)};
  const double expected[] = {1.0, 2.0};
  EXPECT_TRUE(allclose(got, expected, 2, 0, 0));
  EXPECT_FALSE(allclose(got, expected + 1, 1, 0.1, 0));
  EXPECT_TRUE(allclose(got, expected, 0, 0, 0));
}

TEST(Compare, ValidationSaysTheLargestDifference) {
  const float got[] = {1.0f, 2.5f}, expected[] = {1.0f, 2.0f};
  std::ostringstream out;
  EXPECT_TRUE(validate_kernel_correctness(got, expected, 2, {.rtol = 1, .atol = 0}, out));
  EXPECT_FALSE(validate_kernel_correctness(got, expected, 2, {.rtol = 0.1, .atol = 0}, out));
  EXPECT_EQ(out.str(),
            "Validation passed. Max difference: 0.5\nValidation failed. Max difference: 0.5\n");
}

// The worst by the tolerance is neither the largest absolute nor the largest relative error.
TEST(Tolerance, AFailureNamesTheWorstElementAndTheLargestErrors) {
  const std::vector<float> expected = {0.25f, 3, 16}, same = {0.25f, 3, 16};
  EXPECT_EQ(compare(same, expected, {1e-6}), "");
  EXPECT_EQ(compare({1, 6, 20}, expected, {0.125}),
            "element 1 is 6.000000, expected 3.000000 (1.935532 times the tolerance 0.125000); max "
            "abs error 4.000000, max rel error 3.000000");
  const float nan = float(kNaN);
  EXPECT_EQ(compare({nan, nan}, {1, nan}, {1}),
            "element 0 is nan, expected 1.000000 (inf times the tolerance 1.000000); max abs error "
            "inf, max rel error inf");
}

TEST(ToleranceConfig, IsOfADtype) {
  const auto allows = [](DType dtype, double got) {
    return is_close(got, 1, ToleranceConfig::of(dtype));
  };
  EXPECT_TRUE(allows(DType::float32, 1 + 9e-6) && !allows(DType::float32, 1 + 2e-5));
  EXPECT_TRUE(allows(DType::float16, 1 + 1.9e-3) && !allows(DType::float16, 1 + 2.1e-3));
  EXPECT_TRUE(allows(DType::bfloat16, 1 + 0.019) && !allows(DType::bfloat16, 1 + 0.021));
  EXPECT_THROW(ToleranceConfig::of(DType::int8), Error);
}

}  // namespace
}  // namespace tensorcraft::test
