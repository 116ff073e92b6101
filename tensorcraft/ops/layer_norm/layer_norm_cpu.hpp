// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/op/value.hpp"

#include <optional>

namespace tensorcraft::kernel::layer_norm {

// A checked call.
struct Problem {
  TensorView out, x;
  std::optional<TensorView> weight, bias, residual, mean, rstd, residual_out, scales;
  float eps, scale;
  Activation activation;
  bool is_quantized() const { return out.dtype() != x.dtype(); }
  int axis() const { return x.rank() - 1; }
  int64_t cols() const { return x.shape(axis()); }
  int64_t rows() const { return cols() ? x.size() / cols() : 0; }
};

// Host rows.
void cpu(const Problem& problem);
void reference(const Problem& problem);

}  // namespace tensorcraft::kernel::layer_norm
