// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dtype.hpp"
#include "tensorcraft/ops/attention/params.h"

namespace tensorcraft::kernel::attention {

// A checked call.
struct Problem {
  Params params;
  DType dtype, out_dtype;  // of q, k and v; of out
};

// Host variants.
void cpu(const Problem& q);
void reference(const Problem& q);

}  // namespace tensorcraft::kernel::attention
