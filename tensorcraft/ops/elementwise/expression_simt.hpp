// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/simt/instance.hpp"

// The rung that serves every expression on the SIMT device, where device text made at run time
// cannot be compiled.
namespace tensorcraft::kernel::elementwise {

simt::InstanceList interpreted_instances();

}  // namespace tensorcraft::kernel::elementwise
