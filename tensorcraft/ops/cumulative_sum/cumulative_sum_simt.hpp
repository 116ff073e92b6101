// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/simt/instance.hpp"

// What of each rung is compiled for the SIMT device.
namespace tensorcraft::kernel::cumulative_sum {

simt::InstanceList naive_instances();
simt::InstanceList row_instances();

}  // namespace tensorcraft::kernel::cumulative_sum
