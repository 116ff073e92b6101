// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/moe_combine/moe_combine.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/ops/moe_permute/moe_permute.hpp"
#include "tensorcraft/ops/moe_router/moe_router.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace tensorcraft {
namespace {

using test::expect_error;
using test::places;
using test::tensor_of;
using test::values;

TEST(MoeCombine, ASlotWithoutARowAddsNothingEvenIfItsWeightIsNaN) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  for (const Device d : places()) {
    const Tensor y = tensor_of<float>(DType::float32, {1, 2, 3, 4}, {2, 2}, d),
                 map = tensor_of<int32_t>(DType::int32, {-1, 1, -7, -1}, {2, 2}, d),
                 weights = tensor_of<float>(DType::float32, {kNaN, 2, kNaN, kNaN}, {2, 2}, d);
    EXPECT_EQ(values(moe_combine(y, map, weights)), (std::vector<float>{6, 8, 0, 0})) << d;
  }
}

// 1e8 + 1 - 1e8 is 0 in float32 and 1 in any other order.
TEST(MoeCombine, AddsInTheOrderOfSlots) {
  for (const Device d : places()) {
    const Tensor y = tensor_of<float>(DType::float32, {1e8f, 1, -1e8f, 0}, {4, 1}, d),
                 map = tensor_of<int32_t>(DType::int32, {0, 1, 2, 0, 2, 1}, {2, 3}, d),
                 weights = tensor_of<float>(DType::float32, {1, 1, 1, 1, 1, 1}, {2, 3}, d);
    EXPECT_EQ(values(moe_combine(y, map, weights)), (std::vector<float>{0, 1})) << d;
  }
}

TEST(MoeCombine, ARowPastTheLastIsAnErrorOfTheHostAndAddsNothingElsewhere) {
  for (const Device d : places()) {
    const Tensor y = tensor_of<float>(DType::float32, {1, 2}, {2, 1}, d),
                 map = tensor_of<int32_t>(DType::int32, {1, 2}, {1, 2}, d),
                 weights = tensor_of<float>(DType::float32, {1, 1}, {1, 2}, d);
    if (d == Device::cpu())
      expect_error(
          ErrorKind::index, [&] { moe_combine(y, map, weights); },
          "moe_combine: row_map: element 1 is 2, expected below 2, the rows of y, or negative for "
          "no row");
    else
      EXPECT_EQ(values(moe_combine(y, map, weights)), (std::vector<float>{2}));
  }
}

// Experts that change nothing: what is routed, sorted and combined is x times the sum of weights.
TEST(MoeCombine, BringsBackWhatPermuteMoved) {
  std::mt19937 random(11);
  for (const Device d : places()) {
    const Tensor x = test::normal_tensor({50, 24}, random).to(d),
                 logits = test::normal_tensor({50, 16}, random).to(d);
    const MoeRouterResult route = moe_router(logits, {.k = 4, .renormalize = true});
    const MoePermuteResult sorted = moe_permute(x, route.ids, {.num_experts = 16, .align = 8});
    const std::vector<float> back = values(moe_combine(sorted.out, sorted.row_map, route.weights)),
                             given = values(x);
    for (size_t i = 0; i < given.size(); ++i)
      ASSERT_NEAR(back[i], given[i], 1e-6 * (1 + std::abs(given[i]))) << d << " at " << i;
  }
}

}  // namespace
}  // namespace tensorcraft
