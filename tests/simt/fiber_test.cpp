// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/simt/fiber.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace tensorcraft::simt {
namespace {

struct Relay {
  Fiber main, first, second;
  std::string log;
};

void run_first(void* argument) {
  auto& r = *static_cast<Relay*>(argument);
  r.log += "a";
  switch_fiber(r.first, r.second);
  r.log += "c";
  leave_fiber(r.first, r.main);
}
void run_second(void* argument) {
  auto& r = *static_cast<Relay*>(argument);
  r.log += "b";
  switch_fiber(r.second, r.first);
  r.log += "e";
  leave_fiber(r.second, r.main);
}

void prepare(Relay& r, const Stacks& stacks) {
  r.first = {.stack = stacks.at(0), .stack_bytes = stacks.bytes()};
  r.second = {.stack = stacks.at(1), .stack_bytes = stacks.bytes()};
  prepare_fiber(r.first, run_first, &r);
  prepare_fiber(r.second, run_second, &r);
}

TEST(SimtFiber, SwitchesDirectlyFromOneToAnotherAndBack) {
  Stacks stacks(2, 64 * 1024);
  for (int round = 0; round < 3; ++round) {
    Relay r;
    prepare(r, stacks);
    switch_fiber(r.main, r.first);
    r.log += "d";
    switch_fiber(r.main, r.second);
    EXPECT_EQ(r.log, "abcde");
    stacks.reset();
  }
}

TEST(SimtFiberDeathTest, APageBelowEachStackIsForbidden) {
  Stacks stacks(2, 64 * 1024);
  std::memset(stacks.at(1), 1, stacks.bytes());
  EXPECT_DEATH(std::memset(stacks.at(1) - 1, 1, 1), "");
  EXPECT_DEATH(std::memset(stacks.at(0) - 1, 1, 1), "");
}

TEST(SimtFiber, StacksAreUsedAgain) {
  auto stacks = borrow_stacks(5, 128 * 1024);
  char* const first = stacks->at(0);
  return_stacks(std::move(stacks));
  stacks = borrow_stacks(3, 128 * 1024);
  EXPECT_EQ(stacks->at(0), first);
  EXPECT_GE(stacks->count(), 3u);
  return_stacks(std::move(stacks));
  EXPECT_NE(borrow_stacks(5, 256 * 1024)->at(0), first);
}

}  // namespace
}  // namespace tensorcraft::simt
