// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/moe_permute/moe_permute.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace tensorcraft {
namespace {

using test::expect_error;
using test::places;
using test::tensor_of;
using test::values;
using Integers = std::vector<int32_t>;

TEST(MoePermute, SortsByExpertThenTokenThenSlot) {
  for (const Device d : places()) {
    const Tensor ids = tensor_of<int32_t>(DType::int32, {2, 0, 2, -1, 0, 2}, {3, 2}, d),
                 x = tensor_of<float>(DType::float32, {1, 10, 2, 20, 3, 30}, {3, 2}, d);
    const MoePermuteResult r = moe_permute(x, ids, {.num_experts = 4});
    EXPECT_EQ(values<int32_t>(r.offsets), (Integers{0, 2, 2, 5, 5})) << d;
    EXPECT_EQ(values<int32_t>(r.row_map), (Integers{2, 0, 3, -1, 1, 4}));
    EXPECT_EQ(values<int32_t>(r.sources), (Integers{1, 4, 0, 2, 5, -1}));
    EXPECT_EQ(values(r.out), (std::vector<float>{1, 10, 3, 30, 1, 10, 2, 20, 3, 30, 0, 0}));
  }
}

TEST(MoePermute, AlignsGroupsByRowsOfZeros) {
  for (const Device d : places()) {
    const Tensor ids = tensor_of<int64_t>(DType::int64, {1, 7, 1, 0}, {4, 1}, d),
                 x = tensor_of<float>(DType::float32, {1, 2, 3, 4}, {4, 1}, d);
    const MoePermuteResult r = moe_permute(x, ids, {.num_experts = 2, .align = 4});
    EXPECT_EQ(values<int32_t>(r.offsets), (Integers{0, 4, 8})) << d;
    EXPECT_EQ(values<int32_t>(r.row_map), (Integers{4, -1, 5, 0}));
    EXPECT_EQ(values(r.out), (std::vector<float>{4, 0, 0, 0, 1, 3, 0, 0}));
  }
}

TEST(MoePermute, AnEmptyBatchHasEmptyGroups) {
  for (const Device d : places()) {
    const Tensor ids(DType::int32, {0, 2}, d), x(DType::float32, {0, 3}, d);
    const MoePermuteResult r = moe_permute(x, ids, {.num_experts = 2, .align = 2});
    EXPECT_EQ(values<int32_t>(r.offsets), (Integers{0, 0, 0})) << d;
    EXPECT_EQ(values<int32_t>(r.sources), (Integers{-1, -1}));
    EXPECT_EQ(values(r.out), std::vector<float>(6, 0));
  }
}

TEST(MoePermute, MapsThatNobodyWantsMayBeLeftOut) {
  std::mt19937 random(3);
  std::vector<int32_t> ids(600 * 4);
  for (int32_t& id : ids) id = int32_t(random() % 20) - 1;
  for (const Device d : places()) {
    const Tensor its_ids = tensor_of(DType::int32, ids, {600, 4}, d),
                 x = test::normal_tensor({600, 4}, random).to(d);
    const MoePermuteResult all = moe_permute(x, its_ids, {.num_experts = 19, .align = 4});
    Tensor out(DType::float32, all.out.shape(), d), offsets(DType::int32, {20}, d);
    moe_permute(out, x, its_ids, {.num_experts = 19, .align = 4});
    EXPECT_EQ(values(out), values(all.out)) << d;
    moe_sort(offsets, its_ids, {.num_experts = 19, .align = 4});
    EXPECT_EQ(values<int32_t>(offsets), values<int32_t>(all.offsets));
  }
}

TEST(MoePermute, RefusesWhatItCannotSort) {
  const Tensor x(DType::float32, {3, 2}), ids(DType::int32, {3, 2}), none(DType::float32, {3, 0});
  expect_error(
      ErrorKind::value, [&] { moe_sort(ids, {.num_experts = 1025}); },
      "moe_sort: num_experts must be in [1, 1024], got 1025");
  expect_error(
      ErrorKind::value, [&] { moe_permute(x, ids, {.align = 0}); },
      "moe_permute: align must be in [1, 2^31), got 0");
  expect_error(
      ErrorKind::unsupported, [&] { moe_permute(x, ids, {.align = 2147483640}); },
      "moe_permute: ids: 2147483640 rows are not supported, expected below 2^31 - 32; route fewer "
      "tokens at once, or align to less");
  expect_error(
      ErrorKind::value, [&] { moe_permute(none, ids); },
      "moe_permute: x: a row must have at least one element, got shape [3, 0]");
}

}  // namespace
}  // namespace tensorcraft
