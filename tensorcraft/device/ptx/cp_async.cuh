// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/cvta.cuh"

// Copies from global to shared memory that run beside the threads (sm_80). On the host a copy is
// done when it is asked for, which is one of the orders the hardware may choose.
namespace tensorcraft::ptx {

// cp.async.cg.shared.global 16: the first `bytes` (0 to 16) of 16 bytes from global, zeros behind
// them. Both addresses are multiples of 16; with bytes = 0 global is not read.
TC_DEVICE void cp_async_cg_16(void* shared, const void* global, int bytes) {
#if TC_PTX
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(cvta_to_shared(shared)),
               "l"(global), "r"(bytes)
               : "memory");
#else
  __builtin_memset(shared, 0, 16);
  __builtin_memcpy(shared, global, size_t(bytes));
#endif
}

// cp.async.wait_all: this thread's copies are complete. A barrier then shows them to the others.
TC_DEVICE void cp_async_wait_all() {
#if TC_PTX
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

}  // namespace tensorcraft::ptx
