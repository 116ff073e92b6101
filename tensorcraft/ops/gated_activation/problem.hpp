// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/device/activation.h"

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

}  // namespace tensorcraft::kernel::gated_activation
