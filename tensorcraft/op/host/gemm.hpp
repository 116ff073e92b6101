// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dtype.hpp"
#include "tensorcraft/op/value.hpp"

#include <cstdint>

namespace tensorcraft::host {

// A batch of matrices: element (b, i, j) is b * batch + i * row + j * column elements from data.
// Strides may be 0 or negative; a transpose is two strides exchanged.
struct ConstMatrix {
  const void* data = nullptr;
  DType dtype = DType::float32;
  int64_t row = 0, column = 1, batch = 0;
};
struct Matrix {
  void* data = nullptr;
  DType dtype = DType::float32;
  int64_t row = 0, column = 1, batch = 0;
  operator ConstMatrix() const { return {data, dtype, row, column, batch}; }  // NOLINT
};

// D = activation(alpha A B + beta C + bias), A m x k, B k x n, C and D m x n, bias a row of n (with
// batch, one for each if bias.batch is not 0; its row stride is not used). A and B have element
// dtypes (rows.hpp), the others row dtypes. Products and sums are float32. C is read only if beta
// is not 0; it may be D itself, no other overlap of D is allowed.
struct GemmProblem {
  int64_t m = 0, n = 0, k = 0, batch = 1;
  ConstMatrix a, b;
  Matrix d;
  ConstMatrix c = {};
  ConstMatrix bias = {};  // none if data is null
  float alpha = 1, beta = 0;
  Activation activation = Activation::none;
  bool batch_invariant = false;  // a row's bits do not depend on m
};

// Blocked, packed and threaded; the result does not depend on the number of threads. Fails with
// kind type on a dtype that is no row dtype.
void gemm(const GemmProblem& problem);

}  // namespace tensorcraft::host
