// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/launch/plan.hpp"
#include "tensorcraft/ops/gemm/plan.h"

#include <string_view>

namespace tensorcraft::kernel::gemm {

inline constexpr std::string_view kLayouts[] = {"row_major", "column_major"};

// Replaces the argument of a plan's main step by one with the tensor maps that its rung reads, of
// the tile that the step's Config says, and adds the steps that pack operands for it. Plans of
// rungs that the copy engine does not serve stay as they are. `params` are that argument without
// the maps: Params, or those with an expression or groups.
void add_maps(op::Plan& plan, const Params& params, const Given& given, const DeviceInfo& device);
void add_maps(op::Plan& plan, const ExpressionParams& params, const Given& given,
              const DeviceInfo& device);
void add_maps(op::Plan& plan, const GroupedParams& params, const Given& given,
              const DeviceInfo& device);
void add_maps(op::Plan& plan, const InterpretedParams& params, const Given& given,
              const DeviceInfo& device);

}  // namespace tensorcraft::kernel::gemm
