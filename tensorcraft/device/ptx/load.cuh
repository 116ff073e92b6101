// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

namespace tensorcraft::ptx {

struct alignas(16) Words4 {
  uint32_t words[4];
};
struct alignas(8) Words2 {
  uint32_t words[2];
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

// createpolicy.fractional.L2::evict_last: for the loads below, of lines that L2 replaces last.
TC_DEVICE uint64_t createpolicy_evict_last() {
#if TC_PTX
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  return policy;
#else
  return 0;
#endif
}

// createpolicy.fractional.L2::evict_first: of lines that L2 replaces first.
TC_DEVICE uint64_t createpolicy_evict_first() {
#if TC_PTX
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
#else
  return 0;
#endif
}

// createpolicy.fractional.L2::evict_normal: of lines like those that are loaded without a policy.
TC_DEVICE uint64_t createpolicy_evict_normal() {
#if TC_PTX
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
  return policy;
#else
  return 0;
#endif
}

// ld.global.L2::cache_hint.v4.u32: 16 bytes by a policy of the L2 cache.
TC_DEVICE Words4 ld_global_hint_v4(const void* from, uint64_t policy) {
#if TC_PTX
  Words4 y;
  asm volatile("ld.global.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
               : "=r"(y.words[0]), "=r"(y.words[1]), "=r"(y.words[2]), "=r"(y.words[3])
               : "l"(__cvta_generic_to_global(from)), "l"(policy));
  return y;
#else
  (void)policy;
  return *static_cast<const Words4*>(from);
#endif
}

// ld.global.cs.v4.b32: 16 bytes that are read once, so a cache gives them up first.
TC_DEVICE Words4 ld_global_cs_v4(const void* from) {
#if TC_PTX
  Words4 y;
  asm volatile("ld.global.cs.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(y.words[0]), "=r"(y.words[1]), "=r"(y.words[2]), "=r"(y.words[3])
               : "l"(__cvta_generic_to_global(from))
               : "memory");
  return y;
#else
  return *static_cast<const Words4*>(from);
#endif
}

// ld.global.cs.v2.b32: the same of 8 bytes.
TC_DEVICE Words2 ld_global_cs_v2(const void* from) {
#if TC_PTX
  Words2 y;
  asm volatile("ld.global.cs.v2.b32 {%0, %1}, [%2];"
               : "=r"(y.words[0]), "=r"(y.words[1])
               : "l"(__cvta_generic_to_global(from))
               : "memory");
  return y;
#else
  return *static_cast<const Words2*>(from);
#endif
}

// ld.global.cs.b32: the same of 4 bytes.
TC_DEVICE uint32_t ld_global_cs(const void* from) {
#if TC_PTX
  uint32_t y;
  asm volatile("ld.global.cs.b32 %0, [%1];"
               : "=r"(y)
               : "l"(__cvta_generic_to_global(from))
               : "memory");
  return y;
#else
  return *static_cast<const uint32_t*>(from);
#endif
}

}  // namespace tensorcraft::ptx
