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

// Element `element` of `what`, which lies in device memory too, if it is in [0, room], else the
// nearer end; the emulator ends the launch with an error of kind value then, "OP: WHAT: element I
// is COUNT, expected [0, ROOM], LIMIT".
TC_DEVICE int64_t checked_count(int64_t count, int64_t room, [[maybe_unused]] int64_t element,
                                [[maybe_unused]] const char* op, [[maybe_unused]] const char* what,
                                [[maybe_unused]] const char* limit) {
  if (count >= 0 && count <= room) return count;
#if TC_PTX
  ptx::trap_in_debug();
#else
  simt::fail_count(op, what, element, count, room, limit);
#endif
  return count < 0 ? 0 : room;
}

}  // namespace tensorcraft
