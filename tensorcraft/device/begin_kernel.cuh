// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/control.cuh"

namespace tensorcraft {

// Every kernel that is launched as a dependent one begins with this: it waits for the kernels
// before it, and lets the blocks of the next one be placed as soon as all of its own run. The next
// one waits in its turn for the end of this one, so its launch is hidden and the order stays.
TC_DEVICE void begin_kernel() {
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
}

}  // namespace tensorcraft
