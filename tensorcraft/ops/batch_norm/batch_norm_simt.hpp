// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/simt/instance.hpp"

// What of each rung is compiled for the SIMT device. The lists of naive are whole; the others cover
// every path of the rung, and `naive` serves what is left.
namespace tensorcraft::kernel::batch_norm {

simt::InstanceList naive_instances();
simt::InstanceList planes_instances();
simt::InstanceList channels_last_instances();
simt::InstanceList cluster_instances();
simt::InstanceList backward_naive_instances();
simt::InstanceList backward_cluster_instances();

}  // namespace tensorcraft::kernel::batch_norm
