// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "bench/peer.hpp"

#include <optional>
#include <string>
#include <vector>

// A call of gemm as a library of products takes it, and the check of what the library answers.
namespace tensorcraft::bench {

// One row-major matrix, or equally many in a row; transposed: it is stored as [cols, rows].
struct ProductMatrix {
  void* data;
  DType dtype;
  int64_t rows, cols;        // as it is stored
  int64_t leading;           // elements from a row to the next
  int64_t batch_stride = 0;  // elements from a matrix to the next; 0: all entries take the same
};

// d = act(alpha a b + beta c + bias), or with a gate d = act(left half) * right half of that.
struct Product {
  ProductMatrix a, b, d;
  std::optional<ProductMatrix> c;
  std::optional<TensorView> bias;              // one element a column
  std::optional<TensorView> a_scale, b_scale;  // of one element, or one a row and a column
  int64_t batch = 1;
  bool transpose_a = false, transpose_b = false, tf32 = false;
  bool fast = false;  // sums of float8 stay in the tensor cores
  float alpha = 1, beta = 0;
  std::string activation, gate;  // empty: none
  int64_t k() const { return transpose_a ? a.rows : a.cols; }
};

// Why a call of gemm has no counterpart in a library; empty if it has one.
std::string product_refusal(const PeerProblem& problem);
// The n-th copy of a call that has one.
Product product_of(const PeerProblem& problem, int copy);

// Some of the elements that a call of ours leaves in the first copy's result: blocks of whole rows
// from the first to the last.
class ExpectedResult {
 public:
  // Runs problem.ours and keeps what it leaves.
  ExpectedResult(const PeerProblem& problem, const Product& product);
  // Writes NaN where the elements are, so that what is found there is the work of the next call.
  void poison() const;
  // Where the result differs by more than rounding and the order of sums explain; empty: nowhere.
  std::string difference() const;

 private:
  TensorView block(int64_t i) const;
  double tolerance(double expected) const;
  std::vector<double> values(int64_t i) const;

  TensorView out_;
  StreamRef stream_;
  double result_epsilon_, sum_epsilon_, scale_;
  int64_t length_, count_, step_;
  std::vector<std::vector<double>> expected_;
};

}  // namespace tensorcraft::bench
