// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/moe_router/moe_router.hpp"

#include "tensorcraft/cuda/device.hpp"
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
using test::values;

Tensor rows(const std::vector<float>& numbers, const Dims& shape, Device device) {
  return test::tensor_of(DType::float32, numbers, shape, device);
}

std::vector<std::string_view> variants(Device device) {
  if (device == Device::cpu()) return {"cpu", "reference"};
  return {"warp", "naive"};
}

TEST(MoeRouter, EqualScoresGoToTheLowestExpertAndNaNComesFirst) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  for (const Device d : places()) {
    const Tensor x = rows({kNaN, -0.0f, 5, kNaN, 5, 0, 2, 5}, {1, 8}, d);
    for (const std::string_view variant : variants(d)) {
      const MoeRouterResult r = moe_router(x, {.k = 8, .variant = variant});
      EXPECT_EQ(values<int32_t>(r.ids), (std::vector<int32_t>{0, 3, 2, 4, 7, 6, 1, 5}))
          << d << ' ' << variant;
    }
  }
}

// Experts whose logits float32 rounds to one score are still chosen by logit: 20 and 30 have the
// sigmoid 1.
TEST(MoeRouter, WithoutABiasLogitsDecide) {
  for (const Device d : places())
    for (const std::string_view variant : variants(d)) {
      const MoeRouterResult r = moe_router(
          rows({1, 20, 30, 25}, {1, 4}, d),
          {.k = 3, .scoring = MoeScoring::sigmoid, .renormalize = true, .variant = variant});
      EXPECT_EQ(values<int32_t>(r.ids), (std::vector<int32_t>{2, 3, 1})) << d << ' ' << variant;
    }
}

TEST(MoeRouter, ABiasChoosesButDoesNotWeigh) {
  for (const Device d : places()) {
    const Tensor bias = rows({0, 10, 0, 0}, {4}, d);
    for (const std::string_view variant : variants(d)) {
      const MoeRouterResult r =
          moe_router(rows({3, -1, 2, 1}, {1, 4}, d), {.k = 2,
                                                      .scoring = MoeScoring::sigmoid,
                                                      .bias = bias.view(),
                                                      .scale = 2,
                                                      .variant = variant});
      EXPECT_EQ(values<int32_t>(r.ids), (std::vector<int32_t>{1, 0})) << d << ' ' << variant;
      EXPECT_FLOAT_EQ(values(r.weights)[0], 2 / (1 + std::exp(1.0f)));
    }
  }
}

// Group 1 has the best expert, groups 0 and 2 the better pairs.
TEST(MoeRouter, GroupsAreChosenByTheirBestTwoIfThereIsABias) {
  for (const Device d : places()) {
    const Tensor x = rows({1, 1, 4, -9, 0.9f, 0.8f}, {1, 6}, d),
                 none = rows({0, 0, 0, 0, 0, 0}, {6}, d);
    for (const std::string_view variant : variants(d)) {
      MoeRouterOptions o{
          .k = 3, .scoring = MoeScoring::sigmoid, .groups = 3, .group_k = 2, .variant = variant};
      EXPECT_EQ(values<int32_t>(moe_router(x, o).ids), (std::vector<int32_t>{2, 0, 1}));
      o.bias = none.view();
      EXPECT_EQ(values<int32_t>(moe_router(x, o).ids), (std::vector<int32_t>{0, 1, 4}));
    }
  }
}

TEST(MoeRouter, ASumOfNothingIsNotBlownUp) {
  for (const Device d : places())
    for (const std::string_view variant : variants(d)) {
      const MoeRouterResult r = moe_router(
          rows({-300, -300, -300}, {1, 3}, d),
          {.k = 2, .scoring = MoeScoring::sigmoid, .renormalize = true, .variant = variant});
      EXPECT_EQ(values(r.weights), (std::vector<float>{0, 0})) << d << ' ' << variant;
      EXPECT_EQ(values<int32_t>(r.ids), (std::vector<int32_t>{0, 1}));
    }
}

TEST(MoeRouter, ATokenHasTheSameBitsInEveryBatch) {
  std::mt19937 random(7);
  const Tensor x = test::normal_tensor({37, 128}, random);
  const Tensor bias = test::normal_tensor({128}, random);
  for (const Device d : places()) {
    const Tensor on_device = x.to(d), its_bias = bias.to(d);
    const MoeRouterOptions o{
        .k = 8, .scoring = MoeScoring::sqrtsoftplus, .bias = its_bias.view(), .renormalize = true};
    const MoeRouterResult all = moe_router(on_device, o);
    const std::vector<float> weights = values(all.weights);
    for (const int64_t token : {0, 5, 36}) {
      const MoeRouterResult one = moe_router(on_device.view().slice(0, token, token + 1), o);
      EXPECT_EQ(values(one.weights),
                std::vector<float>(weights.begin() + token * 8, weights.begin() + token * 8 + 8));
    }
  }
}

TEST(MoeRouter, RefusesWhatItCannotRoute) {
  const Tensor x(DType::float32, {2, 12}), none(DType::float32, {2, 0}),
      many(DType::float32, {1, 513});
  const auto fails = [](const Tensor& logits, const MoeRouterOptions& o, const char* text) {
    expect_error(ErrorKind::value, [&] { moe_router(logits, o); }, text);
  };
  fails(x, {.k = 13},
        "moe_router: k must be in [1, 12], at most 16 and the 12 experts that a token may have, "
        "got 13");
  fails(x, {.k = 5, .groups = 6, .group_k = 2},
        "moe_router: k must be in [1, 4], at most 16 and the 4 experts that a token may have, got "
        "5");
  fails(x, {.groups = 5},
        "moe_router: groups must be in [1, 32] and divide the experts, 12, got 5");
  fails(x, {.groups = 4, .group_k = 5}, "moe_router: group_k must be in [1, 4], the groups, got 5");
  fails(x, {.group_k = 1},
        "moe_router: group_k is given without groups; give the number of groups");
  fails(x, {.scale = std::numeric_limits<float>::infinity()},
        "moe_router: scale must be finite, got inf");
  for (const Tensor* logits : {&none, &many})
    EXPECT_THROW(moe_router(*logits), Error) << logits->shape();
}

}  // namespace
}  // namespace tensorcraft
