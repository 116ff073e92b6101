// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/residual_rows.hpp"

#include "tensorcraft/op/host/elements.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace tensorcraft::host {
namespace {

std::vector<float> floats(const float* row, int64_t n) { return {row, row + n}; }

TEST(ResidualRows, WithoutAResidualARowIsTheTensorItself) {
  std::array<float, 6> x = {1, 2, 3, 4, 5, 6};
  const ResidualRows rows(TensorView(x.data(), DType::float32, {2, 3}), {}, {});
  EXPECT_EQ(rows.read(1), x.data() + 3);
}

TEST(ResidualRows, AddsTheResidualAndStoresTheSum) {
  std::array<float, 6> x = {1, 2, 3, 4, 5, 6}, residual = {10, 20, 30, 40, 50, 60}, sum{};
  const auto view = [](auto& a) { return TensorView(a.data(), DType::float32, {2, 3}); };
  const ResidualRows rows(view(x), view(residual), view(sum));
  EXPECT_EQ(floats(rows.read(1), 3), (std::vector<float>{44, 55, 66}));
  EXPECT_EQ(sum, (std::array<float, 6>{0, 0, 0, 44, 55, 66}));
  EXPECT_EQ(x[3], 4);
}

TEST(ResidualRows, ReturnsTheSumBeforeItIsRounded) {
  std::array<uint16_t, 1> x{}, residual{}, sum{};
  const auto view = [](auto& a) { return TensorView(a.data(), DType::bfloat16, {1, 1}); };
  Elements(view(x)).set(0, 256);
  Elements(view(residual)).set(0, 0.5);
  EXPECT_EQ(*ResidualRows(view(x), view(residual), view(sum)).read(0), 256.5f);
  EXPECT_EQ(Elements(view(sum))[0], 256);
}

TEST(ResidualRows, TheSumMayReplaceTheResidual) {
  std::array<float, 4> x = {1, 2, 3, 4}, residual = {10, 20, 30, 40};
  // Columns 2 apart: the second and fourth element.
  const auto view = [](auto& a) {
    return TensorView(a.data() + 1, DType::float32, {1, 2}, {4, 2}, Device::cpu());
  };
  ResidualRows(view(x), view(residual), view(residual)).read(0);
  EXPECT_EQ(residual, (std::array<float, 4>{10, 22, 30, 44}));
}

TEST(ReadVector, ConvertsWhatIsNotFloat) {
  EXPECT_EQ(read_vector({}, Slot::line), nullptr);
  std::array<float, 2> x = {1, 2};
  EXPECT_EQ(read_vector(TensorView(x.data(), DType::float32, {2}), Slot::line), x.data());
  std::array<uint16_t, 2> half{};
  const TensorView view(half.data(), DType::float16, {2});
  Elements(view).set(1, -3);
  EXPECT_EQ(floats(read_vector(view, Slot::line), 2), (std::vector<float>{0, -3}));
}

}  // namespace
}  // namespace tensorcraft::host
