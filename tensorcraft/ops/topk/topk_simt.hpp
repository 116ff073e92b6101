// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/simt/instance.hpp"

// What of each rung is compiled for the SIMT device.
namespace tensorcraft::kernel::topk {

simt::InstanceList naive_instances();
simt::InstanceList block_instances();
simt::InstanceList warp_instances();

}  // namespace tensorcraft::kernel::topk
