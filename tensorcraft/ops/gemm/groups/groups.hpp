// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/gemm/plan.h"
#include "tensorcraft/ops/gemm/problem.hpp"

namespace tensorcraft::kernel::gemm {

// Makes the plan of a rung that of a grouped product: its groups, its maps, and the step that finds
// the rows of each group if the array has the group of each row. `params` and `given` are what the
// rung was chosen for.
void add_groups(op::Plan& plan, const Problem& q, const Params& params, const Given& given,
                const DeviceInfo& device);

}  // namespace tensorcraft::kernel::gemm
