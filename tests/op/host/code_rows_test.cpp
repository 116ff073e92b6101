// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/code_rows.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tensorcraft::host {
namespace {

std::vector<double> codes_of(DType dtype, const std::vector<float>& row, float scale) {
  const Tensor out(dtype, {int64_t(row.size())});
  CodeRows(out, std::nullopt, scale).commit(0, row.data());
  const Elements elements(out);
  std::vector<double> codes;
  for (int64_t i = 0; i < out.size(); ++i) codes.push_back(elements[i]);
  return codes;
}

TEST(CodeRows, RoundToNearestEvenAndSaturate) {
  EXPECT_EQ(codes_of(DType::int8, {0.25f, 0.75f, 1.25f, -0.75f, 100, -100, NAN}, 0.5f),
            (std::vector<double>{0, 2, 2, -2, 127, -128, 0}));
  // Between 16 and 32 the steps of e4m3 are 2, those of e5m2 are 4.
  EXPECT_EQ(codes_of(DType::float8_e4m3fn, {34, 38, 2000, -INFINITY}, 2),
            (std::vector<double>{16, 20, 448, -448}));
  EXPECT_EQ(codes_of(DType::float8_e5m2, {36, 44, 1e9f, -INFINITY}, 2),
            (std::vector<double>{16, 24, 57344, -57344}));
}

// Half-way values tell a division from a multiplication by the reciprocal.
TEST(CodeRows, DivideByTheScale) {
  int differs = 0;
  for (int i = 1; i < 2000; ++i) {
    const float scale = float(i) * 0.01f, x = (float(i % 100) + 0.5f) * scale;
    const double code = codes_of(DType::int8, {x}, scale)[0];
    EXPECT_EQ(code, double(std::nearbyintf(x / scale)));
    differs += std::nearbyintf(x * (1 / scale)) != std::nearbyintf(x / scale);
  }
  EXPECT_GT(differs, 0) << "the test tells the two apart";
}

TEST(CodeRows, ARowsOwnScaleMakesItsLargestTheLargestCode) {
  const Tensor out(DType::int8, {3, 2}), scales(DType::float32, {3});
  const CodeRows rows(out, scales.view(), 0);
  const std::vector<std::vector<float>> values{{-254, 127}, {0, 0}, {1, NAN}};
  for (int64_t row = 0; row < 3; ++row) rows.commit(row, values[size_t(row)].data());
  const auto* codes = out.data_as<int8_t>();
  EXPECT_EQ(scales.data_as<float>()[0], 2);
  EXPECT_EQ(codes[0], -127);
  EXPECT_EQ(codes[1], 64);  // 63.5 goes to even
  EXPECT_EQ(scales.data_as<float>()[1], 1);
  EXPECT_EQ(codes[2], 0);
  EXPECT_TRUE(std::isnan(scales.data_as<float>()[2]));
}

TEST(CodeRows, TakeAnyStridesAndCodesAlone) {
  const Tensor out(DType::int8, {2, 3}), wrong(DType::float32, {2});
  const CodeRows rows(out.view().transpose(0, 1), std::nullopt, 1);
  for (int64_t row = 0; row < 3; ++row) {
    const float values[] = {float(row), float(10 + row)};
    rows.commit(row, values);
  }
  const auto* codes = out.data_as<int8_t>();
  EXPECT_EQ(std::vector<int>(codes, codes + 6), (std::vector<int>{0, 1, 2, 10, 11, 12}));
  EXPECT_THROW(CodeRows(wrong, std::nullopt, 1), Error);
}

}  // namespace
}  // namespace tensorcraft::host
