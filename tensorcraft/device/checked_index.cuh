// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"
#if TC_PTX
#include "tensorcraft/device/ptx/control.cuh"
#else
#include "tensorcraft/device/host.h"
#endif

namespace tensorcraft {

// Is `index`, which lies in device memory so that no host could check it, in [0, size)? If not the
// caller leaves the access out. The emulator ends the launch then with an error of kind index,
// "OP: WHAT is INDEX, expected [0, SIZE)"; a kernel that is compiled for a debugger stops.
TC_DEVICE bool is_index(int64_t index, int64_t size, [[maybe_unused]] const char* op,
                        [[maybe_unused]] const char* what) {
  if (uint64_t(index) < uint64_t(size)) return true;
#if TC_PTX
  ptx::trap_in_debug();
#else
  simt::fail_index(op, what, index, size);
#endif
  return false;
}

}  // namespace tensorcraft
