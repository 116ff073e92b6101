// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/first_made.hpp"

#include "tests/support/forked_child.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <array>
#include <atomic>
#include <latch>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace tensorcraft {
namespace {

constexpr int kThreads = 8;

// Counts the objects of one test.
template <int kTest>
struct Counted {
  Counted() { ++made; }
  ~Counted() { ++gone; }
  Counted(const Counted&) = delete;

  static inline std::atomic<int> made = 0, gone = 0;
};

TEST(FirstMade, IsMadeAtItsFirstUse) {
  static constinit FirstMade<Counted<0>> one;
  EXPECT_EQ(Counted<0>::made, 0);
  const Counted<0>* const first = &*one;
  EXPECT_EQ(&*one, first);
  EXPECT_EQ(Counted<0>::made, 1);
  EXPECT_EQ(Counted<0>::gone, 0);
}

std::latch all_make(kThreads);

// Each thread makes one, as none goes on before all of them do.
Counted<1>* make_together() {
  all_make.arrive_and_wait();
  return new Counted<1>;
}

TEST(FirstMade, OneStaysOfThoseThatThreadsMakeTogether) {
  static constinit FirstMade<Counted<1>, make_together> one;
  std::array<const Counted<1>*, kThreads> seen{};
  {
    std::vector<std::jthread> threads;
    for (const auto*& by_thread : seen) threads.emplace_back([&] { by_thread = &*one; });
  }
  for (const auto* by_thread : seen) EXPECT_EQ(by_thread, &*one);
  EXPECT_EQ(Counted<1>::made, kThreads);
  EXPECT_EQ(Counted<1>::gone, kThreads - 1);
}

bool throws = true;

int* make_or_throw() {
  if (std::exchange(throws, false)) throw std::runtime_error("once");
  return new int(3);
}

TEST(FirstMade, IsMadeByTheNextCallIfOneThrows) {
  static constinit FirstMade<const int, make_or_throw> one;
  EXPECT_THROW(*one, std::runtime_error);
  EXPECT_EQ(*one, 3);
}

TEST(FirstMade, TakesALambda) {
  static constinit FirstMade<const int, [] { return new int(5); }> one;
  EXPECT_EQ(*one, 5);
}

const pid_t parent = getpid();
std::atomic<bool> is_making = false, may_end = false;

// Does not end in the parent before it may.
int* make_for_long() {
  if (getpid() == parent) {
    is_making = true;
    is_making.notify_one();
    may_end.wait(false);
  }
  return new int(7);
}

TEST(FirstMade, IsMadeInAChildOfAForkWhileAnotherThreadMakesIt) {
  if (!kForksWork) GTEST_SKIP() << "ThreadSanitizer";
  static constinit FirstMade<const int, make_for_long> one;
  std::jthread other([] { *one; });
  is_making.wait(false);
  EXPECT_EQ(test::in_child([] { return *one; }), 7);
  may_end = true;
  may_end.notify_one();
  other.join();
  EXPECT_EQ(*one, 7);
}

}  // namespace
}  // namespace tensorcraft
