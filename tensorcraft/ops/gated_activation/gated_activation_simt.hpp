// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/simt/instance.hpp"

// What of each rung is compiled for the SIMT device. The list of `naive` is whole; that of
// `vectorized` crosses every path of it.
namespace tensorcraft::kernel::gated_activation {

simt::InstanceList naive_instances();
simt::InstanceList vectorized_instances();

}  // namespace tensorcraft::kernel::gated_activation
