// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/device/activation.h"
#include "tensorcraft/simt/instance.hpp"

namespace tensorcraft::kernel::gated_activation {

struct Problem {  // a checked call
  Activation gate;
  TensorView out, x;
  int axis() const { return x.rank() - 1; }
  int64_t cols() const { return out.shape(axis()); }
};

// Host variants.
void cpu(const Problem& q);
void reference(const Problem& q);

// What of each rung the SIMT device has: all of `naive`; of `vectorized` every path.
simt::OperatorInstances instances();

}  // namespace tensorcraft::kernel::gated_activation
