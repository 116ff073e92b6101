// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/simt/instance.hpp"

namespace tensorcraft::kernel::l2_normalize {

struct Problem {  // a checked call
  TensorView out, x;
  int axis;
  float eps;

  int64_t cols() const { return x.shape(axis); }
  int64_t rows() const { return cols() ? x.size() / cols() : 0; }
};

// Host variants.
void cpu(const Problem& q);
void reference(const Problem& q);

// What of each rung the SIMT device has: all Configs where that is cheap, else some for every path
// of the rung, and `naive` serves what is left.
simt::OperatorInstances instances();

}  // namespace tensorcraft::kernel::l2_normalize
