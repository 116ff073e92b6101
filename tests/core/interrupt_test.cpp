// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/interrupt.hpp"

#include "tensorcraft/core/error.hpp"

#include <gtest/gtest.h>

#include <chrono>
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

TEST(Interrupt, ACheckIsOfItsThread) {
  set_interrupt_check(always);
  std::thread([] { EXPECT_GT(steps_for(60ms), 0); }).join();
  set_interrupt_check(nullptr);
}

}  // namespace
}  // namespace tensorcraft
