// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/check.hpp"

#include "tests/support/expect_error.hpp"

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

using test::expect_error;

std::string with_line(unsigned line, const std::string& message) {
  return join("Runtime check failed at ", __FILE__, ":", line, message);
}

TEST(RuntimeCheck, JoinsItsArgumentsAndNamesTheCallersLine) {
  const auto broken = [] { RuntimeCheck(1 + 1 == 3, "got ", 2, " of ", 3.5); };
  expect_error(ErrorKind::internal, broken, with_line(__LINE__ - 1, ": got 2 of 3.5"));
  int value = 7;
  RuntimeCheck(value == 7, "never seen");
  RuntimeCheck(&value, "never seen");
}

TEST(RuntimeCheck, NamesTheLocationThatItIsGiven) {
  const DebugInfo here;
  const unsigned line = __LINE__ - 1;
  expect_error(
      ErrorKind::internal, [&] { RuntimeCheck(here, false, "text"); }, with_line(line, ": text"));
  expect_error(
      ErrorKind::internal, [&] { RuntimeCheck(std::source_location(here), false, "text"); },
      with_line(line, ": text"));
  RuntimeCheck(here, true, "never seen");
}

[[maybe_unused]] void quiet_function(unsigned& line) {
  line = __LINE__ + 1;
  Panic();
}

TEST(Panic, NamesTheFunctionWhereNoTextIsGiven) {
  unsigned line = 0;
  std::string text;
  try {
    quiet_function(line);
  } catch (const Error& e) {
    text = e.what();
  }
  EXPECT_TRUE(text.starts_with(with_line(line, " in ")));
  EXPECT_NE(text.find("quiet_function"), std::string::npos) << text;
}

TEST(Panic, AlwaysThrows) {
  const auto broken = [] { Panic("broken ", 1); };
  const unsigned line = __LINE__ - 1;
  expect_error(ErrorKind::internal, broken, with_line(line, ": broken 1"));
  const DebugInfo here;
  expect_error(ErrorKind::internal, [&] { panic(here, "x"); }, with_line(line + 3, ": x"));
}

}  // namespace
}  // namespace tensorcraft
