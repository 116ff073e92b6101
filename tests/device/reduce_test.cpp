// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/device/exp_sum.cuh"
#include "tensorcraft/device/moments.cuh"
#include "tensorcraft/device/reduce.cuh"

#include "tensorcraft/simt/launch.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace tensorcraft {
namespace {

constexpr int kLanes = 32;

// Returns what `body` gives in each thread of a block on the emulator.
std::vector<float> run(int warps, const std::function<float(int thread)>& body) {
  struct Params {
    const std::function<float(int)>& body;
    std::vector<float> results;
  } params{body, std::vector<float>(size_t(warps * kLanes))};
  Params* const pointer = &params;
  simt::launch(
      {.name = "reduce", .block = {unsigned(warps * kLanes)}},
      [](const void* p) {
        Params& params = **static_cast<Params* const*>(p);
        params.results[threadIdx.x] = params.body(int(threadIdx.x));
      },
      &pointer);
  return params.results;
}

void expect_all(const std::vector<float>& got, float expected) {
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], expected) << "thread " << i;
}

// One part after the other: 1, 2, 3, 6 have the mean 3 and the variance 14 / 4.
TEST(EvenMoments, AppendOnePartToSeveral) {
  EvenMoments all{1, 0};
  all.append({2, 0}, 1);
  all.append({3, 0}, 2);
  all.append({6, 0}, 3);
  EXPECT_FLOAT_EQ(all.mean, 3);
  EXPECT_FLOAT_EQ(all.var, 3.5f);

  const float infinity = std::numeric_limits<float>::infinity();
  EvenMoments wide{0, infinity};
  wide.append({0, infinity}, 3);
  EXPECT_EQ(wide.var, infinity) << "not NaN, so that a row of far values becomes 0";
}

// Whatever the first is: an outlier, one of equal values, one of many far from 0.
TEST(SumsAboutFirst, AreAsGoodAsDeviations) {
  for (const std::vector<float>& values : {std::vector<float>{1000, 1, 2, 3, 4, 5, 6, 7},
                                           {3e6f, 3e6f + 1, 3e6f, 3e6f, 3e6f, 3e6f, 3e6f, 3e6f},
                                           {0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f},
                                           {-7, 7, 1e-3f, 2, 0, -1, 5, 4}}) {
    double mean = 0, squares = 0;
    for (const float v : values) mean += v / 8.0;
    for (const float v : values) squares += (v - mean) * (v - mean);
    float access[2][4];
    for (size_t i = 0; i < 8; ++i) access[i / 4][i % 4] = values[i];
    SumsAboutFirst sums{values[0], 0, 0, 0};
    for (const auto& each : access) sums.add(each);
    EXPECT_EQ(sums.count, 8);
    EXPECT_NEAR(sums.first + sums.sum / 8, mean, std::abs(mean) * 6e-8);
    EXPECT_NEAR(sums.squares_about_mean(sums.sum / 8), squares, squares * 1e-6);
  }
  SumsAboutFirst far{0, 0, 0, 0};
  far.add({1e30f, -1e30f});
  EXPECT_EQ(far.squares_about_mean(0), std::numeric_limits<float>::infinity());

  SumsAboutFirst outlier{1000, 0, 0, 0};  // the worst there is: 63 of 64 are far from the first
  double mean = 1000 / 64.0, squares = 0;
  for (int i = 0; i < 16; ++i) {
    float access[4];
    for (int e = 0; e < 4; ++e) access[e] = i + e == 0 ? 1000 : float(i * 4 + e) / 64;
    outlier.add(access);
    for (const float v : access) mean += i == 0 && v == 1000 ? 0 : v / 64.0;
  }
  for (int i = 0; i < 64; ++i) {
    const double d = (i == 0 ? 1000 : i / 64.0) - mean;
    squares += d * d;
  }
  EXPECT_NEAR(outlier.squares_about_mean(outlier.sum / 64), squares, squares * 1e-4);
}

TEST(ExpSum, KnowsRowsOfNothing) {
  const float infinity = std::numeric_limits<float>::infinity();
  ExpSum none = ExpSum::of_nothing();
  none.add({-infinity, -infinity});
  none.append(ExpSum::of(-infinity), 1);
  EXPECT_EQ(none.sum, 0);
  EXPECT_EQ(none.log_sum(), -infinity);
  none.add({2, -infinity});
  EXPECT_EQ(none.sum, 1);
  EXPECT_EQ(none.top, 2);

  ExpSum lowest = ExpSum::of(std::numeric_limits<float>::lowest());  // such a mask hides, and adds
  lowest.append(lowest, 1);
  EXPECT_EQ(lowest.sum, 2);
  lowest.append(ExpSum::of(3e38f), 2);
  EXPECT_EQ(lowest.sum, 1);

  ExpSum high = ExpSum::of(infinity);
  high.append(ExpSum::of(1), 1);
  EXPECT_TRUE(std::isnan(high.sum));
  EXPECT_EQ(high.log_sum(), infinity);
  EXPECT_TRUE(std::isnan(ExpSum::of(std::nanf("")).log_sum()));
}

TEST(Thread, AddsItsValuesInPairs) {
  const float large = 16777216;  // 2^24: adding 1 to it changes nothing
  float values[8] = {large, 1, 1, -large, 1, 1, 1, 1};
  EXPECT_EQ(in_pairs(values, Sum()), 5);  // 1 - large is exact; one by one it is 4
  float one[1] = {7};
  EXPECT_EQ(in_pairs(one, Sum()), 7);
  float tops[4] = {-3, 9, std::numeric_limits<float>::quiet_NaN(), 1};
  EXPECT_TRUE(std::isnan(in_pairs(tops, Max())));
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
  struct Shared {
    BlockReduce<float> reduce;
  };
  const auto got = run(3, [](int i) {
    auto& shared = static_shared<Shared>().reduce;
    const float sum = block_sum(shared, float(i));
    return sum * 1000 + block_max(shared, float(i));
  });
  expect_all(got, 4560.0f * 1000 + 95);
}

}  // namespace
}  // namespace tensorcraft
