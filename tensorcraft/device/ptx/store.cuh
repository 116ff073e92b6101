// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/load.cuh"

namespace tensorcraft::ptx {

// st.global.v4.u32: 16 bytes at once. A plain store of them becomes four of 4 bytes if the compiler
// cannot order the addresses of a kernel that reads at two runtime distances.
TC_DEVICE void st_global_v4(void* to, const Words4& x) {
#if TC_PTX
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)),
               "r"(x.words[0]), "r"(x.words[1]), "r"(x.words[2]), "r"(x.words[3])
               : "memory");
#else
  *static_cast<Words4*>(to) = x;
#endif
}

// st.global.cs.v4.b32: 16 bytes that are not read again soon, so a cache gives them up first.
TC_DEVICE void st_global_cs_v4(void* to, const Words4& x) {
#if TC_PTX
  asm volatile("st.global.cs.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)),
               "r"(x.words[0]), "r"(x.words[1]), "r"(x.words[2]), "r"(x.words[3])
               : "memory");
#else
  *static_cast<Words4*>(to) = x;
#endif
}

// st.global.cs.v2.b32: the same of 8 bytes.
TC_DEVICE void st_global_cs_v2(void* to, const Words2& x) {
#if TC_PTX
  asm volatile("st.global.cs.v2.b32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)),
               "r"(x.words[0]), "r"(x.words[1])
               : "memory");
#else
  *static_cast<Words2*>(to) = x;
#endif
}

// st.global.cs.b32: the same of 4 bytes.
TC_DEVICE void st_global_cs(void* to, uint32_t x) {
#if TC_PTX
  asm volatile("st.global.cs.b32 [%0], %1;" ::"l"(__cvta_generic_to_global(to)), "r"(x) : "memory");
#else
  *static_cast<uint32_t*>(to) = x;
#endif
}

}  // namespace tensorcraft::ptx
