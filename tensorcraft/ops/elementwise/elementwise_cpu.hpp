// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/elementwise/table.hpp"

namespace tensorcraft::kernel::elementwise {

// Host rows.
void cpu(const Problem& problem);
void reference(const Problem& problem);

// The bits of one element of `dtype` that holds `value`, converted as astype does.
uint64_t element_bits(DType dtype, double value);

}  // namespace tensorcraft::kernel::elementwise
