// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/device/reduce.cuh"

#include <array>
#include <atomic>
#include <barrier>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace {

constexpr int kLanes = 32;

// The meaning of the warp's words for this test: a thread of the host is a lane of a warp.
struct Warp {
  std::barrier<> barrier{kLanes};
  std::array<uint64_t, kLanes> values{};
  std::array<bool, kLanes> predicates{};
};
struct Block {
  explicit Block(int warps) : barrier(warps * kLanes) {
    for (int i = 0; i < warps; ++i) this->warps.push_back(std::make_unique<Warp>());
  }
  std::barrier<> barrier;
  std::vector<std::unique_ptr<Warp>> warps;
};
thread_local Block* block = nullptr;

int rank() { return int(tensorcraft::threadIdx.x); }
Warp& warp() { return *block->warps[size_t(rank() / kLanes)]; }

}  // namespace

namespace tensorcraft {

thread_local constinit Index3 threadIdx, blockIdx, blockDim, gridDim;
void __syncthreads() { block->barrier.arrive_and_wait(); }

namespace simt {
int lane() { return rank() % kLanes; }
uint64_t shuffle(unsigned, uint64_t value, int source) {
  Warp& w = warp();
  w.values[size_t(lane())] = value;
  w.barrier.arrive_and_wait();
  const uint64_t got = w.values[size_t(source)];
  w.barrier.arrive_and_wait();
  return got;
}
unsigned ballot(unsigned, bool predicate) {
  Warp& w = warp();
  w.predicates[size_t(lane())] = predicate;
  w.barrier.arrive_and_wait();
  unsigned bits = 0;
  for (int i = 0; i < kLanes; ++i) bits |= unsigned(w.predicates[size_t(i)]) << i;
  w.barrier.arrive_and_wait();
  return bits;
}
}  // namespace simt

namespace {

// What `body` gives in each thread of a block.
std::vector<float> run(int warps, const std::function<float(int thread)>& body) {
  Block shared(warps);
  std::vector<float> results(size_t(warps * kLanes));
  std::vector<std::thread> threads;
  for (int i = 0; i < warps * kLanes; ++i)
    threads.emplace_back([&, i] {
      block = &shared;
      threadIdx = {unsigned(i), 0, 0};
      blockDim = {unsigned(warps * kLanes), 1, 1};
      results[size_t(i)] = body(i);
    });
  for (std::thread& thread : threads) thread.join();
  return results;
}

void expect_all(const std::vector<float>& got, float expected) {
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], expected) << "thread " << i;
}

TEST(Warp, ReduceGivesEveryLaneTheSumAndTheMaximum) {
  expect_all(run(1, [](int i) { return warp_sum(float(i)); }), 496);
  expect_all(run(1, [](int i) { return warp_max(float((i * 7) % 32)); }), 31);
}

TEST(Warp, ReduceStaysWithinItsGroup) {
  const auto got = run(1, [](int i) { return warp_reduce<8>(float(i), Sum()); });
  for (int i = 0; i < kLanes; ++i) EXPECT_EQ(got[size_t(i)], 64.0f * float(i / 8) + 28) << i;
}

TEST(Warp, ReduceDownGivesLaneZeroTheResult) {
  EXPECT_EQ(run(1, [](int i) { return warp_reduce_down(float(i), Sum()); })[0], 496);
}

TEST(Warp, MaximumKeepsNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float x : run(1, [&](int i) { return warp_max(i == 13 ? nan : float(i)); }))
    EXPECT_TRUE(std::isnan(x));
}

TEST(Warp, BroadcastGivesOneLanesValue) {
  expect_all(run(1, [](int i) { return warp_broadcast(float(i) + 0.5f); }), 0.5f);
  expect_all(run(1, [](int i) { return warp_broadcast(float(i) + 0.5f, 21); }), 21.5f);
}

TEST(Warp, VotesAreTrueForAllOrAnyLane) {
  expect_all(run(1, [](int i) { return float(warp_all(i >= 0)); }), 1);
  expect_all(run(1, [](int i) { return float(warp_all(i != 17)); }), 0);
  expect_all(run(1, [](int i) { return float(warp_any(i == 17)); }), 1);
  expect_all(run(1, [](int i) { return float(warp_any(i < 0)); }), 0);
}

TEST(Block, ReduceCrossesWarpsAndCanBeRepeated) {
  BlockReduce<float> shared;
  const auto got = run(3, [&](int i) {
    const float sum = block_sum(shared, float(i));
    return sum * 1000 + block_max(shared, float(i));
  });
  expect_all(got, 4560.0f * 1000 + 95);
}

}  // namespace
}  // namespace tensorcraft
