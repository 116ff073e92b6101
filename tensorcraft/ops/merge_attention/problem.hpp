// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/ops/merge_attention/params.h"

#include <optional>

namespace tensorcraft::kernel::merge_attention {

// A checked call; out, out_a and out_b have an axis more than the others.
struct Problem {
  TensorView out, out_a, lse_a, out_b, lse_b;
  std::optional<TensorView> lse;
  int64_t cols() const { return out.shape(out.rank() - 1); }
};

// Host variants.
void cpu(const Problem& q);
void reference(const Problem& q);

}  // namespace tensorcraft::kernel::merge_attention
