// SPDX-License-Identifier: Apache-2.0
// The controller on a simulated device, whose streams run when the test says so.
#include "tensorcraft/runtime/dispatch/controller.hpp"

#include "tests/support/expect_error.hpp"
#include "tests/support/simulated_memory.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace tensorcraft::dispatch {
namespace {

using test::SimulatedDevice;

class ControllerTest : public testing::Test {
 protected:
  ControllerTest()
      : memory_(sim_.handle()), controller_([this](StreamRef) { return memory_->make_mark(); }) {}
  // Enqueues work that counts itself, and the launch of it.
  void launch(StreamRef stream) {
    const bool admitted = controller_.admit(stream);
    sim_.enqueue(stream, [this] { ++ran_; });
    controller_.launched(stream, admitted);
    const uint64_t waiting = ++made_ - ran_;
    most_ = std::max(most_, waiting);
  }
  Counts counts() {
    return controller_.counts([](StreamRef) { return true; });
  }
  static StreamRef stream(int number) { return SimulatedDevice::stream(uintptr_t(number)); }

  SimulatedDevice sim_;
  std::unique_ptr<memory::MemoryDevice> memory_;
  Controller controller_;
  uint64_t made_ = 0, most_ = 0;
  std::atomic<uint64_t> ran_ = 0;
};

TEST_F(ControllerTest, CountsWhatIsLaunchedAndWhatEnded) {
  for (int i = 0; i < 100; ++i) launch(stream(1));
  EXPECT_EQ(counts(), (Counts{.launched = 100, .in_flight = 100}));
  sim_.run_all();
  EXPECT_EQ(counts(), (Counts{.launched = 100, .completed = 100}));
  EXPECT_EQ(most_, 100u);  // there is no limit
}

TEST_F(ControllerTest, AMarkServesManyLaunches) {
  for (int i = 0; i < 1000; ++i) launch(stream(1));
  EXPECT_LE(sim_.marks, 1000 / 128 + 1);
  sim_.run_all();
  EXPECT_EQ(counts().completed, 1000u);
  const int64_t marks = sim_.marks;
  for (int i = 0; i < 1000; ++i) launch(stream(1));
  EXPECT_EQ(sim_.marks, marks);  // they are used again
}

TEST_F(ControllerTest, NoMoreThanTheLimitAreInFlight) {
  for (const int limit : {1, 2, 3, 8, 100}) {
    controller_.set_limit(stream(1), limit);
    EXPECT_EQ(controller_.limit(stream(1)), limit);
    most_ = 0;
    for (int i = 0; i < 500; ++i) launch(stream(1));
    EXPECT_LE(most_, uint64_t(limit));
    EXPECT_GE(most_, uint64_t(limit) * 3 / 4) << "the limit is not used up";
    sim_.run_all();
  }
  EXPECT_EQ(counts().completed, 2500u);
}

TEST_F(ControllerTest, AnotherStreamIsNotHeldUp) {
  controller_.set_limit(stream(1), 1);
  launch(stream(1));
  for (int i = 0; i < 50; ++i) launch(stream(2));
  EXPECT_EQ(ran_, 0u);
  launch(stream(1));
  EXPECT_EQ(ran_, 1u);
}

TEST_F(ControllerTest, ALimitThatGoesLetsAllThrough) {
  controller_.set_limit(stream(1), 2);
  EXPECT_TRUE(controller_.has_limits());
  controller_.set_limit(stream(1), 0);
  EXPECT_FALSE(controller_.has_limits());
  for (int i = 0; i < 10; ++i) launch(stream(1));
  EXPECT_EQ(ran_, 0u);
  test::expect_error(
      ErrorKind::value, [&] { controller_.set_limit(stream(1), -1); },
      "dispatch: a limit of -1 launches cannot be; give 1 or more, or 0 for none");
}

// A launch that was counted nowhere takes no place, and gives none back.
TEST_F(ControllerTest, ALimitThatComesDuringALaunchHoldsForTheNext) {
  const bool admitted = controller_.admit(stream(1));
  EXPECT_FALSE(admitted);
  controller_.set_limit(stream(1), 1);
  EXPECT_TRUE(controller_.admit(stream(1)));
  controller_.failed(stream(1), admitted);
  std::atomic<bool> is_through = false;
  std::jthread other([&] {
    EXPECT_TRUE(controller_.admit(stream(1)));
    is_through = true;
    controller_.failed(stream(1), true);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(is_through);
  controller_.failed(stream(1), true);
  other.join();
  EXPECT_TRUE(is_through);
}

TEST_F(ControllerTest, ARefusedLaunchGivesItsPlaceBack) {
  controller_.set_limit(stream(1), 1);
  controller_.admit(stream(1));
  controller_.failed(stream(1), true);
  launch(stream(1));
  controller_.note_cancelled();
  EXPECT_EQ(counts(), (Counts{.launched = 1, .failed = 1, .cancelled = 1, .in_flight = 1}));
}

TEST_F(ControllerTest, OneThreadWaitsForAnotherThatIsAboutToLaunch) {
  controller_.set_limit(stream(1), 1);
  controller_.admit(stream(1));
  std::atomic<bool> is_through = false;
  std::jthread other([&] {
    controller_.admit(stream(1));
    is_through = true;
    controller_.failed(stream(1), true);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(is_through);
  controller_.failed(stream(1), true);
  other.join();
  EXPECT_TRUE(is_through);
}

TEST_F(ControllerTest, MarksThatFailHoldNobodyUp) {
  controller_.set_limit(stream(1), 2);
  for (long n = 1; n < 30; ++n) {
    sim_.fail_at(n, 3);
    for (int i = 0; i < 20; ++i) launch(stream(1));
  }
  sim_.fail_at(0);
  sim_.run_all();
  const Counts now = counts();
  EXPECT_EQ(now.launched, 29u * 20);
  EXPECT_EQ(now.completed + now.failed, now.launched);
  EXPECT_EQ(now.in_flight, 0u);
}

TEST_F(ControllerTest, AStreamThatEndsTakesItsLimitAlong) {
  controller_.set_limit(stream(1), 1);
  launch(stream(1));
  controller_.stream_ends(stream(1));
  controller_.stream_ends(stream(2));
  EXPECT_EQ(controller_.limit(stream(1)), 0);
  EXPECT_EQ(counts(), (Counts{.launched = 1, .completed = 1}));
}

TEST_F(ControllerTest, ThreadsTogetherKeepTheLimit) {
  constexpr int kThreads = 4, kLaunches = 500;
  controller_.set_limit(stream(1), 5);
  std::atomic<int64_t> made = 0;
  std::atomic<bool> over = false;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < kLaunches; ++i) {
          controller_.admit(stream(1));
          sim_.enqueue(stream(1), [&] { ++ran_; });
          if (++made - int64_t(ran_) > 5) over = true;
          controller_.launched(stream(1), true);
        }
      });
  }
  EXPECT_FALSE(over);
  sim_.run_all();
  EXPECT_EQ(counts().completed, uint64_t(kThreads * kLaunches));
}

}  // namespace
}  // namespace tensorcraft::dispatch
