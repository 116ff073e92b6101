// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gemm/groups/grouped_gemm.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/gemm/gemm.hpp"
#include "tensorcraft/ops/gemm/plan.h"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

namespace tensorcraft {
namespace {

using kernel::gemm::Config;
using test::expect_error;
using test::integers;
using test::places;
using test::values;
using Integers = std::vector<int32_t>;

Tensor ones(const Dims& shape, Device device = Device::cpu()) {
  Tensor t(DType::float32, shape);
  std::fill_n(t.data_as<float>(), t.size(), 1.0f);
  return t.to(device);
}
Tensor poisoned(DType dtype, const Dims& shape, Device device) {
  Tensor t(dtype, shape);
  std::memset(t.data(), 0xff, t.nbytes());
  return t.to(device);
}

TEST(GroupedGemm, AGroupIsAProductOfItsOwn) {
  constexpr int64_t kRows = 90, kK = 64, kN = 40;
  const Integers offsets{0, 7, 7, 71, 90};
  for (const Device d : places()) {
    const Tensor a = test::normal_tensor({kRows, kK}, DType::bfloat16, 1).to(d),
                 b = test::normal_tensor({4, kK, kN}, DType::bfloat16, 2).to(d),
                 at = integers(offsets, d);
    const Tensor out = grouped_gemm(a, b, {.offsets = at});
    for (int64_t g = 0; g < 4; ++g) {
      const TensorView rows = a.view().slice(0, offsets[size_t(g)], offsets[size_t(g) + 1]);
      if (rows.size() == 0) continue;
      const Tensor one = gemm(rows, b.view().select(0, g));
      const Tensor part = copy(out.view().slice(0, offsets[size_t(g)], offsets[size_t(g) + 1]));
      test::expect_close(part, one, 0.01, 0.02);
    }
  }
}

// Rows of b that no group has are NaN, as are those of the group before and the one after.
TEST(GroupedGemm, AGroupAlongKIsAProductOfItsPartOfK) {
  constexpr int64_t kM = 64, kK = 70, kN = 40;
  const Integers offsets{3, 3, 20, 37, 66};
  for (const Device d : places())
    for (const DType dtype : {DType::float32, DType::bfloat16}) {
      const Tensor columns = test::normal_tensor({kK, kM}, dtype, 1),
                   b = test::normal_tensor({kK, kN}, dtype, 2);
      const Tensor all = grouped_gemm(columns.to(d).view().transpose(0, 1), b.to(d),
                                      {.offsets = integers(offsets, d)});
      ASSERT_EQ(all.shape(), (Dims{4, kM, kN}));
      for (const double x : test::doubles(copy(all.view().select(0, 0)))) ASSERT_EQ(x, 0) << d;
      for (int64_t g = 1; g < 4; ++g) {
        const int64_t first = offsets[size_t(g)], end = offsets[size_t(g) + 1];
        const Tensor one = gemm(columns.view().slice(0, first, end).transpose(0, 1),
                                b.view().slice(0, first, end));
        test::expect_close(copy(all.view().select(0, g)), one, 0.01, 0.02);
        Tensor poisoned = astype(b, {.dtype = DType::float32});
        for (int64_t row = 0; row < kK; ++row)
          if (row < first || row >= end) std::fill_n(poisoned.data_as<float>() + row * kN, kN, NAN);
        const Tensor other = grouped_gemm(columns.to(d).view().transpose(0, 1),
                                          astype(poisoned, {.dtype = dtype}).to(d),
                                          {.offsets = integers(offsets, d)});
        EXPECT_EQ(test::doubles(copy(other.view().select(0, g))),
                  test::doubles(copy(all.view().select(0, g))))
            << dtype << " on " << d << ", group " << g;
      }
    }
}

TEST(GroupedGemm, GroupsAlongKHaveArraysOfTheirOwn) {
  const Tensor a = ones({3, 6}), b = ones({6, 2}), sizes = integers({2, 4});
  const std::string wrong =
      "grouped_gemm: b is one matrix, so groups are along k; expected one of offsets and sizes, "
      "which say how many there are";
  expect_error(ErrorKind::value, [&] { grouped_gemm(a, b, {}); }, wrong);
  expect_error(ErrorKind::value, [&] { grouped_gemm(a, b, {.ids = sizes}); }, wrong);
  expect_error(
      ErrorKind::value, [&] { grouped_gemm(a, b, {.offsets = sizes, .sizes = sizes}); }, wrong);
  expect_error(
      ErrorKind::value, [&] { grouped_gemm(a, b, {.sizes = sizes, .gated = Gate::silu}); },
      "grouped_gemm: gated is for groups of rows; groups along k have none: leave it out");
  expect_error(
      ErrorKind::value, [&] { grouped_gemm(a, b, {.sizes = integers({2, 5})}); },
      "grouped_gemm: sizes: group 1 would have the rows 2 to 7, and b has rows 0 to 6; groups "
      "must ascend within them");
  if (places().back() != Device::simt()) GTEST_SKIP() << "built without the emulator";
  const Device d = Device::simt();
  constexpr int32_t kLeast = std::numeric_limits<int32_t>::min(),
                    kMost = std::numeric_limits<int32_t>::max();
  for (const Integers& at : {Integers{kLeast, kMost, 5, kMost}, Integers{-5, 4, 3, 9}})
    EXPECT_NO_THROW(grouped_gemm(a.to(d), b.to(d), {.offsets = integers(at, d)}));
  for (const Integers& each : {Integers{kMost, kMost, kMost}, Integers{-1, 50, 5}})
    EXPECT_NO_THROW(grouped_gemm(a.to(d), b.to(d), {.sizes = integers(each, d)}));
}

TEST(GroupedGemm, TheThreeArraysSayTheSame) {
  for (const Device d : places()) {
    const Tensor a = test::normal_tensor({6, 5}).to(d), b = test::normal_tensor({3, 5, 4}).to(d);
    const Tensor offsets = integers({0, 2, 2, 6}, d), sizes = integers({2, 0, 4}, d),
                 ids = integers({0, 0, 2, 2, 2, 2}, d);
    const auto expected = values(grouped_gemm(a, b, {.offsets = offsets}));
    EXPECT_EQ(values(grouped_gemm(a, b, {.sizes = sizes})), expected) << d;
    EXPECT_EQ(values(grouped_gemm(a, b, {.ids = ids})), expected) << d;
  }
}

TEST(GroupedGemm, RowsOfNoGroupAreNotWritten) {
  for (const Device d : places()) {
    for (const DType dtype : {DType::float32, DType::bfloat16}) {
      const Tensor a = test::normal_tensor({80, 64}, dtype).to(d),
                   b = test::normal_tensor({2, 64, 32}, dtype).to(d),
                   offsets = integers({3, 40, 66}, d);
      const Tensor out = poisoned(dtype, {80, 32}, d);
      grouped_gemm(out, a, b, {.offsets = offsets});
      const auto got = test::doubles(out);
      for (int64_t row = 0; row < 80; ++row)
        for (int64_t col = 0; col < 32; ++col)
          ASSERT_EQ(std::isnan(got[size_t(row * 32 + col)]), row < 3 || row >= 66)
              << dtype << " on " << d << " at " << row << ", " << col;
    }
  }
}

TEST(GroupedGemm, ResultsRepeatToTheBit) {
  for (const Device d : places()) {
    const Tensor a = test::normal_tensor({70, 128}, DType::bfloat16).to(d),
                 b = test::normal_tensor({5, 128, 48}, DType::bfloat16).to(d),
                 sizes = integers({1, 33, 0, 20, 16}, d);
    const auto first = values<uint16_t>(grouped_gemm(a, b, {.sizes = sizes}));
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(values<uint16_t>(grouped_gemm(a, b, {.sizes = sizes})), first) << d;
  }
}

TEST(GroupedGemm, OnTheHostArraysThatMakeNoGroupsAreErrors) {
  const Tensor a = ones({6, 2}), b = ones({2, 2, 3});
  const auto with_offsets = [&](const Integers& at) {
    grouped_gemm(a, b, {.offsets = integers(at)});
  };
  expect_error(
      ErrorKind::value, [&] { with_offsets({0, 4, 3}); },
      "grouped_gemm: offsets: group 1 would have the rows 4 to 3, and a has rows 0 to 6; groups "
      "must ascend within them");
  expect_error(
      ErrorKind::value, [&] { with_offsets({0, 4, 7}); },
      "grouped_gemm: offsets: group 1 would have the rows 4 to 7, and a has rows 0 to 6; groups "
      "must ascend within them");
  expect_error(
      ErrorKind::value, [&] { grouped_gemm(a, b, {.sizes = integers({4, 3})}); },
      "grouped_gemm: sizes: group 1 would have the rows 4 to 7, and a has rows 0 to 6; groups "
      "must ascend within them");
  expect_error(
      ErrorKind::value, [&] { grouped_gemm(a, b, {.ids = integers({0, 0, 1, 1, 0, -1})}); },
      "grouped_gemm: ids: row 4 is of group 0, whose rows ended at 2; sort rows by group, as "
      "moe_permute does");
  expect_error(
      ErrorKind::value, [&] { masked_gemm(ones({2, 3, 2}), b, integers({3, 4})); },
      "masked_gemm: counts: group 1 has 4 rows, expected 0 to 3");
}

TEST(GroupedGemm, OnADeviceSuchArraysTouchNothingElse) {
  if (places().back() != Device::simt()) GTEST_SKIP() << "built without the emulator";
  const Device d = Device::simt();
  constexpr int32_t kLeast = std::numeric_limits<int32_t>::min(),
                    kMost = std::numeric_limits<int32_t>::max();
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    const Tensor a = test::normal_tensor({70, 64}, dtype).to(d),
                 b = test::normal_tensor({3, 64, 64}, dtype).to(d);
    for (const Integers& at :
         {Integers{kLeast, kMost, 5, kMost}, Integers{60, 10, 70, 0}, Integers{-5, 1000, 3, 2}})
      EXPECT_NO_THROW(grouped_gemm(a, b, {.offsets = integers(at, d)}));
    for (const Integers& sizes : {Integers{kMost, kMost, kMost}, Integers{-1, 50, 50}})
      EXPECT_NO_THROW(grouped_gemm(a, b, {.sizes = integers(sizes, d)}));
    Integers ids(70);
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = int32_t(i * 7 % 5) - 1;
    EXPECT_NO_THROW(grouped_gemm(a, b, {.ids = integers(ids, d)}));
    const Tensor batches = test::normal_tensor({3, 20, 64}, dtype).to(d);
    EXPECT_NO_THROW(masked_gemm(batches, b, integers({kLeast, 21, kMost}, d)));
  }
}

TEST(GroupedGemm, RefusesWhatItCannotMultiply) {
  const Tensor a = ones({6, 2}), b = ones({2, 2, 3}), sizes = integers({2, 4});
  expect_error(
      ErrorKind::value, [&] { grouped_gemm(a, b, {}); },
      "grouped_gemm: expected one of offsets, sizes and ids, which say what rows a group has");
  expect_error(
      ErrorKind::value, [&] { grouped_gemm(a, b, {.offsets = sizes, .sizes = sizes}); },
      "grouped_gemm: expected one of offsets, sizes and ids, which say what rows a group has");
  expect_error(
      ErrorKind::value, [&] { grouped_gemm(ones({2}), b, {.sizes = sizes}); },
      "grouped_gemm: a: expected 2 dimensions, got shape [2]");
  expect_error(
      ErrorKind::value,
      [&] {
        grouped_gemm(a, ones({2, 2, 4}),
                     {.sizes = sizes, .activation = Activation::relu, .gated = Gate::silu});
      },
      "grouped_gemm: gated has an activation of its own; leave activation out");
  expect_error(
      ErrorKind::value, [&] { grouped_gemm(a, b, {.sizes = sizes, .gated = Gate::silu}); },
      "grouped_gemm: b: gated needs an even number of columns, first the gates and then as many "
      "others, got 3");
  expect_error(
      ErrorKind::type, [&] { grouped_gemm(a, b, {.sizes = sizes, .out_dtype = DType::bfloat16}); },
      "grouped_gemm: out_dtype must be float32 (the dtype of a) or float32, got bfloat16");
  expect_error(
      ErrorKind::value, [&] { masked_gemm(ones({2, 3, 2}), b, sizes, {.expected_rows = -1}); },
      "masked_gemm: expected_rows must be at least 0, got -1");
}

// Explains what a call on an H100 takes: rows x k in so many groups, each by k x n.
op::Explanation explained(int64_t groups, int64_t rows, int64_t n, int64_t k,
                          bool is_a_along_k = true) {
  alignas(16) static std::byte memory[16];
  const op::Operator& op = find_operator("grouped_gemm");
  const TensorView offsets(memory, DType::int32, {groups + 1});
  const Dims strides = is_a_along_k ? Dims{k, 1} : Dims{1, rows};
  const std::vector<TensorView> inputs{{memory, DType::bfloat16, {rows, k}, strides, Device::cpu()},
                                       {memory, DType::bfloat16, {groups, n, k}}};
  const std::vector<TensorView> outputs{
      {reinterpret_cast<void*>(uintptr_t(1) << 46), DType::bfloat16, {rows, n}}};
  const auto& options = op.description().options;
  std::vector<op::Value> given(options.size());
  for (size_t i = 0; i < options.size(); ++i) {
    if (options[i].name == "offsets") given[i] = offsets;
    if (options[i].name == "transpose_b") given[i] = true;
  }
  return op.explain(outputs, {inputs, given, {}}, device_info_of_arch("sm_90a"));
}
const op::Step& taken(const op::Explanation& e) {
  return std::ranges::find(e.variants, e.variant,
                           [](const op::Considered& c) { return c.variant.name; })
      ->plan->main();
}
Config config_of(const op::Step& step) {
  Config c;
  std::memcpy(&c, step.kernel.config.data(), sizeof(c));
  return c;
}

TEST(GroupedGemm, TheTileIsThatOfTheAverageGroup) {
  const auto tokens_of = [](int64_t groups, int64_t rows) {
    const auto e = explained(groups, rows, 2048, 2048);
    EXPECT_EQ(e.variant, "persistent");
    const Config c = config_of(taken(e));
    EXPECT_TRUE(c.has_groups);
    return c.swap ? c.block_n : c.block_m;
  };
  EXPECT_EQ(tokens_of(64, 64 * 8), 16);
  EXPECT_LE(tokens_of(64, 64 * 64), 64);
  EXPECT_GE(tokens_of(8, 8 * 4096), 128);
}

TEST(GroupedGemm, BlocksStayForAllTilesThatTheDeviceMayFind) {
  const auto e = explained(64, 64 * 128, 4096, 2048);
  EXPECT_EQ(taken(e).launch.grid.x, 132u);
  EXPECT_LE(taken(explained(1, 16, 64, 512)).launch.grid.x, 2u);
}

// The copy engine takes a first element that is not at a multiple of 16 bytes for an illegal
// instruction, and cp.async one that is not at a multiple of 4.
TEST(GroupedGemm, RowsAcrossKMayBeginAnywhereOnlyForWhatReadsSingleElements) {
  for (const int64_t rows : {88, 1024}) {
    const auto e = explained(3, rows, 64, 64, false);
    for (const op::Considered& row : e.variants) {
      if (!row.accepted || !row.plan) continue;
      const Config c = config_of(row.plan->main());
      EXPECT_EQ(c.a_vector, 1) << row.variant.name;
      EXPECT_EQ(c.consumers, 0) << row.variant.name;
      EXPECT_LE(c.stages, 1) << row.variant.name;
    }
  }
}

}  // namespace
}  // namespace tensorcraft
