// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/ops/gated_activation/params.h"

namespace tensorcraft::kernel::gated_activation {

// A checked call.
struct Problem {
  Gate gate;
  TensorView out, x;
  int axis() const { return x.rank() - 1; }
  int64_t cols() const { return out.shape(axis()); }
};

// Host rows.
void cpu(const Problem& problem);
void reference(const Problem& problem);

}  // namespace tensorcraft::kernel::gated_activation
