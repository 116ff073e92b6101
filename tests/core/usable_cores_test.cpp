// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/usable_cores.hpp"

#include <gtest/gtest.h>
#include <sched.h>

namespace tensorcraft {
namespace {

TEST(UsableCores, AreThoseTheThreadMayRunOn) {
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  EXPECT_EQ(usable_cores(), CPU_COUNT(&all));
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_cores(), 1);
  sched_setaffinity(0, sizeof all, &all);
}

}  // namespace
}  // namespace tensorcraft
