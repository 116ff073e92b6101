// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/softmax/problem.hpp"

namespace tensorcraft::kernel::softmax {

// Host rows.
void cpu(const Problem& q);
void reference(const Problem& q);

}  // namespace tensorcraft::kernel::softmax
