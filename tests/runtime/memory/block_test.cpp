// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/memory/block.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace tensorcraft::memory {
namespace {

constexpr size_t kKiB = 1024, kMiB = 1024 * kKiB;
void* address(uintptr_t n) { return reinterpret_cast<void*>(n << 40); }

TEST(FreeList, FindsTheLeastThatFits) {
  FreeList list;
  Chunk small, middle, large;
  small.bytes = kKiB;
  middle.bytes = 3 * kKiB;
  large.bytes = 64 * kKiB;
  for (Chunk* chunk : {&large, &small, &middle}) list.insert(chunk);
  EXPECT_EQ(list.find(256), &small);
  EXPECT_EQ(list.find(kKiB), &small);
  EXPECT_EQ(list.find(kKiB + 256), &middle);
  EXPECT_EQ(list.find(4 * kKiB), &large);
  EXPECT_EQ(list.find(65 * kKiB), nullptr);
  list.remove(&middle);
  EXPECT_EQ(list.find(2 * kKiB), &large);
  EXPECT_EQ(list.find_if(256, [&](const Chunk& c) { return &c != &small; }), &large);
}

TEST(FreeList, LooksIntoABinForSizesBetweenItsOwn) {
  FreeList list;
  Chunk low, high;
  low.bytes = 257 * kMiB;
  high.bytes = 280 * kMiB;
  ASSERT_EQ(bin_of(low.bytes), bin_of(high.bytes));
  list.insert(&high);
  list.insert(&low);
  EXPECT_EQ(list.find(260 * kMiB), &high);
  EXPECT_EQ(list.find(281 * kMiB), nullptr);
}

// Gives a chunk back that `lane` used last.
void give(Heap& heap, Chunk* chunk, Uses uses) {
  chunk->uses = std::move(uses);
  heap.give(chunk);
}

Chunk* take(Heap& heap, uint32_t lane, size_t bytes) {
  Chunk* const chunk = heap.list(Heap::list_of(lane)).find(bytes);
  heap.take(chunk, bytes);
  chunk->uses.clear();
  return chunk;
}

TEST(Heap, SplitsAndMergesWhatOneLaneUsed) {
  Heap heap;
  heap.add(address(1), kMiB, 0);
  Chunk* const a = take(heap, 0, kKiB);
  Chunk* const b = take(heap, 0, kKiB);
  Chunk* const c = take(heap, 0, kKiB);
  EXPECT_EQ(b->data, a->data + kKiB);
  EXPECT_EQ(heap.cached(), kMiB - 3 * kKiB);
  EXPECT_EQ(heap.find(b->data), b);
  EXPECT_EQ(heap.find(b->data + 256), nullptr);
  give(heap, b, {{0, 1}});
  EXPECT_EQ(heap.num_free(), 2u);
  give(heap, a, {{0, 2}});
  EXPECT_EQ(heap.num_free(), 2u);
  EXPECT_TRUE(heap.unused().empty());
  give(heap, c, {{0, 3}});
  ASSERT_EQ(heap.num_free(), 1u);
  ASSERT_EQ(heap.unused().size(), 1u);
  EXPECT_EQ(heap.unused()[0]->first->uses, (Uses{{0, 3}}));
  heap.remove(heap.unused()[0]);
  EXPECT_EQ(heap.reserved(), 0u);
  EXPECT_EQ(heap.cached(), 0u);
}

TEST(Heap, ASplitCopiesTheUsesAndAMergeUnitesThem) {
  Heap heap;
  heap.add(address(1), 4 * kKiB, 0);
  Chunk* const a = take(heap, 0, 2 * kKiB);
  Chunk* const b = take(heap, 0, 2 * kKiB);
  give(heap, a, {{0, 7}});
  give(heap, b, {{1, 9}});
  EXPECT_EQ(heap.num_free(), 2u);  // of different lists
  heap.merge_all([](const Chunk& c) { return c.uses.front().lane == 0; });
  EXPECT_EQ(heap.num_free(), 2u);
  heap.merge_all([](const Chunk&) { return true; });
  ASSERT_EQ(heap.num_free(), 1u);
  Chunk* const both = heap.list(Heap::kMixed).find(4 * kKiB);
  ASSERT_NE(both, nullptr);
  EXPECT_EQ(both->uses, (Uses{{0, 7}, {1, 9}}));
  heap.take(both, kKiB);
  Chunk* const rest = both->after;
  ASSERT_TRUE(rest->free);
  EXPECT_EQ(rest->uses, (Uses{{0, 7}, {1, 9}}));
}

// However it was cut: no gap, no overlap, no two neighbours of one list that are free.
void expect_sound(Heap& heap) {
  size_t reserved = 0, cached = 0, free = 0, used = 0;
  for (const auto& [data, segment] : heap.segments()) {
    std::byte* at = segment->data;
    for (const Chunk* chunk = segment->first; chunk; chunk = chunk->after) {
      ASSERT_EQ(chunk->data, at);
      ASSERT_TRUE(!chunk->after || chunk->after->before == chunk);
      ASSERT_FALSE(chunk->free && chunk->after && chunk->after->free &&
                   chunk->list == chunk->after->list);
      at += chunk->bytes;
      (chunk->free ? free : used) += 1;
      cached += chunk->free ? chunk->bytes : 0;
    }
    ASSERT_EQ(at, segment->data + segment->bytes);
    reserved += segment->bytes;
  }
  ASSERT_EQ(heap.reserved(), reserved);
  ASSERT_EQ(heap.cached(), cached);
  ASSERT_EQ(heap.num_free(), free);
  ASSERT_EQ(heap.num_used(), used);
}

TEST(Heap, StaysSoundOverRandomLives) {
  std::mt19937 random(3);
  Heap heap;
  std::vector<Chunk*> live;
  for (int step = 0; step < 20000; ++step) {
    const uint32_t lane = uint32_t(random() % 3);
    if (random() % 2 || live.empty()) {
      const size_t bytes = class_bytes(1 + random() % (32 * kKiB));
      if (!heap.list(Heap::list_of(lane)).find(bytes))
        heap.add(address(uintptr_t(step + 1)), 64 * kKiB, lane);
      live.push_back(take(heap, lane, bytes));
    } else {
      const size_t i = random() % live.size();
      give(heap, live[i], {{lane, uint64_t(step)}});
      live[i] = live.back();
      live.pop_back();
    }
    if (step % 500 == 0) heap.merge_all([](const Chunk&) { return true; });
    if (step % 1000 == 0)
      for (Segment* segment : heap.unused()) heap.remove(segment);
    if (step % 50 == 0) {
      ASSERT_NO_FATAL_FAILURE(expect_sound(heap));
    }
  }
}

}  // namespace
}  // namespace tensorcraft::memory
