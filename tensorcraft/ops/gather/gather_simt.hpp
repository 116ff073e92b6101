// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/simt/instance.hpp"

// What of each rung is compiled for the SIMT device; `naive` serves what `vectorized` lacks.
namespace tensorcraft::kernel::gather {

simt::InstanceList naive_instances();
simt::InstanceList vectorized_instances();

}  // namespace tensorcraft::kernel::gather
