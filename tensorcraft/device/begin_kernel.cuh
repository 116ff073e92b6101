// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/control.cuh"

namespace tensorcraft {

// What every kernel that is launched as a dependent one begins with: it waits for the kernels in
// front, and lets the blocks of the one behind be placed as soon as all of its own run. That one
// waits in its turn, for the end of this, so its launch is hidden and the order stays.
TC_DEVICE void begin_kernel() {
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
}

}  // namespace tensorcraft
