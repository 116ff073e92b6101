// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/memory/reclaimer.hpp"

#include "tensorcraft/runtime/memory/host_memory_device.hpp"
#include "tensorcraft/runtime/memory/pool.hpp"
#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace tensorcraft {
namespace {

constexpr size_t kMiB = size_t(1) << 20;

// Holds blocks of a pool, and gives the last ones back.
class Holder final : public Reclaimer {
 public:
  explicit Holder(MemoryPool& pool) : pool_(pool) {}
  // If there is no room for all blocks, those that it holds go back too.
  Holder(MemoryPool& pool, int blocks) : Holder(pool) {
    for (int i = 0; i < blocks; ++i) blocks_.push_back(pool.allocate(kMiB, {}));
  }
  ~Holder() override { give(std::numeric_limits<size_t>::max()); }
  size_t reclaim(size_t bytes, LastUse) override {
    asked.push_back(bytes);
    return give(bytes);
  }
  size_t blocks() const { return blocks_.size(); }
  std::vector<size_t> asked;

 private:
  size_t give(size_t bytes) {
    size_t given = 0;
    for (; given < bytes && !blocks_.empty(); given += kMiB, blocks_.pop_back())
      pool_.free(blocks_.back().data, {});
    return given;
  }
  MemoryPool& pool_;
  std::vector<Block> blocks_;
};

class Reclaim : public testing::Test {
 protected:
  std::shared_ptr<Holder> holder(int blocks) {
    auto made = std::make_shared<Holder>(pool, blocks);
    pool.add(made);
    return made;
  }
  MemoryPool pool{memory::host_memory_device(),
                  {.quota = 8 * kMiB, .host = &allocator(Device::cpu())}};
};

TEST_F(Reclaim, IsAskedForWhatAnAllocationFindsNoRoomFor) {
  const auto first = holder(4), second = holder(4);
  const Block block = pool.allocate(2 * kMiB, {});
  EXPECT_EQ(first->asked, (std::vector<size_t>{2 * kMiB}));
  EXPECT_TRUE(second->asked.empty());
  EXPECT_EQ(first->blocks(), 2u);
  pool.free(block.data, {});
}

TEST_F(Reclaim, GoesOnWithTheNextAndAgainUntilTheBytesAreBesideEachOther) {
  const auto first = holder(1);
  const Block wall = pool.allocate(kMiB, {});
  const auto second = holder(6);
  const Block block = pool.allocate(3 * kMiB, {});
  EXPECT_EQ(first->blocks(), 0u);
  EXPECT_LE(second->blocks(), 3u);
  pool.free(block.data, {});
  pool.free(wall.data, {});
}

TEST_F(Reclaim, IsNotAskedWhileThereIsRoomOrForWhatNeverFits) {
  const auto held = holder(4);
  pool.free(pool.allocate(kMiB, {}).data, {});
  test::expect_error_with(ErrorKind::out_of_memory, "Memory pool quota exceeded: requested 9437184",
                          [&] { pool.allocate(9 * kMiB, {}); });
  EXPECT_TRUE(held->asked.empty());
  EXPECT_EQ(held->blocks(), 4u);
}

TEST_F(Reclaim, OfOneThatIsGoneIsNotAsked) {
  holder(8).reset();
  const auto held = holder(2);
  const Block all = pool.allocate(8 * kMiB, {});
  EXPECT_EQ(held->blocks(), 0u);
  test::expect_error_with(ErrorKind::out_of_memory, "Memory pool quota exceeded",
                          [&] { pool.allocate(kMiB, {}); });
  pool.free(all.data, {});
}

// Uses of two reclaimers in turns: what is given back is in the order of all of them.
TEST_F(Reclaim, TakesWhatWasUsedLeastRecentlyOfAll) {
  class Dated final : public Reclaimer {
   public:
    Dated(MemoryPool& pool, std::vector<int> moments)
        : holder(pool, int(moments.size())), uses(std::move(moments)) {}
    static LastUse at(int moment) { return LastUse(std::chrono::seconds(moment)); }
    size_t reclaim(size_t bytes, LastUse until) override {
      size_t given = 0;
      while (given < bytes && !uses.empty() && at(uses[0]) <= until) {
        given += holder.reclaim(1, until);
        uses.erase(uses.begin());
      }
      return given;
    }
    LastUse least_recent_use() override { return uses.empty() ? LastUse::max() : at(uses[0]); }
    Holder holder;
    std::vector<int> uses;
  };
  const auto first = std::make_shared<Dated>(pool, std::vector{1, 4, 5, 8});
  const auto second = std::make_shared<Dated>(pool, std::vector{2, 3, 6, 7});
  pool.add(first);
  pool.add(second);
  EXPECT_EQ(pool.reclaim(3 * kMiB), 3 * kMiB);
  EXPECT_EQ(first->uses, (std::vector{4, 5, 8}));
  EXPECT_EQ(second->uses, (std::vector{6, 7}));
  EXPECT_EQ(pool.reclaim(4 * kMiB), 4 * kMiB);
  EXPECT_EQ(first->uses, std::vector{8});
  EXPECT_TRUE(second->uses.empty());
  EXPECT_EQ(pool.reclaim(4 * kMiB), kMiB);
}

// Between the question and the answer another thread uses what was the least recent.
TEST_F(Reclaim, AsksAgainWhatWasUsedMeanwhile) {
  class Busy final : public Reclaimer {
   public:
    Busy(MemoryPool& pool, int last_use) : holder(pool, 1), use(last_use) {}
    size_t reclaim(size_t bytes, LastUse until) override {
      use += std::exchange(later, 0);
      return LastUse(std::chrono::seconds(use)) <= until ? holder.reclaim(bytes, until) : 0;
    }
    LastUse least_recent_use() override {
      return holder.blocks() ? LastUse(std::chrono::seconds(use)) : LastUse::max();
    }
    Holder holder;
    int use, later = 0;
  };
  const auto first = std::make_shared<Busy>(pool, 1), second = std::make_shared<Busy>(pool, 2);
  first->later = 4;
  pool.add(first);
  pool.add(second);
  EXPECT_EQ(pool.reclaim(2 * kMiB), 2 * kMiB);
}

TEST_F(Reclaim, MakesRoomForBlocksThatMove) {
  const auto held = holder(8);
  const BlockId block = pool.create(2 * kMiB, {});
  EXPECT_EQ(held->blocks(), 6u);
  pool.evict(block, {});
  const Block other = pool.allocate(2 * kMiB, {});
  EXPECT_NE(pool.pin(block, {}), nullptr);
  EXPECT_EQ(held->blocks(), 4u);
  pool.unpin(block, {});
  pool.evict(block, {});
  const Block another = pool.allocate(2 * kMiB, {});
  pool.restore(block, {});
  EXPECT_EQ(held->blocks(), 2u);
  pool.release(block, {});
  pool.free(other.data, {});
  pool.free(another.data, {});
}

TEST_F(Reclaim, MayHappenOnManyThreadsAtOnce) {
  class Locked final : public Reclaimer {
   public:
    explicit Locked(MemoryPool& pool) : holder(pool, 4) {}
    size_t reclaim(size_t bytes, LastUse until) override {
      const std::lock_guard lock(mutex);
      return holder.reclaim(bytes, until);
    }
    std::mutex mutex;
    Holder holder;
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) try {
          const auto mine = std::make_shared<Locked>(pool);
          pool.add(mine);
          pool.free(pool.allocate(kMiB, {}).data, {});
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
        }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool.statistics().live_blocks, 0);
}

}  // namespace
}  // namespace tensorcraft
