// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/simt/instance.hpp"

// What of each rung is compiled for the SIMT device: of `tiled` every side by units and by
// elements, and each size of an element.
namespace tensorcraft::kernel::permute {

simt::InstanceList naive_instances();
simt::InstanceList vectorized_instances();
simt::InstanceList tiled_instances();

}  // namespace tensorcraft::kernel::permute
