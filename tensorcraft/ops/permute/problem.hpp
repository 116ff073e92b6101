// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/ops/permute/params.h"

namespace tensorcraft::kernel::permute {

// out = x, which has the shape and dtype of out.
struct Problem {
  TensorView out, x;
};

Params params(const Problem& q);

// Host variants.
void cpu(const Problem& q);
void reference(const Problem& q);

}  // namespace tensorcraft::kernel::permute
