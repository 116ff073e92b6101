// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/memory/host_memory_device.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/runtime/memory/pool.hpp"

#include <cstring>
#include <string_view>

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

TEST(HostMemoryDevice, GivesAlignedMemoryAndKnowsItsSize) {
  const auto device = memory::host_memory_device();
  void* const memory = device->take(1000);
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 256, 0u);
  device->fill(memory, 7, 1000, {});
  char copy[1000];
  device->copy(copy, memory, 1000, {});
  EXPECT_EQ(copy[0] + copy[999], 14);
  device->give(memory);
  EXPECT_EQ(device->take(size_t(1) << 60), nullptr);
  EXPECT_GT(device->total_bytes(), device->free_bytes());
  EXPECT_STREQ(device->name(), "cpu");
}

// Freed memory serves the next call at once, whatever stream either names; a quota moves blocks.
TEST(HostMemoryDevice, PoolsReuseAndEvictOverIt) {
  MemoryPool pool(memory::host_memory_device(),
                  {.quota = 2 << 20, .host = &allocator(Device::cpu())});
  const Block block = pool.allocate(1 << 20, {});
  pool.free(block.data, {});
  EXPECT_EQ(pool.allocate(1 << 20, {}).data, block.data);
  pool.free(block.data, {});
  const BlockId first = pool.create(1 << 20, {});
  std::memset(pool.pin(first, {}), 5, 1 << 20);
  pool.unpin(first, {});
  pool.create(1 << 20, {});
  const BlockId third = pool.create(1 << 20, {});
  EXPECT_TRUE(pool.block(first).on_host());
  EXPECT_TRUE(pool.block(third).on_gpu());
  const auto* bytes = static_cast<const char*>(pool.pin(first, {}));
  EXPECT_EQ(bytes[0] + bytes[(1 << 20) - 1], 10);
  EXPECT_EQ(pool.statistics().evictions, 2);
}

}  // namespace
}  // namespace tensorcraft
