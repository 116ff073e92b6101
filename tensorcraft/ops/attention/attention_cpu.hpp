// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dtype.hpp"
#include "tensorcraft/ops/attention/params.h"

namespace tensorcraft::kernel::attention {

// Host rows; q, k, v and out have `dtype`.
void cpu(const Params& params, DType dtype);
void reference(const Params& params, DType dtype);

}  // namespace tensorcraft::kernel::attention
