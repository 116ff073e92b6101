// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/simt/instance.hpp"

// What of each rung is compiled for the SIMT device. The lists of the naive rungs are whole; the
// others cross every path.
namespace tensorcraft::kernel::quantize {

simt::InstanceList naive_instances();
simt::InstanceList in_registers_instances();
simt::InstanceList amax_instances();
simt::InstanceList dequantize_naive_instances();
simt::InstanceList dequantize_vectorized_instances();

}  // namespace tensorcraft::kernel::quantize
