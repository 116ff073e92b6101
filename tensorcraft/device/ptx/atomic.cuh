// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

#if TC_PTX
// Two 16-bit floats at once. CUDA has no builtin for them without a toolkit header.
namespace tensorcraft::ptx {

// atom.add.noftz.f16x2: the old pair; subnormals are kept.
TC_DEVICE uint32_t atom_add_noftz_f16x2(uint32_t* address, uint32_t x) {
  uint32_t old;
  asm volatile("atom.add.noftz.f16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(x) : "memory");
  return old;
}

// atom.add.noftz.bf16x2 (sm_90)
TC_DEVICE uint32_t atom_add_noftz_bf16x2(uint32_t* address, uint32_t x) {
  uint32_t old;
  asm volatile("atom.add.noftz.bf16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(x) : "memory");
  return old;
}

}  // namespace tensorcraft::ptx
#endif
