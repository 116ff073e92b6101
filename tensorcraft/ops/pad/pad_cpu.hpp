// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"

namespace tensorcraft::kernel::pad {

// A width of each axis on both sides, and the bits of an element of the margin.
struct Problem {
  TensorView out, x;
  Dims before, after;
  uint64_t value;
};

// Host rows.
void cpu(const Problem& problem);
void reference(const Problem& problem);

}  // namespace tensorcraft::kernel::pad
