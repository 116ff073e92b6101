// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/ops/cumulative_sum/params.h"

#include <optional>

namespace tensorcraft::kernel::cumulative_sum {

// A checked call; the axis is in [0, rank).
struct Problem {
  Operation operation;
  TensorView out, x;
  int axis;
  std::optional<TensorView> initial = {};  // what gets a 0 or 1, before out along the axis
  int64_t cols() const { return x.shape(axis); }
  int64_t rows() const {
    int64_t rows = 1;
    for (int i = 0; i < x.rank(); ++i)
      if (i != axis) rows *= x.shape(i);
    return rows;
  }
};

// Host variants.
void cpu(const Problem& problem);
void reference(const Problem& problem);

}  // namespace tensorcraft::kernel::cumulative_sum
