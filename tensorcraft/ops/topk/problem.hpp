// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"

#include <optional>

namespace tensorcraft::kernel::topk {

// A checked call; the axis is in [0, rank).
struct Problem {
  TensorView out, x;
  std::optional<TensorView> indices;
  int axis;
  int64_t k;
  int64_t cols() const { return x.shape(axis); }
  int64_t rows() const { return cols() ? x.size() / cols() : 0; }
};

// Host variants.
void cpu(const Problem& q);
void reference(const Problem& q);

}  // namespace tensorcraft::kernel::topk
