// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/transfer/stager.hpp"

#include "tests/support/expect_error.hpp"
#include "tests/support/no_threads.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <vector>

namespace tensorcraft::transfer {
namespace {

TEST(ThreadStager, CopiesAndTellsOfEachOnce) {
  std::vector<std::vector<int>> from, to;
  for (int i = 0; i < 100; ++i) {
    from.emplace_back(1000, i);
    to.emplace_back(1000, -1);
  }
  std::atomic<int> notices = 0;
  std::set<uint64_t> done;
  ThreadStager stager(3);
  stager.on_done([&] { ++notices; });
  for (size_t i = 0; i < 100; ++i) stager.start(i, [&, i] { to[i] = from[i]; });
  stager.start(100, [] { fail(ErrorKind::io, "no such file"); });
  while (done.size() < 101) {
    for (const auto& [tag, error] : stager.take_done()) {
      EXPECT_TRUE(done.insert(tag).second);
      EXPECT_EQ(error != nullptr, tag == 100);
    }
    std::this_thread::yield();
  }
  EXPECT_EQ(to, from);
  for (int i = 0; i < 1000 && notices < 101; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(notices, 101);
}

TEST(ThreadStager, DropsWhatHasNotBegun) {
  std::atomic<int> begun = 0;
  {
    ThreadStager stager(1);
    for (uint64_t i = 0; i < 1000; ++i)
      stager.start(i, [&] {
        ++begun;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      });
  }
  EXPECT_LT(begun, 1000);
}

TEST(ThreadStager, RefusesAWorkThatNoThreadCanDoAndDoesTheNextOne) {
  std::atomic<int> done = 0;
  ThreadStager stager(2);
  const auto work = [&] { ++done; };
  {
    const test::NoThreads none;
    test::expect_error_with(ErrorKind::out_of_memory,
                            "TransferEngine: the system starts no further thread",
                            [&] { stager.start(1, work); });
  }
  stager.start(2, work);
  {
    const test::NoThreads none;
    stager.start(3, work);  // the one there is does it
  }
  while (done < 2) std::this_thread::yield();
  std::set<uint64_t> tags;
  while (tags.size() < 2)
    for (const auto& [tag, error] : stager.take_done()) tags.insert(tag);
  EXPECT_EQ(tags, (std::set<uint64_t>{2, 3}));
}

TEST(ThreadStager, NeedsAThread) {
  EXPECT_GE(ThreadStager::usual_threads(), 1);
  test::expect_error(
      ErrorKind::value, [] { ThreadStager(0); }, "ThreadStager: threads must be at least 1, got 0");
}

}  // namespace
}  // namespace tensorcraft::transfer
