// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/safetensors/refusal.hpp"

#include <gtest/gtest.h>

#include <set>

namespace tensorcraft::safetensors {

TEST(Refusal, EveryReasonHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int i = 0; i < kNumRefusals; ++i) names.insert(to_string(Refusal(i)));
  EXPECT_EQ(names.size(), size_t(kNumRefusals));
  EXPECT_FALSE(names.contains(""));
  EXPECT_EQ(to_string(Refusal::big_endian_host), "big_endian_host");
  EXPECT_EQ(to_string(Refusal::integer_overflow), "integer_overflow");
  EXPECT_EQ(to_string(Refusal::misplaced_empty), "misplaced_empty");
  EXPECT_EQ(to_string(Refusal::changed_while_reading), "changed_while_reading");
}

TEST(InQuotes, ShortensAtACharacterAndHidesControlCharacters) {
  EXPECT_EQ(in_quotes("a\n\x1b"), "\"a??\"");
  EXPECT_EQ(in_quotes(std::string(100, 'x')), '"' + std::string(100, 'x') + '"');
  EXPECT_EQ(in_quotes(std::string(99, 'x') + "\u00e9"), '"' + std::string(99, 'x') + "...\"");
}

}  // namespace tensorcraft::safetensors
