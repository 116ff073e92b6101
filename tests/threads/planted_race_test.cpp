// SPDX-License-Identifier: Apache-2.0
// The suite of ThreadSanitizer can fail: it finds a race that is planted.
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

namespace {

[[gnu::noinline]] void count_without_a_lock(int& counter) {
  for (int i = 0; i < 1000; ++i) ++counter;
}

TEST(ThreadSanitizer, FindsAPlantedRace) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        int counter = 0;
        std::thread other([&] { count_without_a_lock(counter); });
        count_without_a_lock(counter);
        other.join();
        std::exit(0);  // the sanitizer's own status takes its place
      },
      testing::ExitedWithCode(66), "data race.*");
}

}  // namespace
