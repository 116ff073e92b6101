// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/spmm/spmm.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace tensorcraft {
namespace {

using test::places;
using test::values;

TEST(Spmm, ALongRowIsJoinedFromItsParts) {
  constexpr int64_t kLong = 20000, kColumns = 40;
  std::vector<int32_t> indices(size_t(kLong) + 2);
  std::vector<float> data(indices.size());
  for (size_t k = 0; k < indices.size(); ++k) {
    indices[k] = int32_t(k % 50);
    data[k] = float(int(k % 5) - 1);
  }
  std::vector<float> sums(size_t(kColumns), 0.0f), x(size_t(50 * kColumns));
  for (size_t i = 0; i < x.size(); ++i) x[i] = float(int(i % 3));
  for (size_t k = 1; k <= size_t(kLong); ++k)
    for (size_t c = 0; c < size_t(kColumns); ++c)
      sums[c] += data[k] * x[size_t(indices[k]) * size_t(kColumns) + c];
  for (const Device d : places()) {
    const auto stored = int64_t(data.size());
    const Tensor y = spmm(Tensor::from(data, {stored}, d), Tensor::from(indices, {stored}, d),
                          Tensor::from({0, 1, int32_t(kLong) + 1, int32_t(stored)}, {4}, d),
                          Tensor::from(x, {50, kColumns}, d));
    const std::vector<float> all = values(y);
    EXPECT_EQ(std::vector<float>(all.begin() + kColumns, all.begin() + 2 * kColumns), sums) << d;
  }
}

TEST(Spmm, SaysWhatItDoesNotTake) {
  const Tensor data(DType::float32, {3}), indices(DType::int32, {3}), indptr(DType::int32, {3}),
      x(DType::float32, {4});
  test::expect_error(
      ErrorKind::value, [&] { spmm(data, indices, indptr, x); },
      "spmm: x: expected a matrix, (cols, n), got shape [4]; spmv takes a vector");
  test::expect_error(
      ErrorKind::value, [&] { spmm(data, indices, indptr, x.reshape({2, 2}), {.beta = 1.0f}); },
      "spmm: beta is 1 but there is no c to scale; give c");
}

}  // namespace
}  // namespace tensorcraft
