// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/memory/driver_allocator.hpp"

#include "tests/support/expect_error.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

namespace tensorcraft::memory {
namespace {

TEST(DriverAllocator, AsksTheDriverInEachCall) {
  test::FakeDriver driver;
  DriverAllocator source;
  const Stream stream;
  for (int i = 0; i < 3; ++i) source.deallocate(source.allocate(100, stream), stream);
  EXPECT_EQ(driver.calls["cuMemAllocAsync"], 3);
  EXPECT_EQ(driver.calls["cuMemFreeAsync"], 3);
  EXPECT_EQ(driver.last_free, stream.ref().handle());
  EXPECT_EQ(driver.blocks, 0);
}

TEST(DriverAllocator, FreesAfterTheStreamsThatWereRecorded) {
  test::FakeDriver driver;
  driver.deferred = true;
  DriverAllocator source;
  const Stream home, other;
  const Block block = source.allocate(100, home);
  source.record(block.data, other);
  source.deallocate(block, home);
  EXPECT_EQ(driver.calls["cuStreamWaitEvent"], 1);
  source.deallocate(block, home);  // logged
  EXPECT_EQ(driver.calls["cuMemFreeAsync"], 1);
  EXPECT_THROW(source.record(block.data, other), Error);
  home.ref().synchronize();
  EXPECT_EQ(driver.damage(), "");
}

}  // namespace
}  // namespace tensorcraft::memory
