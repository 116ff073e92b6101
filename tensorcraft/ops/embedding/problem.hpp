// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"

namespace tensorcraft::kernel::embedding {

struct Problem {  // a checked call
  TensorView out, ids, table;
  int64_t cols() const { return table.shape(1); }
};

// Host variants. Fail with kind index before they write if an id is outside the table.
void cpu(const Problem& q);
void reference(const Problem& q);

}  // namespace tensorcraft::kernel::embedding
