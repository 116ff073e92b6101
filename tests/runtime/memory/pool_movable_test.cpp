// SPDX-License-Identifier: Apache-2.0
// Blocks that are evicted to the host and come back.
#include "tensorcraft/runtime/memory/pool.hpp"

#include "tests/support/expect_error.hpp"
#include "tests/support/simulated_memory.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <vector>

namespace tensorcraft {
namespace {

using test::SimulatedDevice;
using test::wrong_sums;

constexpr size_t kBlock = 4096;
const StreamRef kA = SimulatedDevice::stream(1), kB = SimulatedDevice::stream(2);

// A pool of so many blocks, and room for so many on the host.
struct Rig {
  explicit Rig(size_t blocks, size_t on_host = 1000)
      : host(device.handle(), {.quota = on_host * kBlock}),
        pool(device.handle(), {.quota = blocks * kBlock, .host = &host}) {}
  SimulatedDevice device;  // both are of the same streams
  MemoryPool host, pool;

  // Work of the stream that fills the block, or looks whether it holds what it should.
  void write(BlockId id, unsigned char value, StreamRef stream) {
    void* const data = pool.pin(id, stream);
    device.enqueue(stream, [data, value] { std::memset(data, value, kBlock); });
    pool.unpin(id, stream);
  }
  void expect(BlockId id, unsigned char value, StreamRef stream) {
    const auto* const data = static_cast<unsigned char*>(pool.pin(id, stream));
    device.enqueue(stream, [this, data, value, id] {
      for (size_t i = 0; i < kBlock; ++i)
        if (data[i] != value && ++wrong == 1)
          first = join("block ", id, " holds ", int(data[i]), ", not ", int(value));
    });
    pool.unpin(id, stream);
  }
  void expect_sound() {
    device.run_all();
    EXPECT_EQ(wrong, 0) << first;
    EXPECT_EQ(device.damage, "");
    EXPECT_EQ(wrong_sums(pool.statistics()), "");
    EXPECT_EQ(wrong_sums(host.statistics()), "");
  }
  int wrong = 0;
  std::string first;
};

TEST(Eviction, r01_lru_order) {
  Rig rig(4);
  std::vector<BlockId> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(rig.pool.create(kBlock, kA));
  rig.pool.touch(ids[0]);
  const BlockId next = rig.pool.create(kBlock, kA);
  EXPECT_TRUE(rig.pool.block(ids[1]).on_host());
  for (const BlockId id : {ids[0], ids[2], ids[3], next})
    EXPECT_TRUE(rig.pool.block(id).on_gpu()) << id;
  EXPECT_EQ(rig.pool.statistics().evictions, 1);
}

TEST(Eviction, r02_evict_keeps_data) {
  Rig rig(2);
  const BlockId a = rig.pool.create(kBlock, kA), b = rig.pool.create(kBlock, kA);
  rig.write(a, 17, kA);
  rig.write(b, 18, kA);
  const BlockId c = rig.pool.create(kBlock, kA);
  rig.write(c, 19, kA);
  rig.device.run_all();
  const MemoryBlock evicted = rig.pool.block(a);
  ASSERT_TRUE(evicted.on_host());
  EXPECT_EQ(evicted.device_ptr, nullptr);
  const auto* const bytes = static_cast<unsigned char*>(evicted.host_data);
  for (size_t i = 0; i < kBlock; ++i) ASSERT_EQ(bytes[i], 17);
  rig.expect(a, 17, kA);
  rig.expect(b, 18, kB);
  rig.expect(c, 19, kA);
  rig.expect_sound();
}

TEST(Eviction, r03_reuse_after_evict) {
  Rig rig(1);
  const BlockId a = rig.pool.create(kBlock, kA);
  rig.write(a, 1, kA);
  rig.pool.evict(a, kA);
  rig.pool.release(a, kA);
  EXPECT_EQ(rig.host.statistics().live_blocks, 0);
  EXPECT_EQ(rig.pool.statistics().evicted_bytes, 0);
  const BlockId b = rig.pool.create(kBlock, kA);
  const MemoryBlock clean = rig.pool.block(b);
  EXPECT_TRUE(clean.on_gpu());
  EXPECT_FALSE(clean.on_host());
  EXPECT_EQ(rig.pool.statistics().used, int64_t(kBlock));
  EXPECT_LE(rig.pool.statistics().reserved, rig.pool.statistics().quota);
  rig.write(b, 2, kA);
  rig.expect(b, 2, kA);
  rig.expect_sound();
}

TEST(Eviction, r04_restore_within_quota) {
  Rig rig(1);
  const BlockId a = rig.pool.create(kBlock, kA);
  rig.write(a, 1, kA);
  const BlockId b = rig.pool.create(kBlock, kA);
  ASSERT_TRUE(rig.pool.block(a).on_host());
  rig.pool.restore(a, kA);
  EXPECT_TRUE(rig.pool.block(a).on_gpu());
  EXPECT_TRUE(rig.pool.block(b).on_host());
  EXPECT_LE(rig.pool.statistics().reserved, rig.pool.statistics().quota);
  rig.pool.pin(a, kA);
  EXPECT_THROW(rig.pool.restore(b, kA), Error);
  EXPECT_TRUE(rig.pool.block(b).on_host());
  rig.pool.unpin(a, kA);
  rig.expect(a, 1, kA);
  rig.expect_sound();
}

TEST(Eviction, APlainAllocationEvictsAndAPinnedBlockStays) {
  Rig rig(2);
  const BlockId a = rig.pool.create(kBlock, kA), b = rig.pool.create(kBlock, kA);
  void* const address = rig.pool.pin(a, kA);
  const Block plain = rig.pool.allocate(kBlock, kA);
  EXPECT_EQ(rig.pool.block(a).device_ptr, address);
  EXPECT_TRUE(rig.pool.block(b).on_host());
  test::expect_error(
      ErrorKind::value, [&] { rig.pool.evict(a, kA); },
      "evict: block 1 has 1 pins, of its users or of graphs that were recorded with it; unpin() "
      "it, or drop the tensors that pin() gave, first");
  test::expect_error(
      ErrorKind::out_of_memory, [&] { rig.pool.pin(b, kA); },
      "Memory pool quota exceeded: requested 4096 bytes, used 8192, quota 8192\n  free memory of "
      "the simulated device, use smaller batches, or raise the quota of its pool");
  rig.pool.unpin(a, kA);
  rig.pool.free(plain.data, kA);
  rig.expect_sound();
}

TEST(Eviction, TheHostsBudgetIsAnErrorAndLosesNothing) {
  for (const size_t budget : {size_t(1), size_t(2)}) {
    Rig rig(2, budget);
    std::map<BlockId, unsigned char> values;
    for (size_t i = 0; i < 2 + budget; ++i) {
      const BlockId id = rig.pool.create(kBlock, kA);
      values[id] = (unsigned char)(i + 1);
      rig.write(id, values[id], kA);
    }
    test::expect_error(
        ErrorKind::out_of_memory, [&] { rig.pool.create(kBlock, kA); },
        "Memory pool quota exceeded: requested 4096 bytes, used 8192, quota 8192\n  free memory of "
        "the simulated device, use smaller batches, or raise the quota of its pool");
    EXPECT_EQ(rig.pool.blocks().size(), 2 + budget);
    rig.device.run_all();
    for (const MemoryBlock& block : rig.pool.blocks()) {
      const void* const data = block.on_gpu() ? block.device_ptr : block.host_data;
      EXPECT_EQ(*static_cast<const unsigned char*>(data), values[block.id]);
    }
    rig.expect_sound();
  }
}

TEST(Eviction, WithoutHostMemoryThereIsNone) {
  SimulatedDevice device;
  MemoryPool pool(device.handle(), {.quota = kBlock});
  const BlockId id = pool.create(kBlock, kA);
  EXPECT_THROW(pool.allocate(kBlock, kA), Error);
  test::expect_error(
      ErrorKind::value, [&] { pool.evict(id, kA); },
      "evict: the pool of the simulated device was made without host memory to evict to; give "
      "PoolOptions::host");
}

TEST(Eviction, RefusesWhatIsNotThere) {
  Rig rig(1);
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { rig.pool.pin(9, kA); }, [&] { rig.pool.unpin(9, kA); }, [&] { rig.pool.touch(9); },
           [&] { rig.pool.evict(9, kA); }, [&] { rig.pool.restore(9, kA); },
           [&] { rig.pool.release(9, kA); }, [&] { rig.pool.block(9); }})
    EXPECT_THROW(call(), Error);
  const BlockId id = rig.pool.create(1, kA);
  test::expect_error(
      ErrorKind::value, [&] { rig.pool.unpin(id, kA); },
      "unpin: block 1 is not pinned; one unpin belongs to each pin");
  test::expect_error(
      ErrorKind::value, [&] { rig.pool.create(0, kA); },
      "create: a block that can be moved has at least 1 byte, got 0");
}

// However late each stream runs, each block holds what was written to it last.
TEST(Eviction, RandomMovesAtThreeTimesTheMemoryLoseNothing) {
  const int steps = std::getenv("TC_TEST_FULL") ? 100000 : 20000;
  Rig rig(8);
  std::mt19937 random(11);
  std::map<BlockId, unsigned char> values;
  std::vector<BlockId> ids;
  for (int i = 0; i < 24; ++i) {
    ids.push_back(rig.pool.create(kBlock, kA));
    rig.write(ids.back(), values[ids.back()] = (unsigned char)i, kA);
  }
  BlockId pinned = 0;
  void* address = nullptr;
  for (int step = 0; step < steps; ++step) {
    BlockId& id = ids[random() % ids.size()];
    const StreamRef stream = SimulatedDevice::stream(random() % 3);
    switch (random() % 8) {
      case 0:
        rig.write(id, values[id] = (unsigned char)random(), stream);
        break;
      case 1:
        if (id != pinned) rig.pool.evict(id, stream);
        break;
      case 2:
        rig.pool.restore(id, stream);
        break;
      case 3:
        rig.pool.touch(id);
        break;
      case 4:
        if (pinned) {
          ASSERT_EQ(rig.pool.block(pinned).device_ptr, address);
          rig.pool.unpin(pinned, stream);
        }
        address = rig.pool.pin(pinned = id, stream);
        break;
      case 5:
        if (id == pinned) break;
        rig.pool.release(id, stream);
        values.erase(id);
        id = rig.pool.create(kBlock, stream);
        rig.write(id, values[id] = (unsigned char)random(), stream);
        break;
      default:
        rig.expect(id, values[id], stream);
    }
    for (unsigned i = random() % 4; i > 0; --i) rig.device.step(random);
    ASSERT_EQ(rig.wrong, 0) << rig.first << " at step " << step;
    ASSERT_EQ(wrong_sums(rig.pool.statistics()), "");
  }
  rig.expect_sound();
  EXPECT_GT(rig.pool.statistics().evictions, steps / 10);
}

}  // namespace
}  // namespace tensorcraft
