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

}  // namespace tensorcraft::ptx
