// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/simt/instance.hpp"

// What of each rung is compiled for the SIMT device. The lists of `naive` and `cache` are whole;
// that of `vectorized` crosses every path of it.
namespace tensorcraft::kernel::rope {

simt::InstanceList naive_instances();
simt::InstanceList vectorized_instances();
simt::InstanceList cache_instances();

}  // namespace tensorcraft::kernel::rope
