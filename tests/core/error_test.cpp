// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

TEST(Error, RootCauseIsTheTextAfterTheFirstColon) {
  EXPECT_EQ(Error(ErrorKind::value, "a: b: c").root_cause(), "b: c");
  EXPECT_EQ(Error(ErrorKind::value, "no colon").root_cause(), "no colon");
}

TEST(Error, FailNamesTheLineThatCalledIt) {
  unsigned line = 0;
  try {
    line = __LINE__ + 1;
    fail(ErrorKind::key, "a", 1);
  } catch (const Error& e) {
    EXPECT_EQ(e.where().line(), line);
    EXPECT_EQ(std::string(e.what()), "a1");
    EXPECT_EQ(e.kind(), ErrorKind::key);
  }
}

TEST(ErrorKind, EveryKindHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int kind = 0; kind <= int(ErrorKind::internal); ++kind)
    names.insert(to_string(ErrorKind(kind)));
  EXPECT_EQ(names.size(), size_t(ErrorKind::internal) + 1);
  EXPECT_FALSE(names.contains("unknown"));
}

}  // namespace
}  // namespace tensorcraft
