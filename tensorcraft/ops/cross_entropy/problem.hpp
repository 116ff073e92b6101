// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"

#include <optional>

namespace tensorcraft::kernel::cross_entropy {

// The losses of all rows, before any reduction; checked.
struct Problem {
  TensorView out, logits, targets;
  std::optional<TensorView> lse;
  int64_t ignore_index;
  float ignored;  // the loss of an ignored row: 0, or -0 where reduce() follows

  int64_t rows() const { return targets.size(); }
  int64_t classes() const { return logits.shape(logits.rank() - 1); }
};

}  // namespace tensorcraft::kernel::cross_entropy
