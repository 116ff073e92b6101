// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/cvta.cuh"
#if !TC_PTX
#include "tensorcraft/device/host.h"
#endif

// Copies from global to shared memory that run beside the threads (sm_80). A copy is complete for
// the thread that asked for it once it has waited, and for the others after a barrier too:
// device/copy_ring.cuh keeps that order.
namespace tensorcraft::ptx {

// cp.async.cg.shared.global 16: the first `bytes` (0 to 16) of 16 bytes from global, then zeros.
// Both addresses are multiples of 16; with bytes = 0 global is not read.
TC_DEVICE void cp_async_cg_16(void* shared, const void* global, int bytes) {
#if TC_PTX
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(cvta_to_shared(shared)),
               "l"(global), "r"(bytes)
               : "memory");
#else
  simt::cp_async(shared, global, 16, bytes);
#endif
}

// cp.async.cg.shared.global.L2::cache_hint 16: all 16 bytes, by a policy of the L2 cache.
TC_DEVICE void cp_async_cg_16_hint(void* shared, const void* global, uint64_t policy) {
#if TC_PTX
  asm volatile(
      "cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(cvta_to_shared(shared)),
      "l"(global), "l"(policy)
      : "memory");
#else
  (void)policy;
  simt::cp_async(shared, global, 16, 16);
#endif
}

// cp.async.ca.shared.global 4: as cp_async_cg_16(), 4 bytes at multiples of 4.
TC_DEVICE void cp_async_ca_4(void* shared, const void* global, int bytes) {
#if TC_PTX
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(cvta_to_shared(shared)),
               "l"(global), "r"(bytes)
               : "memory");
#else
  simt::cp_async(shared, global, 4, bytes);
#endif
}

// cp.async.ca.shared.global 8: the same for 8 bytes, at multiples of 8.
TC_DEVICE void cp_async_ca_8(void* shared, const void* global, int bytes) {
#if TC_PTX
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(cvta_to_shared(shared)),
               "l"(global), "r"(bytes)
               : "memory");
#else
  simt::cp_async(shared, global, 8, bytes);
#endif
}

// cp.async.commit_group: the copies since the last commit, none included, become one group.
TC_DEVICE void cp_async_commit_group() {
#if TC_PTX
  asm volatile("cp.async.commit_group;" ::: "memory");
#else
  simt::cp_async_commit();
#endif
}

// cp.async.wait_group: all groups of this thread but the newest `kPending` are complete.
template <int kPending>
TC_DEVICE void cp_async_wait_group() {
#if TC_PTX
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#else
  simt::cp_async_wait_group(kPending);
#endif
}

// cp.async.wait_all: this thread's copies are complete, committed or not.
TC_DEVICE void cp_async_wait_all() {
#if TC_PTX
  asm volatile("cp.async.wait_all;" ::: "memory");
#else
  simt::cp_async_commit();
  simt::cp_async_wait_group(0);
#endif
}

}  // namespace tensorcraft::ptx
