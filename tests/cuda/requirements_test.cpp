// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/requirements.hpp"

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

TEST(Requirements, JudgesEachPrecisionOnItsOwn) {
  const DType wanted[] = {DType::bfloat16, DType::float8_e4m3fn, DType::float8_e5m2};
  const auto ampere = validate_requirement_feasibility({.compute_capability = 86}, wanted);
  ASSERT_EQ(ampere.size(), 3u);
  EXPECT_TRUE(ampere[0].supported);
  EXPECT_EQ(ampere[0].message, "");
  EXPECT_FALSE(ampere[1].supported);
  EXPECT_EQ(ampere[1].message, "Warning: FP8_E4M3 not supported on this GPU");
  EXPECT_EQ(ampere[2].message, "Warning: FP8_E5M2 not supported on this GPU");
  for (const int newer : {89, 90, 100, 121})
    for (const Feasibility& f :
         validate_requirement_feasibility({.compute_capability = newer}, wanted))
      EXPECT_TRUE(f.supported) << newer;
}

TEST(Requirements, RefusesOldArchitecturesWithTheExactMessage) {
  const DType wanted[] = {DType::float32};
  const auto answers = validate_requirement_feasibility({.compute_capability = 75}, wanted);
  EXPECT_FALSE(answers.at(0).supported);
  EXPECT_EQ(answers[0].message, "Error: GPU compute capability 75 not in supported list");
}

}  // namespace
}  // namespace tensorcraft
