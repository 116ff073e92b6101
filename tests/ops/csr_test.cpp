// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/csr/csr.hpp"

#include "tensorcraft/core/error.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

namespace tensorcraft {
namespace {

using test::places;
using test::values;
using Integers = std::vector<int32_t>;

TEST(Csr, FromDenseAndBackKeepsEveryBit) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> dense = {0, -0.0f, 2, 0, 0, 0, nan, 0, -3};
  for (const Device d : places()) {
    const Tensor x = Tensor::from(dense, {3, 3}, d);
    const Tensor indptr = csr_offsets(x);
    EXPECT_EQ(values<int32_t>(indptr), (Integers{0, 2, 2, 4})) << d;
    const CsrElements a = csr_from_dense(x, indptr, {.stored = 4});
    EXPECT_EQ(values<int32_t>(a.indices), (Integers{1, 2, 0, 2}));
    const auto back = values(csr_to_dense(a.data, a.indices, indptr, {.cols = 3}));
    EXPECT_EQ(std::memcmp(back.data(), dense.data(), dense.size() * sizeof(float)), 0) << d;
  }
}

// Several chunks of elements, rows of every length, columns in any order and named twice: all of it
// stays in the order in which it is stored.
template <class I>
void expect_stored_order(std::string_view variant, Device device) {
  constexpr int kRows = 400, kCols = 700;
  std::mt19937 random(8);
  std::vector<I> indices, indptr{0}, rows;
  for (int row = 0; row < kRows; ++row) {
    const int length = row == 9 ? kCols : row % 5 == 0 ? 0 : int(random() % 90);
    for (int i = 0; i < length; ++i) {
      indices.push_back(I(row == 9 ? i : random() % (row % 3 == 0 ? 8 : kCols)));
      rows.push_back(I(row));
    }
    indptr.push_back(I(indices.size()));
  }
  const int64_t stored = int64_t(indices.size());
  std::vector<size_t> order(indices.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return indices[a] < indices[b]; });
  std::vector<float> data(indices.size()), data_wanted;
  std::iota(data.begin(), data.end(), 0.0f);
  std::vector<I> indices_wanted, indptr_wanted(kCols + 1, 0);
  for (const size_t k : order) {
    data_wanted.push_back(data[k]);
    indices_wanted.push_back(rows[k]);
    ++indptr_wanted[size_t(indices[k]) + 1];
  }
  std::partial_sum(indptr_wanted.begin(), indptr_wanted.end(), indptr_wanted.begin());
  const CsrArrays turned =
      csr_transpose(Tensor::from(data, {stored}, device), Tensor::from(indices, {stored}, device),
                    Tensor::from(indptr, {kRows + 1}, device), {.cols = kCols, .variant = variant});
  EXPECT_EQ(values(turned.data), data_wanted) << device;
  EXPECT_EQ(values<I>(turned.indices), indices_wanted) << device;
  EXPECT_EQ(values<I>(turned.indptr), indptr_wanted) << device;
}
TEST(Csr, TransposedColumnsKeepTheOrderOfWhatIsStored) {
  expect_stored_order<int32_t>("cpu", Device::cpu());
  expect_stored_order<int64_t>("cpu", Device::cpu());
  for (const std::string_view variant : {"buckets", "tiles"}) {
    expect_stored_order<int32_t>(variant, Device::simt());
    expect_stored_order<int64_t>(variant, Device::simt());
  }
}

// More rows than tiles have at once, so a tile takes some after the others.
TEST(Csr, TilesGoOverManyRows) {
  constexpr int kRows = 131'100, kCols = 3;
  Integers indices(kRows), indptr(kRows + 1), rows, starts{0};
  std::vector<float> data(kRows), data_wanted;
  for (int row = 0; row < kRows; ++row) indices[row] = row % 7 % kCols;
  std::iota(indptr.begin(), indptr.end(), 0);
  std::iota(data.begin(), data.end(), 1.0f);
  for (int column = 0; column < kCols; ++column) {
    for (int row = 0; row < kRows; ++row)
      if (indices[row] == column) rows.push_back(row), data_wanted.push_back(data[row]);
    starts.push_back(int(rows.size()));
  }
  const Device d = Device::simt();
  const CsrArrays turned =
      csr_transpose(Tensor::from(data, {kRows}, d), Tensor::from(indices, {kRows}, d),
                    Tensor::from(indptr, {kRows + 1}, d), {.cols = kCols, .variant = "tiles"});
  EXPECT_EQ(values<int32_t>(turned.indptr), starts);
  EXPECT_EQ(values<int32_t>(turned.indices), rows);
  EXPECT_EQ(values(turned.data), data_wanted);
}

// Elements in front of the first row, behind the last and in columns that there are not.
TEST(Csr, ATransposedMatrixHasOnlyWhatLiesInside) {
  const Integers indices = {2, 0, 3, -1, 7, 1, 0, 2, 3}, indptr = {1, 5, 5, 8};
  const std::vector<float> data = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  for (const Device d : places())
    for (const std::string_view variant : {"cpu", "reference", "tiles", "buckets", "naive"}) {
      const bool is_host = variant == "cpu" || variant == "reference";
      if (is_host != (d == Device::cpu())) continue;
      const CsrArrays turned =
          csr_transpose(Tensor::from(data, {9}, d), Tensor::from(indices, {9}, d),
                        Tensor::from(indptr, {4}, d), {.cols = 5, .variant = variant});
      EXPECT_EQ(values<int32_t>(turned.indptr), (Integers{0, 2, 3, 4, 5, 5})) << variant;
      EXPECT_EQ(values<int32_t>(turned.indices), (Integers{0, 2, 2, 2, 0, 0, 0, 0, 0})) << variant;
      EXPECT_EQ(values(turned.data), (std::vector<float>{2, 7, 6, 8, 3, 0, 0, 0, 0})) << variant;
    }
}

TEST(Csr, AReportNamesTheFirstRowOfEachFault) {
  const auto report = [](const Integers& indices, const Integers& indptr, Device d) {
    return values<int64_t>(csr_report(Tensor::from(indices, {int64_t(indices.size())}, d),
                                      Tensor::from(indptr, {int64_t(indptr.size())}, d),
                                      {.cols = 4}));
  };
  using Report = std::vector<int64_t>;
  for (const Device d : places()) {
    EXPECT_EQ(report({0, 3, 1}, {0, 2, 2, 3}, d), (Report{2, 1, 3, 3, 3})) << d;
    EXPECT_EQ(report({0, 3, 4}, {0, 2, 2, 3}, d), (Report{2, 1, 3, 2, 3})) << d;
    EXPECT_EQ(report({3, 0, -1}, {0, 2, 2, 3}, d), (Report{2, 1, 3, 0, 3})) << d;
    EXPECT_EQ(report({1, 1, 1}, {0, 1, 3, 3}, d), (Report{2, 1, 3, 3, 1})) << d;
    EXPECT_EQ(report({0, 3, 1}, {0, 2, 1, 3}, d)[2], 1) << d;
    EXPECT_EQ(report({0, 3, 1}, {1, 2, 2, 3}, d)[2], 0) << d;
    EXPECT_EQ(report({0, 3, 1}, {0, 2, 2, 2}, d)[2], 2) << d;
  }
}

TEST(Csr, SaysWhatItDoesNotTake) {
  const Tensor x(DType::float32, {3}), indptr(DType::int32, {3});
  test::expect_error(
      ErrorKind::value, [&] { csr_offsets(x); },
      "csr_offsets: x: expected a matrix, (rows, cols), got shape [3]");
  test::expect_error(
      ErrorKind::type, [&] { csr_offsets(x.reshape({1, 3}), {.index_dtype = DType::int8}); },
      "csr_offsets: index_dtype must be int32 or int64, got int8");
  test::expect_error(
      ErrorKind::value, [&] { csr_starts(indptr, {.stored = -1}); },
      "csr_starts: stored must be at least 0, got -1");
}

}  // namespace
}  // namespace tensorcraft
