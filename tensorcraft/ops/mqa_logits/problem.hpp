// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/ops/mqa_logits/params.h"

namespace tensorcraft::kernel::mqa_logits {

struct Problem {  // a checked call; q and k have `dtype`
  Params params;
  DType dtype;
};

// Host variants. Fail with kind index before they write if a block that a query sees is no block
// of k.
void cpu(const Problem& q);
void reference(const Problem& q);

}  // namespace tensorcraft::kernel::mqa_logits
