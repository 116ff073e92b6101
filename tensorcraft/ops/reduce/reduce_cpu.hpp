// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/reduce/table.hpp"

namespace tensorcraft::kernel::reduce {

// Host rows.
void cpu(const Problem& problem);
void reference(const Problem& problem);

}  // namespace tensorcraft::kernel::reduce
