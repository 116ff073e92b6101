// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/memory/pool.hpp"

#include "tests/support/expect_error.hpp"
#include "tests/support/simulated_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <thread>
#include <vector>

namespace tensorcraft {
namespace {

using test::SimulatedDevice;
using test::wrong_sums;

constexpr size_t kKiB = 1024, kMiB = 1024 * kKiB;
const StreamRef kA = SimulatedDevice::stream(1), kB = SimulatedDevice::stream(2);

TEST(MemoryPool, ReusesABlockOnItsStreamWithoutADriverCallOrAWait) {
  SimulatedDevice device;
  MemoryPool pool(device.handle());
  const Block first = pool.allocate(1000, kA);
  device.enqueue(kA, [] {});  // still pending
  pool.free(first.data, kA);
  EXPECT_EQ(pool.allocate(1000, kA).data, first.data);
  EXPECT_EQ(device.takes, 1);
  EXPECT_EQ(device.waits, 0);
  const AllocatorStatistics now = pool.statistics();
  EXPECT_EQ(now.driver_allocations, 1);
  EXPECT_EQ(now.reuses, 1);
  EXPECT_EQ(now.allocations, 2);
  EXPECT_EQ(wrong_sums(now), "");
}

TEST(MemoryPool, GivesAnotherStreamItsOwnMemoryWhileThereIsRoom) {
  SimulatedDevice device;
  MemoryPool pool(device.handle());
  const Block first = pool.allocate(2 * kMiB, kA);
  device.enqueue(kA, [] {});
  pool.free(first.data, kA);
  EXPECT_NE(pool.allocate(2 * kMiB, kB).data, first.data);
  EXPECT_EQ(device.waits, 0);
}

TEST(MemoryPool, GivesAnotherStreamWhatIsDoneWithoutAWait) {
  SimulatedDevice device;
  MemoryPool pool(device.handle());
  const Block first = pool.allocate(2 * kMiB, kA);
  device.enqueue(kA, [] {});
  pool.free(first.data, kA);
  pool.trim();  // marks the stream and waits for it
  const Block second = pool.allocate(2 * kMiB, kA);
  pool.free(second.data, kA);
  EXPECT_EQ(device.takes, 2);
}

TEST(MemoryPool, WaitsForAnotherStreamBeforeItFails) {
  SimulatedDevice device(2 * kMiB);
  MemoryPool pool(device.handle());
  const Block first = pool.allocate(2 * kMiB, kA);
  bool done = false, seen = false;
  device.enqueue(kA, [&] { done = true; });
  pool.free(first.data, kA);
  EXPECT_EQ(pool.allocate(kMiB, kB).data, first.data);
  EXPECT_EQ(device.waits, 1);
  device.enqueue(kB, [&] { seen = done; });
  device.run(kB);
  EXPECT_TRUE(seen);
}

TEST(MemoryPool, WhatAnotherStreamRecordedIsWaitedFor) {
  SimulatedDevice device(2 * kMiB);
  MemoryPool pool(device.handle());
  const Block first = pool.allocate(2 * kMiB, kA);
  pool.record(first.data, kB);
  int order = 0, of_b = 0, of_a = 0;
  device.enqueue(kB, [&] { of_b = ++order; });
  pool.free(first.data, kA);
  EXPECT_EQ(pool.allocate(2 * kMiB, kA).data, first.data);
  device.enqueue(kA, [&] { of_a = ++order; });
  device.run(kA);
  EXPECT_EQ(of_b, 1);
  EXPECT_EQ(of_a, 2);
}

TEST(MemoryPool, QuotaIsOfUsedAndCached) {
  SimulatedDevice device;
  MemoryPool pool(device.handle(), {.quota = kMiB});
  const Block a = pool.allocate(512 * kKiB, kA);
  test::expect_error(
      ErrorKind::out_of_memory, [&] { pool.allocate(513 * kKiB, kA); },
      "Memory pool quota exceeded: requested 525312 bytes, used 524288, quota 1048576\n  free "
      "memory of the simulated device, use smaller batches, or raise the quota of its pool");
  EXPECT_EQ(pool.statistics().used, int64_t(512 * kKiB));
  pool.free(a.data, kA);
  EXPECT_EQ(pool.allocate(kMiB, kA).bytes, kMiB);
  EXPECT_EQ(pool.statistics().available, 0);
}

TEST(MemoryPool, AQuotaThatIsFreeInPiecesIsSaidToBe) {
  SimulatedDevice device;
  MemoryPool pool(device.handle(), {.quota = 4 * kMiB});
  std::vector<Block> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(pool.allocate(kMiB, kA));
  pool.free(blocks[0].data, kA);
  pool.free(blocks[2].data, kA);
  test::expect_error(
      ErrorKind::out_of_memory, [&] { pool.allocate(2 * kMiB, kA); },
      "Memory pool quota exceeded: requested 2097152 bytes, used 2097152, quota 4194304\n  of the "
      "2097152 bytes that are free the largest run is 1048576 (fragmentation 50 %), as blocks in "
      "use lie between; allocate the large blocks first, and free those that lie beside each "
      "other\n  free memory of the simulated device, use smaller batches, or raise the quota of "
      "its pool");
  pool.free(blocks[1].data, kA);
  EXPECT_EQ(pool.allocate(2 * kMiB, kA).bytes, 2 * kMiB);
}

TEST(MemoryPool, r05_cached_within_quota) {
  SimulatedDevice device(size_t(64) << 30, false);
  MemoryPool pool(device.handle(), {.quota = size_t(1) << 30});
  for (size_t bytes = 256; bytes <= (size_t(1) << 30); bytes = memory::class_bytes(bytes + 1)) {
    const Block block = pool.allocate(bytes, kA);
    ASSERT_EQ(wrong_sums(pool.statistics()), "") << bytes;
    pool.free(block.data, kA);
    ASSERT_EQ(wrong_sums(pool.statistics()), "") << bytes;
  }
  EXPECT_EQ(device.bytes_taken(), size_t(pool.statistics().reserved));
}

TEST(MemoryPool, TrimsAndTriesOnceMoreWhenTheDeviceIsFull) {
  SimulatedDevice device(16 * kMiB);
  MemoryPool pool(device.handle());
  std::vector<Block> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(pool.allocate(2 * kMiB, i % 2 ? kA : kB));
  for (size_t i = 0; i < 8; ++i) pool.free(blocks[i].data, i % 2 ? kA : kB);
  EXPECT_EQ(device.bytes_taken(), 16 * kMiB);
  EXPECT_NO_THROW(pool.allocate(16 * kMiB, kA));
  EXPECT_EQ(device.bytes_taken(), 16 * kMiB);
  test::expect_error(
      ErrorKind::out_of_memory, [&] { pool.allocate(kMiB, kA); },
      "out of memory: 1048576 bytes were asked for on the simulated device, where 0 of 16777216 "
      "bytes are free; free tensors or use smaller batches");
}

TEST(MemoryPool, SaysWhatTheDeviceHasWhenThatIsFull) {
  SimulatedDevice device(4 * kMiB);
  MemoryPool pool(device.handle(), {.quota = 64 * kMiB});
  test::expect_error(
      ErrorKind::out_of_memory, [&] { pool.allocate(8 * kMiB, kA); },
      "out of memory: 8388608 bytes were asked for on the simulated device, where 4194304 of "
      "4194304 bytes are free; free tensors or use smaller batches");
  EXPECT_EQ(pool.statistics().reserved, 0);
}

TEST(MemoryPool, RefusesWhatIsNoBlockInUse) {
  SimulatedDevice device;
  MemoryPool pool(device.handle());
  const Block block = pool.allocate(512, kA);
  pool.free(block.data, kA);
  int other = 0;
  const AllocatorStatistics before = pool.statistics();
  for (void* const data : {block.data, static_cast<void*>(&other)}) {
    test::expect_error(
        ErrorKind::value, [&] { pool.free(data, kA); },
        join("free: ", data, " is no block in use of the pool of the simulated device; it was ",
             "freed before, or comes from elsewhere"));
    EXPECT_THROW(pool.record(data, kA), Error);
  }
  pool.free(nullptr, kA);
  pool.record(nullptr, kA);
  pool.deallocate({block.data, 512}, kA);  // logged
  EXPECT_EQ(pool.statistics().used, before.used);
  EXPECT_EQ(pool.statistics().live_blocks, 0);
}

TEST(MemoryPool, TrimsTheMarksOfAStreamThatGotNoMemory) {
  SimulatedDevice device;
  MemoryPool pool(device.handle(), {.quota = kMiB});
  EXPECT_THROW(pool.allocate(2 * kMiB, kA), Error);
  pool.stream_ends(kA);
  EXPECT_EQ(device.marks, 1);
  pool.trim();
  EXPECT_EQ(device.marks, 0);
}

TEST(MemoryPool, ClearKeepsWhatIsInUse) {
  SimulatedDevice device;
  MemoryPool pool(device.handle());
  const Block kept = pool.allocate(3 * kMiB, kA), gone = pool.allocate(5 * kMiB, kA);
  pool.free(gone.data, kA);
  pool.clear();
  EXPECT_EQ(device.bytes_taken(), size_t(pool.statistics().reserved));
  EXPECT_EQ(pool.statistics().used, int64_t(3 * kMiB));
  pool.free(kept.data, kA);
  EXPECT_EQ(pool.trim(), size_t(4 * kMiB));
  EXPECT_EQ(device.bytes_taken(), 0u);
  EXPECT_EQ(device.marks, 0);
}

TEST(MemoryPool, ItsEndGivesAllBack) {
  SimulatedDevice device;
  {
    MemoryPool pool(device.handle());
    for (int i = 0; i < 10; ++i) pool.free(pool.allocate(kMiB << i % 4, kA).data, kA);
  }
  EXPECT_EQ(device.bytes_taken(), 0u);
  EXPECT_EQ(device.marks, 0);
}

TEST(MemoryPool, SetQuotaTrimsAndRefusesLessThanIsInUse) {
  SimulatedDevice device;
  MemoryPool pool(device.handle());
  const Block kept = pool.allocate(4 * kMiB, kA);
  pool.free(pool.allocate(8 * kMiB, kA).data, kA);
  pool.set_quota(4 * kMiB);
  EXPECT_EQ(pool.statistics().reserved, int64_t(4 * kMiB));
  test::expect_error(
      ErrorKind::value, [&] { pool.set_quota(kMiB); },
      "set_quota: 1048576 bytes are less than the 4194304 that the simulated device has in use, or "
      "between what is; free or evict blocks first");
  EXPECT_EQ(pool.statistics().quota, int64_t(4 * kMiB));
  pool.set_quota(0);
  EXPECT_EQ(pool.statistics().quota, int64_t(1) << 30);  // the device's
  pool.free(kept.data, kA);
}

TEST(MemoryPool, AStreamThatEndsLeavesItsMemoryToOthers) {
  SimulatedDevice device(2 * kMiB);
  MemoryPool pool(device.handle());
  const Block block = pool.allocate(2 * kMiB, kA);
  bool done = false, seen = false;
  device.enqueue(kA, [&] { done = true; });
  pool.free(block.data, kA);
  pool.stream_ends(kA);
  device.replace(kA);  // of the same handle
  ASSERT_EQ(pool.allocate(2 * kMiB, kA).data, block.data);
  device.enqueue(kA, [&] { seen = done; });
  device.run_all();
  EXPECT_TRUE(seen);
  EXPECT_EQ(device.waits, 1);
}

TEST(MemoryPool, EveryPoolHearsThatAStreamEnds) {
  SimulatedDevice device(2 * kMiB), other(2 * kMiB);
  MemoryPool pool(device.handle()), second(other.handle());
  {
    const MemoryPool gone(other.handle());
  }
  const Block block = pool.allocate(2 * kMiB, kA), own = second.allocate(2 * kMiB, kA);
  for (SimulatedDevice* const d : {&device, &other}) d->enqueue(kA, [] {});
  pool.free(block.data, kA);
  second.free(own.data, kA);
  MemoryPool::stream_ends_everywhere(kA);
  device.replace(kA);
  other.replace(kA);
  EXPECT_EQ(pool.allocate(2 * kMiB, kA).data, block.data);
  EXPECT_EQ(second.allocate(2 * kMiB, kA).data, own.data);
  EXPECT_EQ(device.waits, 1);  // of another stream
  EXPECT_EQ(other.waits, 1);
}

TEST(MemoryPool, SnapshotShowsEveryPiece) {
  SimulatedDevice device;
  MemoryPool pool(device.handle());
  const Block a = pool.allocate(kMiB, kA), b = pool.allocate(256 * kKiB, kA);
  pool.free(a.data, kA);
  const std::vector<PoolPiece> pieces = pool.snapshot();
  ASSERT_EQ(pieces.size(), 3u);
  size_t bytes = 0;
  for (const PoolPiece& piece : pieces) {
    EXPECT_EQ(piece.segment, a.data);
    EXPECT_EQ(piece.free, piece.data != b.data);
    bytes += piece.bytes;
  }
  EXPECT_EQ(bytes, size_t(pool.statistics().reserved));
}

// Every call of the device fails once, in turn: each ends in a typed error with the sums as they
// were, or in a block; and the next call works.
TEST(MemoryPool, ADeviceThatRefusesIsATypedErrorThatChangesNothing) {
  for (long k = 1; k <= 200; ++k) {
    SimulatedDevice device(24 * kMiB);
    MemoryPool host(device.handle(), {.quota = 16 * kMiB});
    std::vector<std::pair<Block, StreamRef>> live;
    MemoryPool pool(device.handle(), {.quota = 6 * kMiB, .host = &host});
    std::vector<BlockId> movable;
    std::mt19937 random{unsigned(k)};
    device.fail_at(k, k % 3 ? 0 : k);
    for (int step = 0; step < 60; ++step) {
      const AllocatorStatistics before = pool.statistics();
      const StreamRef stream = random() % 2 ? kA : kB;
      try {
        switch (random() % 5) {
          case 0:
          case 1:
            live.emplace_back(pool.allocate(size_t(1) << (8 + random() % 13), stream), stream);
            break;
          case 2:
            movable.push_back(pool.create(kMiB, stream));
            break;
          case 3:
            if (movable.empty()) break;
            pool.pin(movable.front(), stream);
            pool.unpin(movable.front(), stream);
            std::ranges::rotate(movable, movable.begin() + 1);
            break;
          default:
            if (live.empty()) break;
            pool.free(live.back().first.data, live.back().second);
            live.pop_back();
        }
      } catch (const Error& error) {
        const AllocatorStatistics after = pool.statistics();
        EXPECT_EQ(after.live_blocks + after.evicted_blocks,
                  before.live_blocks + before.evicted_blocks)
            << error.what();
      }
      ASSERT_EQ(wrong_sums(pool.statistics()), "") << k;
      device.step(random);
    }
    device.fail_at(0);
    for (const auto& [block, stream] : live) pool.free(block.data, stream);
    EXPECT_EQ(pool.statistics().live_blocks + pool.statistics().evicted_blocks,
              int64_t(movable.size()));
    device.run_all();
    EXPECT_EQ(device.damage, "");
  }
}

}  // namespace
}  // namespace tensorcraft
