// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/recently_used.hpp"

#include <gtest/gtest.h>

#include <list>
#include <string>

namespace tensorcraft::jit {
namespace {

using Gone = std::list<std::string>;

TEST(RecentlyUsed, LetsTheValueUnusedForLongestGo) {
  RecentlyUsed<int, std::string> kept(2);
  Gone gone;
  kept.put(1, "one", gone);
  kept.put(2, "two", gone);
  ASSERT_NE(kept.find(1), nullptr);
  kept.put(3, "three", gone);
  EXPECT_EQ(gone, Gone{"two"});
  EXPECT_EQ(kept.find(2), nullptr);
  EXPECT_EQ(*kept.find(1), "one");
  kept.set_limit(1, gone);
  EXPECT_EQ(gone, (Gone{"two", "three"}));
  EXPECT_EQ(kept.size(), 1u);
}

TEST(RecentlyUsed, AKeyHasOneValue) {
  RecentlyUsed<int, std::string> kept(2);
  Gone gone;
  kept.put(1, "one", gone);
  kept.put(1, "other", gone);
  EXPECT_EQ(gone, Gone{"one"});
  EXPECT_EQ(*kept.find(1), "other");
  kept.clear(gone);
  EXPECT_EQ(kept.size(), 0u);
  EXPECT_EQ(gone, (Gone{"one", "other"}));
}

}  // namespace
}  // namespace tensorcraft::jit
