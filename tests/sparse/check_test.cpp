// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/sparse/check.hpp"

#include "tensorcraft/core/error.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace tensorcraft::sparse {
namespace {

TEST(SparseCheck, FactsAreThoseOfTheLongestAndTheEmpty) {
  const Tensor data(DType::float32, {3}), indices = Tensor::from({0, 1, 0}, {3}),
                                          indptr = Tensor::from({0, 2, 2, 3}, {4});
  Arrays arrays{data, indices, indptr, nullptr};
  const Facts facts = checked(arrays, 3, 2, true, false);
  EXPECT_EQ(facts.longest, 2);
  EXPECT_EQ(facts.empty, 1);
}

TEST(SparseCheck, WhatIsNotContiguousIsCopied) {
  const Tensor wide = Tensor::from({1.0f, 9.0f, 2.0f, 9.0f}, {4}),
               indices = Tensor::from({0, 1}, {2}), indptr = Tensor::from({0, 2}, {2});
  const Arrays arrays = contiguous({wide.slice(0, 0, 4, 2), indices, indptr, nullptr}, true);
  EXPECT_TRUE(arrays.data.is_contiguous());
  EXPECT_EQ(arrays.data.data_as<float>()[1], 2.0f);
  EXPECT_EQ(arrays.indices.data(), indices.data());
}

TEST(SparseCheck, NeighboursOfOnePlaceBecomeTheirSum) {
  const Tensor data = Tensor::from({1.0f, 2.0f, 4.0f}, {3}), indices = Tensor::from({1, 1, 0}, {3}),
               indptr = Tensor::from({0, 2, 3}, {3});
  Arrays arrays{data, indices, indptr, nullptr};
  EXPECT_EQ(checked(arrays, 2, 2, true, true).longest, 1);
  EXPECT_EQ(integers(arrays.indices), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(integers(arrays.indptr), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(arrays.data.data_as<float>()[0], 3.0f);
}

TEST(SparseCheck, ShapesThatDoNotFitAreNamed) {
  const Tensor data(DType::float32, {1}), indices = Tensor::from({0}, {1}),
                                          indptr = Tensor::from({0, 1}, {2}),
                                          none = Tensor::from({0}, {1});
  Arrays arrays{data, indices, indptr, nullptr}, empty{data, indices, none, nullptr};
  test::expect_error(
      ErrorKind::value, [&] { checked(arrays, 5, 2, false, false); },
      "sparse.csc: indptr must have 6 elements, one more than columns, got 2");
  test::expect_error(
      ErrorKind::value, [&] { checked(arrays, -1, 2, true, false); },
      "sparse.csr: shape must not be negative, got -1");
  test::expect_error(
      ErrorKind::value, [&] { checked(empty, 0, 2, true, false); },
      "sparse.csr: a matrix without rows stores nothing, got 1 elements");
}

}  // namespace
}  // namespace tensorcraft::sparse
