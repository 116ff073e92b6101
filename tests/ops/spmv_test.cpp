// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/spmv/spmv.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/op/checks/csr.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace tensorcraft {
namespace {

using test::expect_error;
using test::places;
using test::values;

constexpr float infinity = std::numeric_limits<float>::infinity();

std::vector<std::string> variants_on(Device d) {
  std::vector<std::string> names;
  for (const op::VariantInfo& v : find_operator("spmv").description().variants)
    if ((v.device == DeviceType::cpu) == (d == Device::cpu())) names.emplace_back(v.name);
  return names;
}

// A row that is many tiles of the merge path, between short ones.
TEST(Spmv, ARowOfAMillionIsOneSum) {
  constexpr int64_t kLong = 1'000'000;
  std::vector<int32_t> indptr = {0, 3, 3, 3 + int32_t(kLong), 5 + int32_t(kLong)};
  std::vector<int32_t> indices(size_t(indptr.back()));
  std::vector<float> data(indices.size());
  for (size_t k = 0; k < indices.size(); ++k) {
    indices[k] = int32_t(k % 1000);
    data[k] = float(int(k % 7) - 3);
  }
  const std::vector<float> x(1000, 1.0f);
  double sum = 0;
  for (size_t k = 3; k < 3 + size_t(kLong); ++k) sum += data[k];
  for (const Device d : places()) {
    const Tensor y = spmv(Tensor::from(data, {int64_t(data.size())}, d),
                          Tensor::from(indices, {int64_t(data.size())}, d),
                          Tensor::from(indptr, {5}, d), Tensor::from(x, {1000}, d));
    EXPECT_EQ(values(y)[2], float(sum)) << d;  // whole numbers: exact in any order
    EXPECT_EQ(values(y)[1], 0.0f);
  }
}

TEST(Spmv, KeepsNanAndInfinityAndDoesNotReadWhatBetaLeavesOut) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Device d : places()) {
    const auto data = Tensor::from({1.0f, nan, infinity, 2.0f}, {4}, d);
    const auto indices = Tensor::from({0, 1, 0, 1}, {4}, d),
               indptr = Tensor::from({0, 1, 2, 3, 4, 4}, {6}, d);
    const auto x = Tensor::from({1.0f, 1.0f}, {2}, d);
    const auto c = Tensor::from({nan, nan, nan, nan, nan}, {5}, d);
    for (const std::string& variant : variants_on(d)) {
      const auto y =
          values(spmv(data, indices, indptr, x, {.c = c, .beta = 0.0f, .variant = variant}));
      EXPECT_EQ(y[0], 1.0f) << variant;
      EXPECT_TRUE(std::isnan(y[1])) << variant;
      EXPECT_EQ(y[2], infinity);
      EXPECT_EQ(y[3], 2.0f);
      EXPECT_EQ(y[4], 0.0f);
    }
  }
}

// Two steps of shortest paths: 0 -> 1 (2), 0 -> 2 (7), 1 -> 2 (3), by rows of what comes in.
TEST(Spmv, ASemiringFindsShortestPaths) {
  for (const Device d : places()) {
    const auto data = Tensor::from({2.0f, 7.0f, 3.0f}, {3}, d);
    const auto indices = Tensor::from({0, 0, 1}, {3}, d),
               indptr = Tensor::from({0, 0, 1, 3}, {4}, d);
    for (const std::string& variant : variants_on(d)) {
      const SpmvOptions step{.combine = "x + a", .reduce = Reduction::min, .variant = variant};
      const Tensor one =
          spmv(data, indices, indptr, Tensor::from({0.0f, infinity, infinity}, {3}, d), step);
      EXPECT_EQ(values(one), (std::vector<float>{infinity, 2, 7})) << variant << " on " << d;
      EXPECT_EQ(values(spmv(data, indices, indptr, one, step)),
                (std::vector<float>{infinity, infinity, 5}));
    }
  }
}

TEST(Spmv, RowsWithoutElementsHaveWhatChangesNothing) {
  for (const Device d : places()) {
    const Tensor data(DType::float32, {0}, d), indices(DType::int32, {0}, d);
    const auto indptr = Tensor::from({0, 0}, {2}, d), x = Tensor::from({1.0f}, {1}, d);
    const auto with = [&](Reduction reduce) {
      return values(spmv(data, indices, indptr, x, {.reduce = reduce}))[0];
    };
    EXPECT_EQ(with(Reduction::sum), 0.0f);
    EXPECT_EQ(with(Reduction::max), -infinity);
    EXPECT_EQ(with(Reduction::min), infinity);
    EXPECT_EQ(with(Reduction::prod), 1.0f);
  }
}

TEST(Spmv, AMatrixThatIsKnownToBeSkewedTakesEqualParts) {
  const Tensor data(DType::float32, {40000}), indices(DType::int32, {40000}),
      indptr(DType::int32, {10001}), x(DType::float32, {10000});
  const auto chosen = [&](int64_t longest) {
    std::vector<op::Value> options(find_operator("spmv").description().options.size());
    options[5] = longest;
    std::vector<TensorView> inputs{data, indices, indptr, x};
    const std::vector<TensorView> outputs{TensorView(nullptr, DType::float32, {10000})};
    return std::string(find_operator("spmv")
                           .explain(outputs, {inputs, options}, device_info_of_arch("sm_90a"))
                           .variant);
  };
  EXPECT_EQ(chosen(-1), "sub_warp");
  EXPECT_EQ(chosen(40), "sub_warp");
  EXPECT_EQ(chosen(5000), "merge_path");
}

// Ones in column 1 of equal rows: every sum is a whole number.
TEST(SpmvOnGpu, CountsMoreThan2To31Elements) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  const Device device = Device::cuda(0);
  constexpr int64_t kRows = 2048, kEach = (int64_t(1) << 20) + 3;
  const Tensor data(DType::bfloat16, {kRows * kEach}, device),
      indices(DType::int64, {kRows * kEach}, device);
  fill(data, data, {.value = 1});
  fill(indices, indices, {.value = 1});
  std::vector<int64_t> indptr;
  for (int64_t row = 0; row <= kRows; ++row) indptr.push_back(row * kEach);
  const Tensor starts = Tensor::from(indptr, {kRows + 1}, device);
  const Tensor x = Tensor::from({bf16(0.0f), bf16(1.0f), bf16(0.0f)}, {3}, device);
  for (const char* variant : {"naive", "warp", "sub_warp", "merge_path"}) {
    const Tensor y = spmv(data, indices, starts, x, {.variant = variant});
    for (const bf16 sum : y.to_vector<bf16>()) ASSERT_EQ(float(sum), 0x1p20f) << variant;
    const Tensor z = spmm(data, indices, starts, x.reshape({3, 1}),
                          {.variant = std::string_view(variant) == "sub_warp" ? "warp" : variant});
    for (const bf16 sum : z.to_vector<bf16>()) ASSERT_EQ(float(sum), 0x1p20f) << variant;
  }
}

TEST(Spmv, SaysWhatItDoesNotTake) {
  const Tensor data(DType::float32, {3}), indices(DType::int32, {3}), indptr(DType::int32, {3}),
      x(DType::float32, {4}), none(DType::int32, {0}), wide(DType::int64, {3});
  expect_error(
      ErrorKind::value, [&] { spmv(data, indices, none, x); },
      "spmv: indptr must have an element more than the matrix has rows, got none; a matrix without "
      "rows has [0]");
  expect_error(
      ErrorKind::value, [&] { spmv(data, indices, indptr, x, {.beta = 2.0f}); },
      "spmv: beta is 2 but there is no c to scale; give c");
  expect_error(
      ErrorKind::value, [&] { spmv(data, indices, indptr, x.reshape({2, 2})); },
      "spmv: x: expected a vector, one element a column, got shape [2, 2]; spmm takes a matrix");
  expect_error(
      ErrorKind::value, [&] { spmv(data, indices, indptr, x, {.combine = "x * b"}); },
      "spmv: combine: unknown name 'b' in the expression; there are x, a (column 5)\n  x * b\n     "
      " ^");
  test::expect_error_with(ErrorKind::type, "spmv: indptr: ", [&] { spmv(data, indices, wide, x); });
}

}  // namespace
}  // namespace tensorcraft
