// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/diagnose/fragments.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tensorcraft::diagnose {
namespace {

// Lines of one table of the description, without its title.
std::string table(const std::string& title) {
  const std::string all = describe_fragments();
  const size_t begin = all.find(title);
  if (begin == all.npos) return "no " + title;
  const size_t lines = all.find('\n', begin) + 1;
  return all.substr(lines, all.find("\n\n", lines) - lines);
}

TEST(Fragments, NamesTheRegisterOfEachElement) {
  // Row 0 of A: a0 of lanes 0 to 3, then a2; row 9 (line 10) has a1 and a3 of lanes 4 to 7.
  const std::string a = table("mma.sync m16n8k8 tf32: A");
  EXPECT_EQ(a.substr(0, 56), "   0.a0   1.a0   2.a0   3.a0   0.a2   1.a2   2.a2   3.a2");
  EXPECT_NE(a.find("   4.a1   5.a1   6.a1   7.a1   4.a3   5.a3   6.a3   7.a3"), a.npos) << a;
  EXPECT_EQ(table("mma.sync m16n8k8 tf32: B").substr(0, 56),
            "   0.b0   1.b0   2.b0   3.b0   0.b1   1.b1   2.b1   3.b1");
  EXPECT_EQ(table("mma.sync: C").substr(0, 28), "   0.d0   0.d1   1.d0   1.d1");
}

TEST(Fragments, LeavesNoElementWithoutARegister) {
  const std::string all = describe_fragments();
  EXPECT_EQ(all.find("       \n"), all.npos);
  EXPECT_EQ(all.find("              "), all.npos);  // an empty entry
}

TEST(Fragments, HoldOnTheEmulator) {
  const auto checks = verify_fragments(Device::simt());
  EXPECT_EQ(checks.size(), 10u);
  for (const FragmentCheck& check : checks) {
    EXPECT_GT(check.registers, 0) << check.instruction;
    EXPECT_EQ(check.wrong, 0) << check.instruction << ": " << check.first;
  }
}

}  // namespace
}  // namespace tensorcraft::diagnose
