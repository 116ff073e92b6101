// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/check.hpp"

#include "tensorcraft/core/irange.hpp"
#include "tensorcraft/core/pointer.hpp"
#include "tests/support/expect_error.hpp"

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

using test::expect_error;

std::string at_line(unsigned line, const std::string& message) {
  return join("Runtime check failed at ", __FILE__, ":", line, message);
}

TEST(RuntimeCheck, JoinsItsArgumentsAndNamesTheCallersLine) {
  const auto broken = [] { RuntimeCheck(1 + 1 == 3, "got ", 2, " of ", 3.5); };
  expect_error(ErrorKind::internal, broken, at_line(__LINE__ - 1, ": got 2 of 3.5"));
  int value = 7;
  RuntimeCheck(value == 7, "never seen");
  RuntimeCheck(&value, "never seen");
}

TEST(RuntimeCheck, NamesTheLocationThatItIsGiven) {
  const DebugInfo here;
  const unsigned line = __LINE__ - 1;
  expect_error(
      ErrorKind::internal, [&] { RuntimeCheck(here, false, "text"); }, at_line(line, ": text"));
  expect_error(
      ErrorKind::internal, [&] { RuntimeCheck(std::source_location(here), false, "text"); },
      at_line(line, ": text"));
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
  EXPECT_TRUE(text.starts_with(at_line(line, " in ")));
  EXPECT_NE(text.find("quiet_function"), std::string::npos) << text;
}

TEST(Panic, AlwaysThrows) {
  const auto broken = [] { Panic("broken ", 1); };
  const unsigned line = __LINE__ - 1;
  expect_error(ErrorKind::internal, broken, at_line(line, ": broken 1"));
  const DebugInfo here;
  expect_error(ErrorKind::internal, [&] { panic(here, "x"); }, at_line(line + 3, ": x"));
}

TEST(Irange, CountsFromZeroOrFromABeginning) {
  int64_t sum = 0;
  for (const int64_t i : irange(int64_t(5))) sum += i;
  EXPECT_EQ(sum, 10);
  unsigned total = 0;
  for (const unsigned i : irange(2u, 5u)) total += i;
  EXPECT_EQ(total, 9u);
  for (const int i : irange(-3)) FAIL() << i;
  for (const int i : irange(3, 3)) FAIL() << i;
  for (const int i : irange(4, 3)) FAIL() << i;
}

template <class T>
concept Offsettable = requires(T* p) { pointer::offset(p, 1); };
static_assert(Offsettable<void> && Offsettable<const void>);
static_assert(!Offsettable<int> && !Offsettable<char>);

TEST(Pointer, OffsetsAreBytesAndAddUp) {
  char bytes[16];
  void* p = bytes;
  const void* q = bytes;
  EXPECT_EQ(pointer::offset(p, 3, int64_t(4), 1u), bytes + 8);
  EXPECT_EQ(pointer::offset(q, 5), bytes + 5);
  EXPECT_EQ(pointer::offset(pointer::offset(p, 8), -8), p);
}

TEST(Pointer, ValidateAlignmentRefusesAnAddressBetweenVectors) {
  alignas(16) float x[8] = {};
  validate_alignment<float, 4>(x);
  validate_alignment<float, 4>(x + 4);
  expect_error(
      ErrorKind::value, [&] { validate_alignment<float, 4>(x + 1); },
      "Pointer not aligned for vectorized access");
}

}  // namespace
}  // namespace tensorcraft
