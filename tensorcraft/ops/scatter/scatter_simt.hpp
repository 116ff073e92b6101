// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/simt/instance.hpp"

// What of each rung is compiled for the SIMT device; `naive` serves what `claimed` lacks.
namespace tensorcraft::kernel::scatter {

simt::InstanceList naive_instances();
simt::InstanceList claimed_instances();

}  // namespace tensorcraft::kernel::scatter
