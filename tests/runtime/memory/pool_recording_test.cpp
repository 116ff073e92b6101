// SPDX-License-Identifier: Apache-2.0
// Blocks that graphs are recorded with.
#include "tensorcraft/runtime/memory/pool.hpp"

#include "tests/support/expect_error.hpp"
#include "tests/support/simulated_memory.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace tensorcraft {
namespace {

using test::SimulatedDevice;
using test::wrong_sums;

constexpr size_t kMiB = size_t(1) << 20;
const StreamRef kA = SimulatedDevice::stream(1), kB = SimulatedDevice::stream(2);

TEST(Recording, ABlockIsTheGraphsUntilThatIsGone) {
  SimulatedDevice device;
  MemoryPool pool(device.handle());
  device.begin_recording(kA);
  const Block block = pool.allocate(kMiB, kA);
  pool.free(block.data, kA);
  const uint64_t graph = device.end_recording(kA);
  EXPECT_EQ(pool.statistics().captured, int64_t(kMiB));
  EXPECT_EQ(pool.statistics().live_blocks, 0);
  for (int i = 0; i < 8; ++i) EXPECT_NE(pool.allocate(kMiB, i % 2 ? kA : kB).data, block.data);
  EXPECT_EQ(pool.trim(), 0u);
  device.destroy(graph);
  EXPECT_EQ(pool.allocate(kMiB, kB).data, block.data);  // idle: no wait
  EXPECT_EQ(device.waits, 0);
  EXPECT_EQ(pool.statistics().captured, 0);
  EXPECT_EQ(wrong_sums(pool.statistics()), "");
}

TEST(Recording, ServesItselfAgainOnTheSameStream) {
  SimulatedDevice device;
  MemoryPool pool(device.handle());
  device.begin_recording(kA);
  const Block first = pool.allocate(kMiB, kA);
  pool.free(first.data, kA);
  const Block second = pool.allocate(kMiB, kA);
  EXPECT_EQ(second.data, first.data);
  pool.free(second.data, kA);
  EXPECT_EQ(pool.statistics().used, int64_t(kMiB));
  device.begin_recording(kB);  // of another graph
  EXPECT_NE(pool.allocate(kMiB, kB).data, first.data);
  EXPECT_EQ(wrong_sums(pool.statistics()), "");
}

TEST(Recording, TakesWhatWasFreedBeforeItOnceThatIsIdle) {
  SimulatedDevice device;
  MemoryPool pool(device.handle());
  const Block idle = pool.allocate(kMiB, kA), busy = pool.allocate(64 * kMiB, kB);
  pool.free(idle.data, kA);
  pool.free(busy.data, kB);
  device.enqueue(kB, [] {});
  pool.before_recording();
  device.run(kA);
  device.begin_recording(kA);
  EXPECT_EQ(pool.allocate(kMiB, kA).data, idle.data);
  EXPECT_NE(pool.allocate(64 * kMiB, kA).data, busy.data);
  device.run(kB);
  EXPECT_EQ(pool.allocate(64 * kMiB, kA).data, busy.data);
  EXPECT_EQ(device.waits, 0);
}

TEST(Recording, ATensorThatOutlivesTheGraphStaysItsOwners) {
  SimulatedDevice device;
  MemoryPool pool(device.handle());
  device.begin_recording(kA);
  const Block block = pool.allocate(kMiB, kA);
  device.destroy(device.end_recording(kA));
  EXPECT_NE(pool.allocate(kMiB, kA).data, block.data);
  pool.free(block.data, kA);
  EXPECT_EQ(pool.allocate(kMiB, kA).data, block.data);
}

TEST(Recording, WhatIsFreedInOneIsTheGraphsToo) {
  SimulatedDevice device;
  MemoryPool pool(device.handle());
  const Block block = pool.allocate(kMiB, kA);
  device.begin_recording(kA);
  pool.free(block.data, kA);
  // Not even for the same recording: the stream may still work on it.
  EXPECT_NE(pool.allocate(kMiB, kA).data, block.data);
  const uint64_t graph = device.end_recording(kA);
  EXPECT_NE(pool.allocate(kMiB, kA).data, block.data);
  device.destroy(graph);
  EXPECT_EQ(pool.allocate(kMiB, kA).data, block.data);
}

TEST(Recording, TwoGraphsShareABlock) {
  SimulatedDevice device;
  MemoryPool pool(device.handle());
  device.begin_recording(kA);
  const Block block = pool.allocate(kMiB, kA);
  const uint64_t first = device.end_recording(kA);
  device.begin_recording(kB);
  pool.free(block.data, kB);
  const uint64_t second = device.end_recording(kB);
  device.destroy(first);
  EXPECT_NE(pool.allocate(kMiB, kA).data, block.data);
  EXPECT_EQ(pool.statistics().captured, int64_t(kMiB));
  device.destroy(second);
  EXPECT_EQ(pool.statistics().captured, int64_t(kMiB));  // until the next call
  pool.allocate(256, kA);
  EXPECT_EQ(pool.statistics().captured, 0);
}

TEST(Recording, AnAbandonedOneLeaksNothing) {
  SimulatedDevice device;
  MemoryPool pool(device.handle());
  for (int i = 0; i < 100; ++i) {
    device.begin_recording(kA);
    for (int n = 0; n < 5; ++n) pool.free(pool.allocate(kMiB, kA).data, kA);
    device.destroy(device.end_recording(kA));
  }
  pool.trim();
  EXPECT_EQ(device.bytes_taken(), 0u);
  EXPECT_EQ(pool.statistics().used, 0);
}

TEST(Recording, NeitherMarksNorWaits) {
  SimulatedDevice device(4 * kMiB);
  MemoryPool pool(device.handle());
  const Block of_b = pool.allocate(2 * kMiB, kB);
  device.enqueue(kB, [] {});
  pool.free(of_b.data, kB);
  device.begin_recording(kA);
  EXPECT_NO_THROW(pool.allocate(2 * kMiB, kA));
  // A recording cannot wait for memory that stream B may still use.
  EXPECT_THROW(pool.allocate(2 * kMiB, kA), Error);
  EXPECT_EQ(device.waits, 0);
  EXPECT_EQ(device.damage, "");
  EXPECT_EQ(wrong_sums(pool.statistics()), "");
}

TEST(Recording, AMovableBlockStaysWhereTheGraphSawIt) {
  SimulatedDevice device;
  MemoryPool host(device.handle());
  MemoryPool pool(device.handle(), {.quota = 2 * kMiB, .host = &host});
  const BlockId id = pool.create(kMiB, kA), away = pool.create(kMiB, kA);
  pool.evict(away, kA);
  device.begin_recording(kA);
  void* const address = pool.pin(id, kA);
  pool.unpin(id, kA);
  test::expect_error(
      ErrorKind::value, [&] { pool.pin(away, kA); },
      "pin: a block cannot be moved while the stream is recorded into a graph; restore or evict it "
      "before the recording");
  const uint64_t graph = device.end_recording(kA);
  EXPECT_THROW(pool.evict(id, kA), Error);
  EXPECT_THROW(pool.unpin(id, kA), Error);  // the pin is the graph's
  EXPECT_THROW(pool.allocate(2 * kMiB, kA), Error);
  EXPECT_EQ(pool.block(id).device_ptr, address);
  device.destroy(graph);
  pool.evict(id, kA);
  EXPECT_TRUE(pool.block(id).on_host());
}

TEST(Recording, ADeviceThatRefusesTheHoldIsAnError) {
  SimulatedDevice device;
  MemoryPool pool(device.handle());
  device.begin_recording(kA);
  for (long k = 1; k <= 6; ++k) {
    device.fail_at(k);
    try {
      pool.free(pool.allocate(kMiB, kA).data, kA);
    } catch (const Error&) {
    }
    EXPECT_EQ(wrong_sums(pool.statistics()), "") << k;
  }
  device.fail_at(0);
  device.destroy(device.end_recording(kA));
  const int64_t live = pool.statistics().live_blocks;  // whose free was refused
  EXPECT_LE(live, 2);
}

TEST(Recording, GraphsMayEndOnAnyThreadMeanwhile) {
  SimulatedDevice device;
  MemoryPool pool(device.handle());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const StreamRef stream = SimulatedDevice::stream(uintptr_t(t) + 1);
      for (int i = 0; i < 300; ++i) {
        device.begin_recording(stream);
        pool.free(pool.allocate(kMiB, stream).data, stream);
        const uint64_t graph = device.end_recording(stream);
        std::thread([&device, graph] { device.destroy(graph); }).join();
      }
    });
  for (std::thread& thread : threads) thread.join();
  pool.trim();
  EXPECT_EQ(pool.statistics().used, 0);
  EXPECT_EQ(device.bytes_taken(), 0u);
}

}  // namespace
}  // namespace tensorcraft
