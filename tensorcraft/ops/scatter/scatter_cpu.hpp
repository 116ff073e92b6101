// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/ops/scatter/params.h"

namespace tensorcraft::kernel::scatter {

// Updates have the shape of indices, with strides of 0 where they were broadcast.
struct Problem {
  TensorView out, x, indices, updates;
  int axis;
  Operation operation;
};

Params params(const Problem& problem);

// Host rows. Fail with kind index before they write where an index is outside the axis.
void cpu(const Problem& problem);
void reference(const Problem& problem);

}  // namespace tensorcraft::kernel::scatter
