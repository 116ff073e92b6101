// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/profiled_range.hpp"

#include "tensorcraft/core/error.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

namespace tensorcraft::cuda {
namespace {

TEST(ProfiledRange, BeginsAndEndsInTheDevicesContext) {
  test::FakeDriver driver;
  {
    const ProfiledRange range(0);
    EXPECT_EQ(driver.calls["cuProfilerStart"], 1);
    EXPECT_EQ(driver.calls["cuProfilerStop"], 0);
  }
  EXPECT_EQ(driver.calls["cuProfilerStop"], 1);
  EXPECT_EQ(test::FakeDriver::current_context(), nullptr);
}

TEST(ProfiledRange, WithoutAProfilerItDoesNothing) {
  test::FakeDriver driver({test::FakeGpu{}}, 13000,
                          {{"cuProfilerStart", 5}, {"cuProfilerStop", 5}});
  EXPECT_NO_THROW(const ProfiledRange range(0));
}

TEST(ProfiledRange, OfADeviceThatIsNotThere) {
  test::FakeDriver driver;
  EXPECT_THROW(const ProfiledRange range(7), Error);
}

}  // namespace
}  // namespace tensorcraft::cuda
