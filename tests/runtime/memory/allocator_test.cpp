// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/memory/allocator.hpp"

#include "tests/support/expect_error.hpp"

#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

TEST(HostAllocator, AlignsBlocksAndCountsThem) {
  Allocator& host = allocator(Device::cpu());
  const AllocatorStatistics before = host.statistics();
  const Block block = host.allocate(100, {});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block.data) % 256, 0u);
  EXPECT_EQ(block.bytes, 100u);
  EXPECT_EQ(host.statistics().live_blocks, before.live_blocks + 1);
  EXPECT_EQ(host.statistics().live_bytes, before.live_bytes + 100);
  host.deallocate(block, {});
  EXPECT_EQ(host.statistics().live_blocks, before.live_blocks);
  EXPECT_EQ(host.statistics().live_bytes, before.live_bytes);
}

TEST(HostAllocator, GivesNothingForNoBytes) {
  Allocator& host = allocator(Device::cpu());
  const int64_t before = host.statistics().live_blocks;
  const Block block = host.allocate(0, {});
  EXPECT_EQ(block.data, nullptr);
  EXPECT_EQ(host.statistics().live_blocks, before);
  host.deallocate(block, {});
  EXPECT_EQ(host.statistics().live_blocks, before);
}

TEST(HostAllocator, SaysHowMuchThereWasNoRoomFor) {
  Allocator& host = allocator(Device::cpu());
  const int64_t before = host.statistics().live_bytes;
  const size_t most = std::numeric_limits<size_t>::max();
  for (const size_t bytes : {most, most / 2})
    test::expect_error(
        ErrorKind::out_of_memory, [&] { host.allocate(bytes, {}); },
        join("out of host memory: ", bytes, " bytes were asked for"));
  EXPECT_EQ(host.statistics().live_bytes, before);
}

}  // namespace
}  // namespace tensorcraft
