// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/ops/pad/params.h"

namespace tensorcraft::kernel::pad {

// A width of each axis on both sides, and the bits of an element of the margin.
struct Problem {
  TensorView out, x;
  Dims before, after;
  uint64_t value;
};

Params params(const Problem& q);

// Host variants.
void cpu(const Problem& q);
void reference(const Problem& q);

}  // namespace tensorcraft::kernel::pad
