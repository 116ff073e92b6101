// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/launch/plan.hpp"
#include "tensorcraft/ops/paged_attention/problem.hpp"

namespace tensorcraft::kernel::paged_attention {

// Replaces the argument of a plan of persistent, split_wgmma or latent_wgmma by one with the tensor
// maps that it reads, of the tile that its Config says, which is returned.
Config add_page_maps(op::Plan& plan, const Problem& problem, const DeviceInfo& device);

}  // namespace tensorcraft::kernel::paged_attention
