// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/sparse/matrix.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/ops/permute/permute.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/sparse_matrix.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

namespace tensorcraft {
namespace {

using test::expect_error;
using test::places;
using test::random_matrix;
using test::SparseCase;
using test::values;
using Integers = std::vector<int32_t>;

SparseMatrix csr_of(const SparseCase& a, Device d) {
  return SparseMatrix::csr(a.data_on(d), a.indices_on(d), a.indptr_on(d), a.rows, a.cols);
}
SparseMatrix small(Device d = Device::cpu()) {  // [[1, 0, 2], [0, 0, 0]]
  return SparseMatrix::csr(Tensor::from({1.0f, 2.0f}, {2}, d), Tensor::from({0, 2}, {2}, d),
                           Tensor::from({0, 2, 2}, {3}, d), 2, 3);
}

TEST(SparseMatrix, KnowsItselfAndItsTransposedView) {
  for (const Device d : places()) {
    const SparseMatrix a = small(d), t = a.transpose();
    EXPECT_EQ(to_string(a), join("2 x 3, 2 stored, float32, csr, int32 on ", d));
    EXPECT_EQ(to_string(t), join("3 x 2, 2 stored, float32, csc, int32 on ", d));
    EXPECT_EQ(t.data().data(), a.data().data());
    EXPECT_EQ(values(a.to_dense()), (std::vector<float>{1, 0, 2, 0, 0, 0}));
    EXPECT_EQ(values(t.to_dense()), (std::vector<float>{1, 0, 0, 0, 2, 0}));
    EXPECT_EQ(a.analysis().longest_row, 2);
    EXPECT_EQ(a.analysis().empty_rows, 1);
    EXPECT_EQ(a.analysis().skew(), 2.0);
    EXPECT_EQ(t.analysis().empty_rows, 1);
    EXPECT_EQ(t.analysis().longest_row, 1);
    EXPECT_EQ(t.transpose().data().data(), a.data().data());
  }
}

TEST(SparseMatrix, FromDenseKeepsMinusZeroAndNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> dense = {0, -0.0f, nan, 0, 0, 5};
  for (const Device d : places())
    for (const SparseFormat format : {SparseFormat::csr, SparseFormat::csc}) {
      const SparseMatrix a = SparseMatrix::from_dense(Tensor::from(dense, {2, 3}, d), format);
      EXPECT_EQ(a.stored(), 3);
      const std::vector<float> back = values(a.to_dense());
      EXPECT_EQ(std::memcmp(back.data(), dense.data(), sizeof(float) * dense.size()), 0) << d;
    }
}

TEST(SparseMatrix, MayBeEmptyInEveryWay) {
  for (const Device d : places())
    for (const auto& [rows, cols] : {std::pair(0, 0), {0, 3}, {3, 0}, {3, 3}}) {
      const SparseMatrix a = SparseMatrix::from_dense(
          Tensor::from(std::vector<float>(size_t(rows * cols), 0.0f), {rows, cols}, d));
      EXPECT_EQ(a.stored(), 0);
      EXPECT_EQ(a.to_csc().to_dense().shape(), (Dims{rows, cols}));
      const Tensor x = Tensor::from(std::vector<float>(size_t(cols), 1.0f), {cols}, d);
      EXPECT_EQ(values(spmv(a, x)), std::vector<float>(size_t(rows), 0.0f));
    }
}

TEST(SparseMatrix, SumsDuplicatesIfAskedTo) {
  for (const Device d : places()) {
    const SparseMatrix a = SparseMatrix::csr(
        Tensor::from({1.0f, 2.0f, 4.0f, 8.0f}, {4}, d), Tensor::from({0, 0, 0, 1}, {4}, d),
        Tensor::from({0, 2, 4}, {3}, d), 2, 2, {.sum_duplicates = true});
    EXPECT_EQ(a.stored(), 3);
    EXPECT_EQ(values(a.to_dense()), (std::vector<float>{3, 0, 4, 8}));
    EXPECT_EQ(a.device(), d);
  }
}

// A conversion is made once, whoever asks first.
TEST(SparseMatrix, MayBeAskedByManyThreads) {
  std::mt19937 random(9);
  const SparseMatrix a = csr_of(random_matrix(random), Device::cpu());
  std::vector<const void*> seen(8);
  std::vector<std::thread> threads;
  for (auto& one : seen) threads.emplace_back([&] { one = a.to_csc().indptr().data(); });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(std::count(seen.begin(), seen.end(), seen[0]), 8);
}

TEST(SparseMatrix, NamesTheRowAndTheIndexOfAFault) {
  const auto make = [](const Integers& indices, const Integers& indptr, bool csc = false) {
    const auto stored = int64_t(indices.size());
    const std::vector<float> data(indices.size(), 1.0f);
    (csc ? SparseMatrix::csc : SparseMatrix::csr)(
        Tensor::from(data, {stored}), Tensor::from(indices, {stored}),
        Tensor::from(indptr, {int64_t(indptr.size())}), csc ? 4 : 2, csc ? 2 : 4, {});
  };
  expect_error(
      ErrorKind::value, [&] { make({0, 3, 4}, {0, 2, 3}); },
      "sparse.csr: indices: row 1 names column 4 (element 2), expected one in [0, 4)");
  expect_error(
      ErrorKind::value, [&] { make({0, 3, 4}, {0, 2, 3}, true); },
      "sparse.csc: indices: column 1 names row 4 (element 2), expected one in [0, 4)");
  expect_error(
      ErrorKind::value, [&] { make({3, 0, 1}, {0, 2, 3}); },
      "sparse.csr: indices: row 0 names column 0 behind 3 (element 1), expected ascending order; "
      "sort them with their data");
  expect_error(
      ErrorKind::value, [&] { make({0, 2, 2}, {0, 1, 3}); },
      "sparse.csr: indices: row 1 names column 2 twice (element 2); sum_duplicates=True adds such "
      "elements up");
  expect_error(
      ErrorKind::value, [&] { make({0, 2, 2}, {0, 3, 2}); },
      "sparse.csr: indptr: row 1 has the elements 3 to 2, expected the next part of the 3 stored: "
      "from where the one before ends, to their end");
  expect_error(
      ErrorKind::value, [&] { make({0, 2}, {0, 1, 2, 2}); },
      "sparse.csr: indptr must have 3 elements, one more than rows, got 4");
  expect_error(
      ErrorKind::value, [&] { spmv(small(), Tensor(DType::float32, {2})); },
      "sparse.spmv: x: expected 3 elements along its first axis, the columns of the matrix, got "
      "shape [2]");
  expect_error(
      ErrorKind::value, [&] { SparseMatrix::from_dense(Tensor(DType::float32, {2})); },
      "sparse.from_dense: x: expected a matrix, (rows, cols), got shape [2]");
}

}  // namespace
}  // namespace tensorcraft
