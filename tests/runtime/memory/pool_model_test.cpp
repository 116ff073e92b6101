// SPDX-License-Identifier: Apache-2.0
// The pool and its evictions against a model of a few lines, on random histories, and the same from
// many threads and in many orders of the streams' work.
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/runtime/memory/pool.hpp"
#include "tests/support/simulated_memory.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include <rapidcheck.h>
#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

using test::SimulatedDevice;
using test::wrong_sums;

int usual_or_full(int usual, int full) { return std::getenv("TC_TEST_FULL") ? full : usual; }
StreamRef stream(unsigned number) { return SimulatedDevice::stream(number); }

constexpr size_t kBlock = 1024, kRoom = 6, kHostRoom = 8;

// Blocks of one size, so that what fits is a matter of counting.
struct Model {
  struct Block {
    BlockId id;
    bool resident = true;
    int pins = 0;
  };
  std::list<Block> blocks;  // the least recently used first
  size_t plain = 0;         // blocks that cannot be moved

  size_t resident() const {
    return size_t(std::ranges::count_if(blocks, [](const Block& b) { return b.resident; }));
  }
  size_t on_host() const { return blocks.size() - resident(); }
  std::list<Block>::iterator find(BlockId id) {
    return std::ranges::find_if(blocks, [id](const Block& b) { return b.id == id; });
  }
  // Makes room for one more; false if there is none.
  bool make_room() {
    if (plain + resident() < kRoom) return true;
    const auto victim =
        std::ranges::find_if(blocks, [](const Block& b) { return b.resident && b.pins == 0; });
    if (victim == blocks.end() || on_host() == kHostRoom) return false;
    victim->resident = false;
    return true;
  }
  void touch(std::list<Block>::iterator block) { blocks.splice(blocks.end(), blocks, block); }
};

class History {
 public:
  // Returns what differs; empty if nothing does.
  std::string run(const std::vector<std::pair<int, unsigned>>& steps) {
    for (const auto& [action, choice] : steps) {
      step(action, choice);
      if (wrong_.empty()) compare();
      if (!wrong_.empty()) return wrong_;
    }
    return {};
  }

 private:
  // Does the pool accept what the model does?
  template <class Call>
  bool agree(bool accepted, const Call& call) {
    try {
      call();
      if (!accepted) wrong_ += "a call was accepted; ";
    } catch (const Error& error) {
      if (accepted) wrong_ += std::string("a call was refused: ") + error.what();
    }
    return accepted && wrong_.empty();
  }
  void step(int action, unsigned choice) {
    const StreamRef on = stream(choice % 3);
    auto block = model_.blocks.begin();
    if (!model_.blocks.empty()) std::advance(block, long(choice / 3 % model_.blocks.size()));
    const bool none = model_.blocks.empty();
    switch (action) {
      case 0:
        if (BlockId id = 0; agree(model_.make_room(), [&] { id = pool_.create(kBlock, on); }))
          model_.blocks.push_back({id});
        break;
      case 1:
        if (void* data = nullptr;
            agree(model_.make_room(), [&] { data = pool_.allocate(kBlock, on).data; })) {
          plain_.push_back(data);
          ++model_.plain;
        }
        break;
      case 2:
        if (plain_.empty()) break;
        agree(true, [&] { pool_.free(plain_[choice % plain_.size()], on); });
        plain_.erase(plain_.begin() + long(choice % plain_.size()));
        --model_.plain;
        break;
      case 3: {
        if (none) break;
        const bool fits = restore(block);
        if (agree(fits, [&] { pool_.pin(block->id, on); })) {
          ++block->pins;
          model_.touch(block);
        }
        break;
      }
      case 4:
        if (none) break;
        if (agree(block->pins > 0, [&] { pool_.unpin(block->id, on); })) --block->pins;
        break;
      case 5:
        if (none) break;
        agree(true, [&] { pool_.touch(block->id); });
        model_.touch(block);
        break;
      case 6: {
        if (none) break;
        const bool may = block->pins == 0 && (!block->resident || model_.on_host() < kHostRoom);
        if (agree(may, [&] { pool_.evict(block->id, on); })) block->resident = false;
        break;
      }
      case 7: {
        if (none) break;
        const bool fits = restore(block);
        if (agree(fits, [&] { pool_.restore(block->id, on); })) model_.touch(block);
        break;
      }
      default:
        if (none) break;
        if (agree(block->pins == 0, [&] { pool_.release(block->id, on); }))
          model_.blocks.erase(block);
    }
    device_.step(random_);
  }
  // A block that comes back needs room while its place on the host is still taken.
  bool restore(std::list<Model::Block>::iterator block) {
    if (block->resident) return true;
    if (!model_.make_room()) return false;
    return block->resident = true;
  }
  void compare() {
    const std::vector<MemoryBlock> blocks = pool_.blocks();
    const AllocatorStatistics now = pool_.statistics();
    wrong_ += wrong_sums(now) + wrong_sums(host_.statistics());
    if (now.used != int64_t((model_.plain + model_.resident()) * kBlock)) wrong_ += "used; ";
    if (host_.statistics().live_blocks != int64_t(model_.on_host())) wrong_ += "on the host; ";
    if (now.evicted_blocks != int64_t(model_.on_host())) wrong_ += "evicted; ";
    if (blocks.size() != model_.blocks.size()) {
      wrong_ += "the number of blocks; ";
      return;
    }
    auto expected = model_.blocks.begin();
    for (const MemoryBlock& block : blocks) {
      if (block.id != expected->id) wrong_ += "the order of use; ";
      if (block.on_gpu() != expected->resident || block.on_host() == expected->resident)
        wrong_ += "where a block is; ";
      if (block.pins != expected->pins) wrong_ += "pins; ";
      ++expected;
    }
  }

  SimulatedDevice device_;
  MemoryPool host_{device_.handle(), {.quota = kHostRoom * kBlock}};
  MemoryPool pool_{device_.handle(), {.quota = kRoom * kBlock, .host = &host_}};
  Model model_;
  std::vector<void*> plain_;
  std::mt19937 random_{5};
  std::string wrong_;
};

// RapidCheck reads how many histories it tries from the environment, once.
const int kHistoriesAreSet =
    setenv("RC_PARAMS", usual_or_full(0, 1) ? "max_success=100000" : "max_success=10000", 0);

TEST(PoolModel, EveryHistoryIsTheModels) {
  ASSERT_EQ(kHistoriesAreSet, 0);
  const bool held = rc::check("the pool is its model", [] {
    const auto steps = *rc::gen::container<std::vector<std::pair<int, unsigned>>>(
        100, rc::gen::pair(rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, 9)),
                           rc::gen::resize(rc::kNominalSize, rc::gen::arbitrary<unsigned>())));
    const std::string wrong = History().run(steps);
    if (!wrong.empty()) RC_FAIL(wrong);
  });
  EXPECT_TRUE(held);
}

// The streams run in a random order, so what was not waited for is overwritten.
TEST(PoolOrders, NoMemoryIsUsedByTwoStreamsAtOnce) {
  const int orders = usual_or_full(2000, 10000);
  int64_t waits = 0;
  for (int order = 0; order < orders; ++order) {
    SimulatedDevice device(8 * kBlock);
    device.streams_last = order % 3 != 0;
    MemoryPool pool(device.handle());
    std::mt19937 random{unsigned(order)};
    const StreamRef stalled = stream(unsigned(order) % 3);
    device.stall(stalled);
    std::vector<std::pair<Block, StreamRef>> live;
    int wrong = 0;
    const auto use = [&](void* data, size_t bytes, StreamRef on, unsigned char value) {
      device.enqueue(on, [data, bytes, value] { std::memset(data, value, bytes); });
      device.enqueue(on, [&wrong, data, bytes, value] {
        for (size_t i = 0; i < bytes; ++i) wrong += static_cast<unsigned char*>(data)[i] != value;
      });
    };
    // Another stream uses it after its home did, and after the home forgot it.
    const std::unique_ptr<memory::MemoryDevice> caller = device.handle();
    const auto use_later = [&](const Block& block, StreamRef home, StreamRef on,
                               unsigned char value) {
      const std::unique_ptr<memory::Mark> mark = caller->make_mark();
      mark->record(home);
      mark->order_before(on);
      use(block.data, block.bytes, on, value);
    };
    for (int step = 0; step < 40; ++step) {
      const StreamRef on = stream(random() % 3);
      if (random() % 2) {
        try {
          const Block block = pool.allocate(256 + random() % (2 * kBlock), on);
          use(block.data, block.bytes, on, (unsigned char)step);
          live.emplace_back(block, on);
        } catch (const Error&) {
        }
      } else if (!live.empty()) {
        const auto [block, home] = live.back();
        live.pop_back();
        if (random() % 3 == 0 && on != home) {
          pool.record(block.data, on);
          use_later(block, home, on, (unsigned char)step);
        }
        pool.free(block.data, home);
      }
      if (random() % 2) device.step(random);
      if (step == 30) device.stall(stalled, false);
    }
    device.run_all();
    ASSERT_EQ(wrong, 0) << "order " << order;
    ASSERT_EQ(device.damage, "");
    waits += device.waits;
  }
  EXPECT_GT(waits, orders);  // else nothing was tried
}

// A shadow of who owns what: two owners of one byte are a block that was handed out twice.
TEST(PoolThreads, HandNothingOutTwiceAndLeakNothing) {
  constexpr int kThreads = 8;
  const int steps = usual_or_full(20000, 1000000);
  constexpr size_t kPieces = size_t(1) << 16;
  SimulatedDevice device(kPieces * 256 * 4, false);
  device.streams_last = true;
  MemoryPool pool(device.handle(), {.quota = kPieces * 256});
  std::atomic<int> doubles = 0, identities = 0;
  std::mutex mutex;
  std::map<uintptr_t, size_t> shadow;
  const auto claim = [&](const Block& block) {
    const std::lock_guard lock(mutex);
    const auto at = reinterpret_cast<uintptr_t>(block.data);
    const auto next = shadow.lower_bound(at);
    if (next != shadow.end() && at + block.bytes > next->first) ++doubles;
    if (next != shadow.begin() && std::prev(next)->first + std::prev(next)->second > at) ++doubles;
    shadow[at] = block.bytes;
  };
  const auto give_up = [&](const Block& block) {
    const std::lock_guard lock(mutex);
    shadow.erase(reinterpret_cast<uintptr_t>(block.data));
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random{unsigned(t)};
      std::vector<std::pair<Block, StreamRef>> live;
      for (int step = 0; step < steps; ++step) {
        const StreamRef on = stream(random() % 4);
        if (live.size() < 32 && random() % 2) {
          try {
            const Block block = pool.allocate(1 + random() % 8192, on);
            claim(block);
            live.emplace_back(block, on);
          } catch (const Error& error) {
            if (error.kind() != ErrorKind::out_of_memory) ++identities;
          }
        } else if (!live.empty()) {
          std::swap(live[random() % live.size()], live.back());
          const auto [block, home] = live.back();
          live.pop_back();
          if (random() % 8 == 0) pool.record(block.data, on);
          give_up(block);
          pool.free(block.data, home);
        }
        if (step % 16 == 0 && !wrong_sums(pool.statistics()).empty()) ++identities;
        if (step % 4096 == 0) device.run_all();
      }
      for (const auto& [block, home] : live) {
        give_up(block);
        pool.free(block.data, home);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(doubles, 0);
  EXPECT_EQ(identities, 0);
  EXPECT_EQ(pool.statistics().live_blocks, 0);
  EXPECT_EQ(pool.statistics().used, 0);
  pool.trim();
  EXPECT_EQ(device.bytes_taken(), 0u);
}

}  // namespace
}  // namespace tensorcraft
