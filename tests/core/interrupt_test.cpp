// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/interrupt.hpp"

#include "tensorcraft/core/error.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace tensorcraft {
namespace {

using namespace std::chrono_literals;

bool never() { return false; }
bool always() { return true; }

// The steps of a call that asks for `time` unless it is ended.
int steps_for(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  int steps = 0;
  for (; std::chrono::steady_clock::now() < end; ++steps) check_interrupt();
  return steps;
}

TEST(Interrupt, WithoutACheckNothingEnds) { EXPECT_GT(steps_for(60ms), 0); }

TEST(Interrupt, ACheckThatSaysNoEndsNothing) {
  EXPECT_EQ(set_interrupt_check(never), nullptr);
  EXPECT_GT(steps_for(60ms), 0);
  EXPECT_EQ(set_interrupt_check(nullptr), &never);
}

TEST(Interrupt, ACheckThatSaysYesEndsTheWorkWithKindCancelled) {
  set_interrupt_check(always);
  try {
    steps_for(10s);
    ADD_FAILURE() << "the work went on";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::cancelled);
  }
  set_interrupt_check(nullptr);
}

TEST(Interrupt, ShortWorkIsNotAsked) {
  set_interrupt_check(always);
  EXPECT_NO_THROW(check_interrupt());
  set_interrupt_check(nullptr);
}

// Waits as an object does that other threads change.
struct Waiting {
  std::mutex mutex;
  std::condition_variable changed;
  std::unique_lock<std::mutex> lock{mutex};
};

TEST(WaitOrInterrupt, EndsOnceItIsOver) {
  Waiting w;
  bool is_over = false;
  std::thread ends([&] {
    const std::lock_guard lock(w.mutex);
    is_over = true;
    w.changed.notify_all();
  });
  EXPECT_TRUE(wait_or_interrupt(w.changed, w.lock, [&] { return is_over; }));
  EXPECT_TRUE(w.lock.owns_lock());
  ends.join();
}

TEST(WaitOrInterrupt, EndsWithItsTime) {
  Waiting w;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(wait_or_interrupt(w.changed, w.lock, [] { return false; }, 10ms));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 10ms);
  EXPECT_TRUE(w.lock.owns_lock());
  EXPECT_TRUE(wait_or_interrupt(w.changed, w.lock, [] { return true; }, 0ms));
}

TEST(WaitOrInterrupt, AsksAgainAfterEachSliceWithoutAnySignal) {
  Waiting w;
  int asked = 0;
  EXPECT_TRUE(wait_or_interrupt(w.changed, w.lock, [&] { return ++asked == 4; }, {}, 1ms));
  EXPECT_EQ(asked, 4);
}

TEST(WaitOrInterrupt, AnInterruptEndsItAndLeavesTheLockFree) {
  Waiting w;
  set_interrupt_check(always);
  EXPECT_THROW(wait_or_interrupt(w.changed, w.lock, [] { return false; }), Error);
  EXPECT_FALSE(w.lock.owns_lock());
  set_interrupt_check(nullptr);
}

TEST(Interrupt, ACheckIsOfItsThread) {
  set_interrupt_check(always);
  std::thread([] { EXPECT_GT(steps_for(60ms), 0); }).join();
  set_interrupt_check(nullptr);
}

}  // namespace
}  // namespace tensorcraft
