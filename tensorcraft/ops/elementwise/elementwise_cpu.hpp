// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/elementwise/table.hpp"

namespace tensorcraft::kernel::elementwise {

// Host rows.
void cpu(const Problem& problem);
void reference(const Problem& problem);
// out = condition ? a : b, where all have the shape of out and a and b its kind.
void reference_where(const TensorView& out, const TensorView& condition, const TensorView& a,
                     const TensorView& b);

}  // namespace tensorcraft::kernel::elementwise
