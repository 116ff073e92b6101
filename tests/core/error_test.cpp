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

TEST(Error, AtLineNamesAnotherLineAndKeepsKindAndText) {
  const auto here = std::source_location::current();
  try {
    at_line(here, [] { fail(ErrorKind::index, "far below"); });
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.where().line(), here.line());
    EXPECT_EQ(std::string(e.what()), "far below");
    EXPECT_EQ(e.kind(), ErrorKind::index);
  }
  int value = 1;
  at_line(here, [&]() -> int& { return value; }) = 2;  // what the body gives, a reference too
  EXPECT_EQ(value, 2);
}

TEST(ErrorKind, EveryKindHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int kind = 0; kind <= int(ErrorKind::kernel_fault); ++kind)
    names.insert(to_string(ErrorKind(kind)));
  EXPECT_EQ(names.size(), size_t(ErrorKind::kernel_fault) + 1);
  EXPECT_FALSE(names.contains("unknown"));
}

}  // namespace
}  // namespace tensorcraft
