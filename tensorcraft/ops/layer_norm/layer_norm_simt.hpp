// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/simt/instance.hpp"

// What of each rung is compiled for the SIMT device. A rung's list is whole where that is cheap;
// else it covers every path of the rung, and `naive` serves what is left.
namespace tensorcraft::kernel::layer_norm {

simt::InstanceList naive_instances();
simt::InstanceList block_instances();
simt::InstanceList vectorized_instances();
simt::InstanceList in_registers_instances();
simt::InstanceList staged_instances();
simt::InstanceList persistent_instances();
simt::InstanceList quantized_instances();
simt::InstanceList quantized_in_registers_instances();

}  // namespace tensorcraft::kernel::layer_norm
