// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/ops/norm/params.h"

#include <optional>

namespace tensorcraft::kernel::norm {

// A call that is checked.
struct Problem {
  Form form;
  TensorView out, x;
  std::optional<TensorView> weight, bias, residual, mean, rstd, residual_out, scales;
  float eps, scale;
  Activation activation;
  bool is_quantized() const { return out.dtype() != x.dtype(); }
  int64_t cols() const { return x.shape(x.rank() - 1); }
  int64_t rows() const { return cols() ? x.size() / cols() : 0; }
};

// Host variants.
void cpu(const Problem& q);
void reference(const Problem& q);

}  // namespace tensorcraft::kernel::norm
