// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/launch/plan.hpp"
#include "tensorcraft/ops/conv2d/params.h"

namespace tensorcraft::kernel::conv2d {

// Replaces the argument of a plan of implicit_wgmma by one with the tensor maps that it reads, of
// the tile that the plan's Config says. Plans of other rungs stay as they are.
void add_maps(op::Plan& plan, const Params& params, DType dtype, const DeviceInfo& device);

}  // namespace tensorcraft::kernel::conv2d
