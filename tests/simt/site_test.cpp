// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/simt/shadow.hpp"

#include <gtest/gtest.h>

namespace tensorcraft::simt {
namespace {

[[gnu::noinline]] const void* caller() { return __builtin_return_address(0); }

TEST(SimtSite, NamesTheWrapperOrTheCode) {
  EXPECT_EQ(describe({.wrapper = "ldmatrix"}), "ldmatrix");
  const std::string here = describe({.address = caller()});
  // With debug information and addr2line the line, else the program and an offset.
  EXPECT_TRUE(here.find("site_test.cpp:") != std::string::npos ||
              here.find("+0x") != std::string::npos)
      << here;
  EXPECT_EQ(describe({}), "unknown code");
}

}  // namespace
}  // namespace tensorcraft::simt
