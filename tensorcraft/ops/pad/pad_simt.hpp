// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/simt/instance.hpp"

// What of each rung is compiled for the SIMT device: each size of an element.
namespace tensorcraft::kernel::pad {

simt::InstanceList naive_instances();
simt::InstanceList vectorized_instances();

}  // namespace tensorcraft::kernel::pad
