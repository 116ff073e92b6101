// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/simt/instance.hpp"

// What of each rung is compiled for the SIMT device. A rung's list is whole where that is cheap;
// else it covers every path of the rung, and `naive` serves what is left.
namespace tensorcraft::kernel::gemm {

simt::InstanceList naive_instances();
simt::InstanceList coalesced_instances();
simt::InstanceList block_tiled_instances();
simt::InstanceList thread_tiled_instances();
simt::InstanceList vectorized_instances();
simt::InstanceList async_instances();
simt::InstanceList tensor_core_instances();
simt::InstanceList tensor_core_tf32_instances();
simt::InstanceList swizzled_instances();
simt::InstanceList swizzled_tf32_instances();
simt::InstanceList tma_instances();

}  // namespace tensorcraft::kernel::gemm
