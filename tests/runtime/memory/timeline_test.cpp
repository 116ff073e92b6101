// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/memory/timeline.hpp"

#include "tests/support/expect_error.hpp"
#include "tests/support/simulated_memory.hpp"

#include <gtest/gtest.h>

namespace tensorcraft::memory {
namespace {

using test::SimulatedDevice;

struct Rig {
  SimulatedDevice sim;
  std::unique_ptr<MemoryDevice> device = sim.handle();
  Timeline timeline{*device};
  StreamRef a = SimulatedDevice::stream(1), b = SimulatedDevice::stream(2);
  uint32_t lane(StreamRef stream) { return timeline.lane_of(stream, device->look(stream).id); }
};

TEST(Uses, KeepTheLatestOfEachLane) {
  Uses uses;
  add_use(uses, {1, 5});
  add_use(uses, {2, 1});
  add_use(uses, {1, 3});
  add_use(uses, {2, 4});
  EXPECT_EQ(uses, (Uses{{1, 5}, {2, 4}}));
}

TEST(Timeline, AsksTheDeviceOnlyForAnotherStream) {
  Rig rig;
  const uint32_t a = rig.lane(rig.a), b = rig.lane(rig.b);
  int done = 0;
  rig.sim.enqueue(rig.a, [&] { done = 1; });
  const Use use = rig.timeline.now(a);
  EXPECT_FALSE(rig.timeline.passed(use));
  rig.timeline.order(use, a);
  EXPECT_EQ(rig.sim.marks, 0);
  EXPECT_EQ(rig.sim.waits, 0);
  rig.timeline.order(use, b);
  rig.timeline.order(use, b);  // known
  EXPECT_EQ(rig.sim.waits, 1);
  int seen = -1;
  rig.sim.enqueue(rig.b, [&] { seen = done; });
  rig.sim.run(rig.b);
  EXPECT_EQ(seen, 1);
  rig.timeline.poll();
  EXPECT_TRUE(rig.timeline.passed(use));
}

TEST(Timeline, AMarkCoversWhatCameBeforeIt) {
  Rig rig;
  const uint32_t a = rig.lane(rig.a), b = rig.lane(rig.b);
  const Use first = rig.timeline.now(a);
  rig.timeline.close_all();
  rig.sim.enqueue(rig.a, [] {});
  const Use second = rig.timeline.now(a);
  EXPECT_GT(second.epoch, first.epoch);
  rig.timeline.order(second, b);
  EXPECT_TRUE(rig.timeline.can_order(first, b));
  rig.timeline.poll();
  EXPECT_TRUE(rig.timeline.passed(first));
  EXPECT_FALSE(rig.timeline.passed(second));
  EXPECT_TRUE(rig.timeline.wait(second));
  EXPECT_TRUE(rig.timeline.passed(second));
}

TEST(Timeline, MarksAStreamThatMayEndUnseenAtOnce) {
  Rig rig;
  rig.sim.streams_last = false;
  const uint32_t a = rig.lane(rig.a), b = rig.lane(rig.b);
  rig.sim.enqueue(rig.a, [] {});
  const Use use = rig.timeline.now(a);
  EXPECT_EQ(rig.sim.marks, 1);
  rig.sim.replace(rig.a);  // it is gone
  EXPECT_TRUE(rig.timeline.can_order(use, b));
  rig.timeline.order(use, b);
  EXPECT_EQ(rig.sim.waits, 1);
}

TEST(Timeline, AStreamOfTheSameHandleIsAnotherOne) {
  Rig rig;
  const uint32_t old = rig.lane(rig.a), b = rig.lane(rig.b);
  rig.sim.enqueue(rig.a, [] {});
  const Use use = rig.timeline.now(old);
  rig.timeline.end(rig.a);
  rig.sim.replace(rig.a);
  const uint32_t next = rig.lane(rig.a);
  EXPECT_NE(next, old);
  EXPECT_FALSE(rig.timeline.passed(use));
  rig.timeline.order(use, next);
  rig.timeline.order(use, b);
  EXPECT_EQ(rig.sim.waits, 2);
  rig.sim.run_all();
  rig.timeline.poll();
  EXPECT_TRUE(rig.timeline.passed(use));
  // The lane serves again, and what its old stream did stays done.
  rig.sim.replace(rig.b);
  EXPECT_EQ(rig.lane(rig.b), old);
  EXPECT_TRUE(rig.timeline.passed(use));
  EXPECT_FALSE(rig.timeline.passed(rig.timeline.now(old)));
}

// Else another stream would get the lane, and take the work for its own.
TEST(Timeline, AStreamThatEndsUnmarkedKeepsItsLane) {
  Rig rig;
  const uint32_t a = rig.lane(rig.a);
  rig.sim.enqueue(rig.a, [] {});
  const Use use = rig.timeline.now(a);
  rig.sim.fail_at(1, 1);  // and the second try
  rig.timeline.end(rig.a);
  EXPECT_EQ(rig.sim.failures, 2);
  rig.sim.fail_at(0);
  rig.sim.replace(rig.a);
  rig.timeline.poll();
  EXPECT_NE(rig.lane(rig.a), a);
  EXPECT_FALSE(rig.timeline.passed(use));
  EXPECT_FALSE(rig.timeline.can_order(use, rig.lane(rig.b)));
}

// A block that a stream used may go back long after that stream.
TEST(Timeline, NeverMarksAStreamThatIsGone) {
  Rig rig;
  const uint32_t a = rig.lane(rig.a), b = rig.lane(rig.b);
  rig.timeline.end(rig.a);
  rig.sim.run(rig.a);
  rig.timeline.poll();  // its work is done, another stream may have the lane
  rig.sim.fail_at(1, 1);
  rig.timeline.end(rig.b);  // unmarked
  rig.sim.fail_at(0);
  const int marks = rig.sim.marks;
  EXPECT_TRUE(rig.timeline.passed(rig.timeline.now(a)));
  EXPECT_FALSE(rig.timeline.passed(rig.timeline.now(b)));
  rig.timeline.poll();
  EXPECT_EQ(rig.sim.marks, marks);
  EXPECT_EQ(rig.lane(SimulatedDevice::stream(3)), a);
  EXPECT_NE(rig.lane(SimulatedDevice::stream(4)), a);  // it was handed out once
}

TEST(Timeline, ARefusalAtTheEndIsTriedOnceMore) {
  Rig rig;
  const Use use = rig.timeline.now(rig.lane(rig.a));
  rig.sim.fail_at(1);
  rig.timeline.end(rig.a);
  EXPECT_TRUE(rig.timeline.wait(use));
}

TEST(Timeline, WorkOnAStreamThatEndedIsWhatWasMarked) {
  Rig rig;
  const uint32_t a = rig.lane(rig.a);
  rig.timeline.end(rig.a);
  EXPECT_TRUE(rig.timeline.wait(rig.timeline.now(a)));
}

TEST(Timeline, NeverMarksAStreamThatIsRecorded) {
  Rig rig;
  const uint32_t a = rig.lane(rig.a), b = rig.lane(rig.b);
  const Use use = rig.timeline.now(a);
  rig.sim.begin_recording(rig.a);
  rig.timeline.close_all();
  EXPECT_FALSE(rig.timeline.can_order(use, b));
  EXPECT_FALSE(rig.timeline.wait(use));
  test::expect_error(
      ErrorKind::value, [&] { rig.timeline.order(use, b); },
      "memory is used by a stream that is recorded into a graph, or that ended unmarked; wait for "
      "that stream's work before another one uses the memory");
  rig.sim.end_recording(rig.a);
  rig.timeline.order(use, b);
  EXPECT_EQ(rig.sim.damage, "");
}

TEST(Timeline, SurvivesADeviceThatRefuses) {
  Rig rig;
  const uint32_t a = rig.lane(rig.a), b = rig.lane(rig.b);
  const Use use = rig.timeline.now(a);
  for (int call = 1; call <= 3; ++call) {
    rig.sim.fail_at(call);
    try {
      rig.timeline.order(use, b);
    } catch (const Error&) {
      EXPECT_EQ(rig.sim.waits, 0);
    }
  }
  rig.sim.fail_at(0);
  rig.timeline.order(use, b);
  EXPECT_EQ(rig.sim.waits, 1);
}

}  // namespace
}  // namespace tensorcraft::memory
