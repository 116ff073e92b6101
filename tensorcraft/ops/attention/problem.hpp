// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dtype.hpp"
#include "tensorcraft/ops/attention/params.h"
#include "tensorcraft/simt/instance.hpp"

namespace tensorcraft::kernel::attention {

// A checked call.
struct Problem {
  Params params;
  DType dtype, out_dtype;  // of q, k and v; of out
};

// Host variants.
void cpu(const Problem& q);
void reference(const Problem& q);

// What of each rung the SIMT device has: all Configs if that is cheap, else some for every path
// of the rung, and `naive` serves what is left.
simt::OperatorInstances instances();
simt::OperatorInstances hopper_instances();  // of the rungs on wgmma

}  // namespace tensorcraft::kernel::attention
