// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/host/gemm.hpp"
#include "tensorcraft/op/host/rows.hpp"

#include <cstddef>

// gemm() and gemv() share these.
namespace tensorcraft::host {

inline int64_t div_up(int64_t a, int64_t b) { return a / b + (a % b != 0); }

template <class Pointer>
Pointer advance(Pointer data, DType dtype, int64_t elements) {
  return data + elements * int64_t(dtype_bytes(dtype));
}

inline const std::byte* address(const ConstMatrix& m, int64_t i, int64_t j) {
  return advance(static_cast<const std::byte*>(m.data), m.dtype, i * m.row + j * m.column);
}
inline std::byte* address(const Matrix& m, int64_t i, int64_t j) {
  return advance(static_cast<std::byte*>(m.data), m.dtype, i * m.row + j * m.column);
}

// n elements as floats: in place if they already are that, else in `buffer`.
inline const float* line_at(const std::byte* from, DType dtype, int64_t stride, int64_t n,
                            float* buffer) {
  if (dtype == DType::float32 && stride == 1) return reinterpret_cast<const float*>(from);
  load_elements(buffer, from, dtype, stride, n);
  return buffer;
}

// Makes rows of D, n columns from `column` on, of finished sums. Uses the slots bias and line of
// the thread.
class FinishRow {
 public:
  FinishRow(const GemmProblem& problem, int64_t column, int64_t n)
      : g_(problem), column_(column), n_(n), line_(scratch(Slot::line, n)) {
    if (g_.bias.data)
      bias_ = line_at(address(g_.bias, 0, column), g_.bias.dtype, g_.bias.column, n,
                      scratch(Slot::bias, n));
  }
  // Row i of D; changes the sums.
  void operator()(int64_t i, float* sums) const {
    if (g_.alpha != 1.0f) row_scale(sums, sums, g_.alpha, 0.0f, n_);
    if (g_.beta != 0.0f) {
      const float* c = line_at(address(g_.c, i, column_), g_.c.dtype, g_.c.column, n_, line_);
      row_add_scaled(sums, c, g_.beta, n_);
    }
    if (bias_) row_add(sums, bias_, n_);
    if (g_.activation != Activation::none) row_activate(sums, sums, g_.activation, n_);
    store_row(address(g_.d, i, column_), sums, g_.d.dtype, g_.d.column, n_);
  }

 private:
  const GemmProblem& g_;
  int64_t column_, n_;
  float* line_;
  const float* bias_ = nullptr;
};

}  // namespace tensorcraft::host
