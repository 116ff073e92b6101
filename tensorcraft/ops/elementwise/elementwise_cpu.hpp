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

// The bits of one element of `dtype` that holds `value`, converted as astype does.
uint64_t element_bits(DType dtype, double value);

}  // namespace tensorcraft::kernel::elementwise
