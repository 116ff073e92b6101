// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/ops/scatter/params.h"

namespace tensorcraft::kernel::scatter {

// Updates have the shape of indices, with strides of 0 along axes on which they were broadcast.
struct Problem {
  TensorView out, x, indices, updates;
  int axis;
  Operation operation;
};

Params params(const Problem& q);

// Host variants. Fail with kind index before they write if an index is outside the axis.
void cpu(const Problem& q);
void reference(const Problem& q);

}  // namespace tensorcraft::kernel::scatter
