// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/json_depth.hpp"

#include "tests/support/expect_error.hpp"

#include <string>

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

std::string nested(int levels) {
  return std::string(size_t(levels), '[') + std::string(size_t(levels), ']');
}

TEST(JsonDepth, TakesAsManyLevelsAsAnyFileOfOursHas) {
  for (const std::string& text : {std::string(), nested(kMostJsonLevels), nested(40) + nested(40)})
    EXPECT_NO_THROW(check_json_depth(text, "it.json")) << text;
}

TEST(JsonDepth, RefusesOneMoreWithItsPlace) {
  const std::string levels = std::to_string(kMostJsonLevels);
  const auto refused = [&](const std::string& text, const std::string& place) {
    test::expect_error(
        ErrorKind::value, [&] { check_json_depth(text, "it.json"); },
        "it.json:" + place + ": arrays and objects are nested more than " + levels +
            " levels deep");
  };
  refused(nested(kMostJsonLevels + 1), "1:" + std::to_string(kMostJsonLevels + 1));
  refused("{\"a\": 1,\n \"b\": " + nested(100000) + "}",
          "2:" + std::to_string(6 + kMostJsonLevels));
  refused("\n\n  " + nested(100000), "3:" + std::to_string(3 + kMostJsonLevels));
}

TEST(JsonDepth, CountsNoBracketOfAString) {
  const std::string many(1000, '[');
  EXPECT_NO_THROW(check_json_depth("{\"" + many + "\": \"\\\"" + many + "\\\\\"}", "it.json"));
  EXPECT_THROW(check_json_depth("[\"\\\\\"" + many, "it.json"), Error);  // the string has ended
}

}  // namespace
}  // namespace tensorcraft
