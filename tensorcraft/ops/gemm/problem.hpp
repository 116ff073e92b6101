// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/op/value.hpp"

#include <optional>

namespace tensorcraft::kernel::gemm {

// A checked call. The matrices are the last two axes: d and c m x n, a m x k, b k x n. All four
// have the same batch axes in front, broadcast, and merged as far as their strides allow.
struct Problem {
  TensorView d, a, b;
  std::optional<TensorView> c;  // only where beta is not 0
  std::optional<TensorView> bias;
  float alpha, beta;
  Activation activation;
  bool allow_tf32;  // float32 operands may be rounded

  int64_t m() const { return d.shape(d.rank() - 2); }
  int64_t n() const { return d.shape(d.rank() - 1); }
  int64_t k() const { return a.shape(a.rank() - 1); }
  int batch_rank() const { return d.rank() - 2; }
  int64_t batch() const {
    int64_t count = 1;
    for (int i = 0; i < batch_rank(); ++i) count *= d.shape(i);
    return count;
  }
};

inline int64_t row_stride(const TensorView& matrix) { return matrix.stride(matrix.rank() - 2); }
inline int64_t col_stride(const TensorView& matrix) { return matrix.stride(matrix.rank() - 1); }

inline size_t element_bytes(const TensorView& matrix) { return dtype_bytes(matrix.dtype()); }

}  // namespace tensorcraft::kernel::gemm
