// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/memory/pinned.hpp"

#include "tensorcraft/cuda/memory.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>

namespace tensorcraft {
namespace {

TEST(PinnedBuffer, IsPageLockedAndGoesBackToItsPool) {
  test::FakeDriver driver;
  const Stream stream;
  const void* first = nullptr;
  {
    PinnedBuffer buffer(1000, stream);
    EXPECT_EQ(buffer.bytes(), 1000u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 256, 0u);
    EXPECT_EQ(driver.pinned, 1);
    EXPECT_EQ(pinned_pool().statistics().live_blocks, 1);
    PinnedBuffer moved = std::move(buffer), other;
    other = std::move(moved);
    first = other.data();
    EXPECT_NE(first, nullptr);
    EXPECT_EQ(buffer.data(), nullptr);  // NOLINT(bugprone-use-after-move): what is tested
  }
  EXPECT_EQ(pinned_pool().statistics().live_blocks, 0);
  EXPECT_EQ(PinnedBuffer(1000, stream).data(), first);
  pinned_pool().trim();
  EXPECT_EQ(driver.pinned, 0);
}

// A copy reads its source when it runs.
TEST(PinnedBuffer, IsNotWrittenByOthersBeforeItsCopyRan) {
  test::FakeDriver driver;
  driver.deferred = true;
  const Stream stream, other;
  void* const device = cuda::allocate(64, stream);
  {
    PinnedBuffer source(64, stream);
    std::memset(source.data(), 1, 64);
    cuda::copy_async(device, source.data(), 64, stream);
  }
  const PinnedBuffer next(64, other);
  std::memset(next.data(), 2, 64);
  unsigned char got[64] = {};
  cuda::copy_async(got, device, 64, stream);
  stream.ref().synchronize();
  EXPECT_EQ(got[63], 1);
  cuda::deallocate(device, stream);
}

TEST(PinnedPool, IsOneOfEachDeviceWithHalfOfTheMachinesMemory) {
  const test::FakeDriver driver({test::FakeGpu{}, test::FakeGpu{}});
  EXPECT_NE(&pinned_pool(0), &pinned_pool(1));
  EXPECT_EQ(&pinned_pool(0), &pinned_pool(0));
  EXPECT_GT(pinned_pool().statistics().quota, 1 << 20);
  EXPECT_THROW(pinned_pool(2), Error);
}

}  // namespace
}  // namespace tensorcraft
