// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/spmm/spmm.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/sparse_matrix.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace tensorcraft {
namespace {

using test::places;
using test::random_matrix;
using test::SparseCase;
using test::values;

// Row-major and column-major, each variant, for any mix of lengths; and the same bits again.
TEST(Spmm, EqualsTheDenseProductInBothOrders) {
  std::mt19937 random(11);
  for (int round = 0; round < 100; ++round) {
    const SparseCase a = random_matrix(random);
    const int64_t n = 1 + int64_t(random() % 12);
    const Tensor x = test::normal_tensor({a.cols, n}, random);
    std::vector<double> sums(size_t(a.rows * n), 0.0), sizes(sums);
    for (int64_t row = 0; row < a.rows; ++row)
      for (int64_t k = a.indptr[size_t(row)]; k < a.indptr[size_t(row) + 1]; ++k)
        for (int64_t c = 0; c < n; ++c) {
          const double term = double(a.data[size_t(k)]) * test::at(x, a.indices[size_t(k)] * n + c);
          sums[size_t(row * n + c)] += term;
          sizes[size_t(row * n + c)] += std::abs(term);
        }
    for (const Device d : places()) {
      const Tensor rows = x.to(d), columns = copy(x.transpose(0, 1)).to(d);
      for (const auto& v : find_operator("spmm").description().variants) {
        if ((v.device == DeviceType::cpu) != (d == Device::cpu())) continue;
        const auto product = [&](const TensorView& dense) {
          return values(
              spmm(a.data_on(d), a.indices_on(d), a.indptr_on(d), dense, {.variant = v.name}));
        };
        const std::vector<float> y = product(rows);
        ASSERT_EQ(y.size(), sums.size());
        for (size_t i = 0; i < y.size(); ++i)
          ASSERT_NEAR(y[i], sums[i], 1e-6 * sizes[i]) << v.name << " on " << d << " at " << i;
        ASSERT_EQ(product(columns.transpose(0, 1)), y) << v.name << " on " << d;
      }
    }
  }
}

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
