// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/simt/instance.hpp"

// What of each rung is compiled for the SIMT device. The list of naive is whole; the others cover
// every path of the rung, and `naive` serves what is left.
namespace tensorcraft::kernel::group_norm {

simt::InstanceList naive_instances();
simt::InstanceList cluster_instances();
simt::InstanceList in_registers_instances();

}  // namespace tensorcraft::kernel::group_norm
