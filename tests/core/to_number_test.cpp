// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/to_number.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace tensorcraft {
namespace {

TEST(ToNumber, TakesAllOfATextOrNothing) {
  EXPECT_EQ(to_number<int>("12"), 12);
  EXPECT_EQ(to_number<int>("-3"), -3);
  EXPECT_EQ(to_number<double>("2.5e-1"), 0.25);
  for (const char* none : {"", " 12", "12 ", "12x", "x12", "+12", "-", "1.5", "0x10"})
    EXPECT_EQ(to_number<int>(none), std::nullopt) << none;
  const std::string_view part = std::string_view("12x").substr(0, 2);  // no further than its end
  EXPECT_EQ(to_number<int>(part), 12);
}

TEST(ToNumber, GivesNothingThatItsTypeCannotHold) {
  EXPECT_EQ(to_number<int64_t>("9223372036854775807"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(to_number<int64_t>("9223372036854775808"), std::nullopt);
  EXPECT_EQ(to_number<uint64_t>("-1"), std::nullopt);
  EXPECT_EQ(to_number<double>("1e999"), std::nullopt);
}

}  // namespace
}  // namespace tensorcraft
