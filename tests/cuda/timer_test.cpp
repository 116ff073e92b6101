// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/timer.hpp"

#include "tensorcraft/core/error.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

using test::FakeDriver;

TEST(EventTimer, IsTheTimeBetweenStartAndStop) {
  FakeDriver fake;
  const Stream stream;
  {
    EventTimer timer(stream);
    fake.clock_ms += 5;
    timer.start();
    fake.clock_ms += 3;
    EXPECT_EQ(timer.stop(), 3);
    timer.start();
    EXPECT_EQ(timer.stop(), 0);
  }
  EXPECT_EQ(fake.events, 0);
}

TEST(EventTimer, MustBeStarted) {
  FakeDriver fake;
  EventTimer timer{StreamRef()};
  EXPECT_THROW(timer.stop(), Error);
  timer.start();
  timer.stop();
  EXPECT_THROW(timer.stop(), Error);
}

TEST(EventTimer, ThrowsWhatTheWorkFailedWith) {
  FakeDriver fake;
  EventTimer timer{StreamRef()};
  timer.start();
  fake.failing["cuEventSynchronize"] = 719;
  EXPECT_THROW(timer.stop(), Error);
}

}  // namespace
}  // namespace tensorcraft
