// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"
#if !TC_PTX
#include "tensorcraft/device/host.h"
#endif

// Atomic instructions for which CUDA has no builtin without a toolkit header, and one that kernels
// have alone: mentioning a builtin costs a compiler 1 ms.
namespace tensorcraft::ptx {

// atom.inc.u32: the old value; one more, and 0 after `last`.
TC_DEVICE uint32_t atom_inc_u32(uint32_t* address, uint32_t last) {
#if TC_PTX
  uint32_t old;
  asm volatile("atom.inc.u32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(last) : "memory");
  return old;
#else
  return simt::atomic(simt::Atomic::increment_u32, address, last);
#endif
}

#if TC_PTX
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

#endif

}  // namespace tensorcraft::ptx
