// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"

namespace tensorcraft::kernel::masked_mean {

struct Problem {  // a checked call
  TensorView out, x, lengths;
};

// Host variants. Fail with kind value before they write if a length is outside [0, steps].
void cpu(const Problem& q);
void reference(const Problem& q);

}  // namespace tensorcraft::kernel::masked_mean
