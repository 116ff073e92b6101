// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/cvta.cuh"
#if !TC_PTX
#include "tensorcraft/device/host_async.h"
#endif

// Flags and counters in global memory between blocks. In a loop that waits for one, the emulator
// lets other threads run at each load.
namespace tensorcraft::ptx {

// ld.acquire.gpu.global.u32: what the writer did before its st_release() is visible after it.
TC_DEVICE uint32_t ld_acquire_gpu_u32(const uint32_t* from) {
#if TC_PTX
  uint32_t y;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
               : "=r"(y)
               : "l"(__cvta_generic_to_global(from))
               : "memory");
  return y;
#else
  const uint32_t y = __atomic_load_n(from, __ATOMIC_ACQUIRE);
  simt::let_others_run("ld.acquire");
  return y;
#endif
}

// st.release.gpu.global.u32
TC_DEVICE void st_release_gpu_u32(uint32_t* to, uint32_t x) {
#if TC_PTX
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(to)), "r"(x)
               : "memory");
#else
  __atomic_store_n(to, x, __ATOMIC_RELEASE);
#endif
}

// red.release.gpu.global.add.u32: adds x, no value comes back.
TC_DEVICE void red_release_gpu_add_u32(uint32_t* to, uint32_t x) {
#if TC_PTX
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(to)),
               "r"(x)
               : "memory");
#else
  __atomic_fetch_add(to, x, __ATOMIC_RELEASE);
#endif
}

}  // namespace tensorcraft::ptx
