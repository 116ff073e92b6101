// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/runtime/memory/allocator.hpp"
#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <vector>

// Every source of memory promises this: pools over any device, the driver's own memory, the host's.
namespace tensorcraft::test {

// A source with two streams of its device.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  virtual Allocator& allocator() = 0;
  virtual StreamRef stream(int index) = 0;
};

struct NamedSource {
  std::string name;
  std::function<std::unique_ptr<MemorySource>()> make;
};

inline std::ostream& operator<<(std::ostream& out, const NamedSource& source) {
  return out << source.name;
}

class AllocatorContract : public testing::TestWithParam<NamedSource> {
 protected:
  void SetUp() override {
    source_ = GetParam().make();
    if (!source_) GTEST_SKIP() << "there is no such device";
  }
  Allocator& allocator() { return source_->allocator(); }
  StreamRef stream(int index = 0) { return source_->stream(index); }
  std::unique_ptr<MemorySource> source_;
};

TEST_P(AllocatorContract, BlocksAreAlignedApartAndCounted) {
  const AllocatorStatistics before = allocator().statistics();
  std::map<uintptr_t, size_t> blocks;
  int64_t bytes = 0;
  for (const size_t size : {1u, 255u, 256u, 257u, 4096u, 4097u, 1u << 20, (1u << 20) + 1}) {
    const Block block = allocator().allocate(size, stream());
    EXPECT_EQ(block.bytes, size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block.data) % 256, 0u) << size;
    blocks[reinterpret_cast<uintptr_t>(block.data)] = size;
    bytes += int64_t(size);
  }
  uintptr_t end = 0;
  for (const auto& [address, size] : blocks) {
    EXPECT_GE(address, end) << size;
    end = address + size;
  }
  AllocatorStatistics now = allocator().statistics();
  EXPECT_EQ(now.live_blocks, before.live_blocks + int64_t(blocks.size()));
  EXPECT_EQ(now.live_bytes, before.live_bytes + bytes);
  EXPECT_EQ(now.reserved, now.used + now.cached);
  for (const auto& [address, size] : blocks)
    allocator().deallocate({reinterpret_cast<void*>(address), size}, stream());
  now = allocator().statistics();
  EXPECT_EQ(now.live_blocks, before.live_blocks);
  EXPECT_EQ(now.live_bytes, before.live_bytes);
  EXPECT_EQ(now.allocations, before.allocations + int64_t(blocks.size()));
}

TEST_P(AllocatorContract, NoBytesAreNoBlock) {
  const AllocatorStatistics before = allocator().statistics();
  const Block block = allocator().allocate(0, stream());
  EXPECT_EQ(block.data, nullptr);
  allocator().deallocate(block, stream());
  EXPECT_EQ(allocator().statistics().live_blocks, before.live_blocks);
}

TEST_P(AllocatorContract, TooMuchIsOutOfMemoryAndChangesNothing) {
  const AllocatorStatistics before = allocator().statistics();
  const size_t most = std::numeric_limits<size_t>::max();
  for (const size_t bytes : {most, most - 255, most / 2, size_t(1) << 60}) {
    try {
      allocator().allocate(bytes, stream());
      ADD_FAILURE() << bytes << " bytes were given";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::out_of_memory) << error.what();
    }
  }
  EXPECT_EQ(allocator().statistics().live_bytes, before.live_bytes);
  EXPECT_EQ(allocator().statistics().used, before.used);
}

TEST_P(AllocatorContract, BlocksOfRandomLivesNeverOverlap) {
  std::mt19937 random(7);
  struct Live {
    size_t bytes;
    StreamRef home;
  };
  std::map<uintptr_t, Live> live;
  const AllocatorStatistics before = allocator().statistics();
  for (int step = 0; step < 2000; ++step) {
    if (live.empty() || random() % 5 < 3) {
      const size_t bytes = size_t(1) << random() % 17;
      const StreamRef home = stream(int(random() % 2));
      const Block block = allocator().allocate(bytes + random() % bytes, home);
      const auto address = reinterpret_cast<uintptr_t>(block.data);
      const auto next = live.lower_bound(address);
      ASSERT_TRUE(next == live.end() || address + block.bytes <= next->first);
      ASSERT_TRUE(next == live.begin() ||
                  std::prev(next)->first + std::prev(next)->second.bytes <= address);
      live[address] = {block.bytes, home};
    } else {
      const auto it = std::next(live.begin(), long(random() % live.size()));
      void* const data = reinterpret_cast<void*>(it->first);
      if (random() % 3 == 0) allocator().record(data, stream(1));
      allocator().deallocate({data, it->second.bytes}, it->second.home);
      live.erase(it);
    }
    const AllocatorStatistics now = allocator().statistics();
    ASSERT_EQ(now.reserved, now.used + now.cached);
    ASSERT_EQ(now.live_blocks, before.live_blocks + int64_t(live.size()));
  }
  for (const auto& [address, block] : live)
    allocator().deallocate({reinterpret_cast<void*>(address), block.bytes}, block.home);
  allocator().trim();
  EXPECT_EQ(allocator().statistics().live_bytes, before.live_bytes);
}

inline std::string name_of_source(const testing::TestParamInfo<NamedSource>& info) {
  return info.param.name;
}

}  // namespace tensorcraft::test
