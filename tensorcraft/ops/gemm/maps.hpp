// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/plan.hpp"
#include "tensorcraft/ops/gemm/plan.h"

namespace tensorcraft::kernel::gemm {

// Replaces the argument of a plan's first step by one with the tensor maps that the rung reads, of
// the tile that the step's Config says; of rungs that the copy engine does not serve nothing
// changes. `params` are that argument without the maps: Params, or those with an expression.
template <class P>
void add_maps(op::Plan& plan, const P& params, const Given& given, const DeviceInfo& device);

}  // namespace tensorcraft::kernel::gemm
