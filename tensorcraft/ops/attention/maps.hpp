// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/launch/plan.hpp"
#include "tensorcraft/ops/attention/problem.hpp"

namespace tensorcraft::kernel::attention {

// Replaces the argument of a plan of a rung on wgmma by one with the tensor maps that it reads, of
// the tile that its Config says; blocks of persistent count the works that they take. Plans of
// other rungs stay as they are: false.
bool add_maps(op::Plan& plan, bool is_persistent, const Problem& problem, const DeviceInfo& device);

}  // namespace tensorcraft::kernel::attention
