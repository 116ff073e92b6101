// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

namespace tensorcraft::ptx {

struct alignas(16) Words4 {
  uint32_t words[4];
};

// ld.global.nc.v4.u32: 16 bytes of global memory that nothing writes while the kernel runs, so the
// load may pass stores. Volatile, or it would also pass the bounds check in front of it.
TC_DEVICE Words4 ld_global_nc_v4(const void* from) {
#if TC_PTX
  Words4 y;
  asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(y.words[0]), "=r"(y.words[1]), "=r"(y.words[2]), "=r"(y.words[3])
               : "l"(__cvta_generic_to_global(from)));
  return y;
#else
  return *static_cast<const Words4*>(from);
#endif
}

}  // namespace tensorcraft::ptx
