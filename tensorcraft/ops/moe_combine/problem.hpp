// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/ops/moe_combine/params.h"

namespace tensorcraft::kernel::moe_combine {

struct Problem {  // a checked call
  TensorView out, y, row_map, weights;
};

Params params(const Problem& q);

// Host variants. Fail with kind index before they write if a row is past the last.
void cpu(const Problem& q);
void reference(const Problem& q);

}  // namespace tensorcraft::kernel::moe_combine
