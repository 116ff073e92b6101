// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/launch/plan.hpp"

namespace tensorcraft::kernel::mqa_logits {

// Replaces the argument of a plan of wgmma, whose q and k have this dtype, by one with their maps.
void add_maps(op::Plan& plan, DType dtype, const DeviceInfo& device);

}  // namespace tensorcraft::kernel::mqa_logits
