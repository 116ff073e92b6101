// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/cross_entropy/params.h"
#include "tensorcraft/ops/cross_entropy/problem.hpp"

namespace tensorcraft::kernel::cross_entropy {

// Host rows. Fail with kind index before they write where a target is no class.
void cpu(const Problem& q);
void reference(const Problem& q);
// The second part of a sum or mean, in double.
void reduce_on_host(const ReduceParams& p);

}  // namespace tensorcraft::kernel::cross_entropy
