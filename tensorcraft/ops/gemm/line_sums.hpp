// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/launch/plan.hpp"
#include "tensorcraft/ops/gemm/choice/call_plan.h"
#include "tensorcraft/ops/gemm/problem.hpp"

namespace tensorcraft::kernel::gemm {

// Returns the zero points of a call as Params hold them.
ZeroPoints zero_points(const Problem& q);

// Puts the step in front of the plan's main one that sums the lines of int8 operands with zero
// points, and gives the main step the workspace, which begins with the sums.
void add_line_sums(op::Plan& plan, const Params& params, const Given& given);

}  // namespace tensorcraft::kernel::gemm
