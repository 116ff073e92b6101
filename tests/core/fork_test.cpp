// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/fork.hpp"

#include "tests/support/forked_child.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <thread>

namespace tensorcraft {
namespace {

constexpr int kForks = 100;

// A thread that does `work` again and again, until this goes.
class Busy {
 public:
  template <class Work>
  explicit Busy(Work work)
      : thread_([this, work] {
          while (!ended_) work();
        }) {}
  ~Busy() {
    ended_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

class Fork : public testing::Test {
  void SetUp() override {
    if (!kForksWork) GTEST_SKIP() << "ThreadSanitizer";
  }
};

TEST_F(Fork, FindsWhatAMutexGuardsWhole) {
  ForkSafeMutex mutex;
  volatile int first = 0, second = 0;
  const Busy busy([&] {
    const std::lock_guard lock(mutex);
    first = first + 1;
    for (int i = 0; i < 200; ++i) second = first;
  });
  for (int i = 0; i < kForks; ++i)
    ASSERT_EQ(test::in_child([&] {
                const std::lock_guard lock(mutex);
                return first == second ? 0 : 1;
              }),
              0);
}

TEST_F(Fork, TakesMutexesInWhateverOrderThreadsNestThem) {
  ForkSafeMutex a, b;
  const auto nested = [](std::mutex& outer, std::mutex& inner) {
    const std::lock_guard first(outer);
    const std::lock_guard second(inner);
    return 0;
  };
  for (const bool is_reversed : {false, true}) {
    const Busy busy([&] { is_reversed ? nested(b, a) : nested(a, b); });
    for (int i = 0; i < kForks; ++i)
      ASSERT_EQ(test::in_child([&] { return nested(a, b) + nested(b, a); }), 0);
  }
}

TEST_F(Fork, FreesASharedMutexWithItsReaders) {
  ForkSafe<std::shared_mutex> mutex;
  const Busy reads([&] { const std::shared_lock lock(mutex); });
  const Busy writes([&] { const std::unique_lock lock(mutex); });
  for (int i = 0; i < kForks; ++i)
    ASSERT_EQ(test::in_child([&] {
                {
                  const std::unique_lock lock(mutex);
                }
                const std::shared_lock lock(mutex);
                return 0;
              }),
              0);
}

TEST_F(Fork, RunsFunctionsInTheChildAlone) {
  int calls = 0;
  const InForkedChild hook([&] { ++calls; });
  EXPECT_EQ(test::in_child([&] { return calls == 1 ? 0 : 1; }), 0);
  EXPECT_EQ(calls, 0);
}

TEST_F(Fork, ForgetsWhatIsGone) {
  int calls = 0;
  auto first = std::make_unique<InForkedChild>([&] { calls += 1; });
  auto second = std::make_unique<InForkedChild>([&] { calls += 2; });
  auto third = std::make_unique<InForkedChild>([&] { calls += 4; });
  second.reset();
  EXPECT_EQ(test::in_child([&] { return calls; }), 5);
  first.reset();
  EXPECT_EQ(test::in_child([&] { return calls; }), 4);
  third.reset();
  EXPECT_EQ(test::in_child([&] { return calls; }), 0);
}

TEST_F(Fork, ObjectsComeAndGoInOtherThreadsMeanwhile) {
  const Busy busy([] { const ForkSafeMutex mutex; });
  for (int i = 0; i < kForks; ++i)
    ASSERT_EQ(test::in_child([] {
                ForkSafeMutex mutex;
                const std::lock_guard lock(mutex);
                return 0;
              }),
              0);
}

}  // namespace
}  // namespace tensorcraft
