// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gemm/groups/group_scales.hpp"

#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/gemm/gemm.hpp"
#include "tensorcraft/ops/gemm/groups/grouped_gemm.hpp"
#include "tensorcraft/ops/gemm/plan.h"
#include "tests/support/expect_error.hpp"
#include "tests/support/gemm_plans.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

// Groups of float8: their scales, and the rungs that take them.
namespace tensorcraft {
namespace {

using kernel::gemm::Config, kernel::gemm::Promotion;
using test::doubles, test::expect_error, test::integers, test::normal_tensor, test::places;

using Integers = std::vector<int32_t>;

// Factors between 0.5 and 2, none like another.
Tensor scales(const Dims& shape, Device device = Device::cpu()) {
  Tensor t(DType::float32, shape);
  for (int64_t i = 0; i < t.size(); ++i)
    t.data_as<float>()[i] = std::exp2(float(i * 37 % 101) / 50 - 1);
  return t.to(device);
}
Tensor zeros(DType dtype, const Dims& shape) {
  Tensor t(dtype, shape);
  std::memset(t.data(), 0, t.nbytes());
  return t;
}
// NaN in every dtype of floats.
void poison(const TensorView& rows) { std::memset(rows.writable_data(), 0xff, rows.nbytes()); }

// A group is what gemm makes of its rows, its matrix and the scales of both.
TEST(GroupScales, AreThoseOfTheGroup) {
  constexpr int64_t kRows = 90, kK = 272, kN = 136;
  const Integers offsets{0, 7, 7, 71, 90};
  const Tensor a = normal_tensor({kRows, kK}, DType::float8_e4m3fn, 1),
               b = normal_tensor({4, kN, kK}, DType::float8_e4m3fn, 2);
  struct Call {
    Dims a, b;
  };
  for (const Call& call : {Call{{kRows, 3}, {4, 2, 3}}, Call{{kRows, 3}, {4, kN, 3}},
                           Call{{kRows, 1}, {4, kN}}, Call{{kRows, 1}, {4}}}) {
    const Tensor a_scale = scales(call.a), b_scale = scales(call.b);
    for (const Device d : places()) {
      const Tensor of_a = a_scale.to(d), of_b = b_scale.to(d);
      const Tensor out = grouped_gemm(a.to(d), b.to(d),
                                      {.offsets = integers(offsets, d),
                                       .transpose_b = true,
                                       .a_scale = of_a,
                                       .b_scale = of_b,
                                       .out_dtype = DType::float32})
                             .to(Device::cpu());
      for (int64_t g = 0; g < 4; ++g) {
        const int64_t first = offsets[size_t(g)], end = offsets[size_t(g) + 1];
        if (first == end) continue;
        const Tensor one = gemm(a.view().slice(0, first, end), b.view().select(0, g),
                                {.transpose_b = true,
                                 .a_scale = a_scale.view().slice(0, first, end),
                                 .b_scale = b_scale.view().select(0, g),
                                 .out_dtype = DType::float32});
        test::expect_close(copy(out.view().slice(0, first, end)), one, 0.005, 0.05);
      }
    }
  }
}

// Neither rows nor scales behind the count of a group reach a result, and results there stay.
TEST(GroupScales, WhatIsBehindTheCountIsNotUsed) {
  constexpr int64_t kGroups = 3, kRows = 70, kK = 144, kN = 64;
  const Integers counts{5, 0, 66};
  Tensor a = normal_tensor({kGroups, kRows, kK}, DType::float8_e4m3fn),
         a_scale = scales({kGroups, kRows, 2});
  for (int64_t g = 0; g < kGroups; ++g) {
    poison(a.view().select(0, g).slice(0, counts[size_t(g)], kRows));
    poison(a_scale.view().select(0, g).slice(0, counts[size_t(g)], kRows));
  }
  const Tensor b = normal_tensor({kGroups, kN, kK}, DType::float8_e4m3fn, 2),
               b_scale = scales({kGroups, 1, 2});
  for (const Device d : places())
    for (const DType dtype : {DType::bfloat16, DType::float32}) {
      Tensor host(dtype, {kGroups, kRows, kN});
      poison(host.view());
      const Tensor out = host.to(d), of_a = a_scale.to(d), of_b = b_scale.to(d);
      masked_gemm(out, a.to(d), b.to(d), integers(counts, d),
                  {.transpose_b = true,
                   .a_scale = of_a,
                   .b_scale = of_b,
                   .expected_rows = 24,
                   .out_dtype = dtype});
      const auto got = doubles(out);
      for (int64_t i = 0; i < out.size(); ++i) {
        const int64_t row = i / kN % kRows, group = i / kN / kRows;
        ASSERT_EQ(std::isnan(got[size_t(i)]), row >= counts[size_t(group)])
            << dtype << " on " << d << ": group " << group << ", row " << row;
      }
    }
}

TEST(GroupScales, HaveShapesOfTheirOwn) {
  const Tensor a = zeros(DType::float8_e4m3fn, {6, 256}),
               b = zeros(DType::float8_e4m3fn, {2, 200, 256}), sizes = integers({2, 4});
  const auto with = [&](const Tensor& of_a, const Tensor& of_b) {
    grouped_gemm(a, b, {.sizes = sizes, .transpose_b = true, .a_scale = of_a, .b_scale = of_b});
  };
  EXPECT_NO_THROW(with(scales({6, 2}), scales({2, 2, 2})));
  EXPECT_NO_THROW(with(scales({}), scales({2, 200})));
  EXPECT_NO_THROW(with(scales({6, 1}), scales({2, 200, 1})));  // as quantize() gives them
  expect_error(
      ErrorKind::value, [&] { with(scales({6, 2}), scales({2, 2})); },
      "grouped_gemm: b_scale: expected one for squares of 128 x 128 of b, [2, 2, 2], or one for "
      "128 "
      "elements of a column, [2, 200, 2], as a_scale is by block, got shape [2, 2]");
  expect_error(
      ErrorKind::value, [&] { with(scales({6, 1}), scales({2, 2, 2})); },
      "grouped_gemm: a_scale: expected one for 128 elements of a row of a, [6, 2], as b_scale is "
      "by "
      "block, got shape [6, 1]");
  expect_error(
      ErrorKind::value, [&] { with(scales({6}), scales({2})); },
      "grouped_gemm: a_scale: expected one number, [6, 1], or one for 128 elements of a row of a, "
      "[6, 2], got shape [6]");
  expect_error(
      ErrorKind::value, [&] { with(scales({6, 1}), scales({200})); },
      "grouped_gemm: b_scale: expected one number, one a group, [2], one a column, [2, 200] or "
      "[2, 200, 1], or one for squares of 128 x 128 of b, [2, 2, 2], got shape [200]");
  const Tensor batches = zeros(DType::float8_e4m3fn, {2, 3, 256});
  expect_error(
      ErrorKind::value,
      [&] {
        masked_gemm(batches, b, sizes,
                    {.transpose_b = true, .a_scale = scales({3, 2}), .b_scale = scales({2, 2, 2})});
      },
      "masked_gemm: a_scale: expected one for 128 elements of a row of a, [2, 3, 2], as b_scale is "
      "by "
      "block, got shape [3, 2]");
}

TEST(GroupScales, AreOfFloat8) {
  const Tensor sizes = integers({2, 4}), one = scales({});
  const Tensor a = zeros(DType::bfloat16, {6, 16}), b = zeros(DType::bfloat16, {2, 16, 8});
  expect_error(
      ErrorKind::type, [&] { grouped_gemm(a, b, {.sizes = sizes, .a_scale = one}); },
      "grouped_gemm: a_scale is a factor of float8 operands, and a is bfloat16; leave it out");
  const Tensor codes = zeros(DType::float8_e4m3fn, {6, 16}),
               weights = zeros(DType::float8_e4m3fn, {2, 16, 8});
  const Tensor wrong(DType::float16, {1});
  expect_error(
      ErrorKind::type, [&] { grouped_gemm(codes, weights, {.sizes = sizes, .b_scale = wrong}); },
      "grouped_gemm: b_scale: Dtype value [float16] not in the allowed options: [float32]; "
      "tc.astype(b_scale, tc.float32) converts it");
  expect_error(
      ErrorKind::type,
      [&] { grouped_gemm(codes, weights, {.sizes = sizes, .out_dtype = DType::float8_e4m3fn}); },
      "grouped_gemm: out_dtype of float8_e4m3fn operands must be float32, float16 or bfloat16, got "
      "float8_e4m3fn");
  expect_error(
      ErrorKind::value,
      [&] { grouped_gemm(a, zeros(DType::bfloat16, {16, 8}), {.sizes = sizes, .a_scale = one}); },
      "grouped_gemm: a_scale is for groups of rows; groups along k have none: leave it out");
  EXPECT_EQ(grouped_gemm(codes, weights, {.sizes = sizes}).dtype(), DType::bfloat16);
}

// Returns the Config that groups of rows on an H100 take.
Config planned(int64_t groups, int64_t rows, int64_t n, int64_t k, std::string_view variant) {
  alignas(16) static std::byte memory[16];
  const op::Operator& op = find_operator("grouped_gemm");
  const std::vector<TensorView> inputs{{memory, DType::float8_e4m3fn, {rows, k}},
                                       {memory, DType::float8_e4m3fn, {groups, n, k}}};
  const std::vector<TensorView> outputs{
      {reinterpret_cast<void*>(uintptr_t(1) << 46), DType::bfloat16, {rows, n}}};
  const auto& options = op.description().options;
  std::vector<op::Value> given(options.size());
  const int64_t blocks = div_ceil(k, kernel::gemm::kScaleBlock);
  for (size_t i = 0; i < options.size(); ++i) {
    const std::string_view name = options[i].name;
    if (name == "offsets") given[i] = TensorView(memory, DType::int32, {groups + 1});
    if (name == "transpose_b") given[i] = true;
    if (name == "a_scale") given[i] = TensorView(memory, DType::float32, {rows, blocks});
    if (name == "b_scale")
      given[i] = TensorView(memory, DType::float32, {groups, div_ceil(n, int64_t(128)), blocks});
  }
  const auto e = op.explain(outputs, {inputs, given, {}}, device_info_of_arch("sm_90a"));
  EXPECT_EQ(e.variant, variant);
  Config c;
  std::memcpy(&c, test::row_of(e, e.variant).plan->main().kernel.config.data(), sizeof(c));
  return c;
}

TEST(GroupScales, TakeTheRungOnWgmma) {
  const Config large = planned(8, 8 * 4096, 7168, 2048, "persistent");
  EXPECT_EQ(large.promotion, Promotion::by_square);
  EXPECT_EQ(large.block_k, 128);
  EXPECT_GE(large.block_m, 128);
  const Config few = planned(64, 64 * 8, 7168, 2048, "persistent");
  EXPECT_EQ(few.swap, 1);
  EXPECT_EQ(few.block_n, 16);
  planned(4, 100, 64, 72, "naive");  // lines that the copy engine does not take
}

}  // namespace
}  // namespace tensorcraft
