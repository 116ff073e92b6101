// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/cvta.cuh"
#if !TC_PTX
#include "tensorcraft/device/host_async.h"
#endif

// The 16 barriers of a block; 0 is that of __syncthreads(). All threads of a warp come together,
// and all who meet pass the same count, a multiple of 32.
namespace tensorcraft::ptx {

// bar.sync: waits until `threads` threads have come, those of bar_arrive() included; shared memory
// is ordered.
TC_DEVICE void bar_sync(int id, int threads) {
#if TC_PTX
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
#else
  simt::bar_sync(id, threads);
#endif
}

// bar.arrive: counts this warp and goes on.
TC_DEVICE void bar_arrive(int id, int threads) {
#if TC_PTX
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
#else
  simt::bar_arrive(id, threads);
#endif
}

}  // namespace tensorcraft::ptx
