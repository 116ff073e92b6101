// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/simt/instance.hpp"

// What of each rung is compiled for the SIMT device: all of naive; of the others what crosses every
// path.
namespace tensorcraft::kernel::reduce {

simt::InstanceList naive_instances();
simt::InstanceList row_instances();
simt::InstanceList column_instances();
simt::InstanceList combine_instances();

}  // namespace tensorcraft::kernel::reduce
