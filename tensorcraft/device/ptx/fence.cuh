// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/cvta.cuh"
#if !TC_PTX
#include "tensorcraft/device/host_async.h"
#endif

namespace tensorcraft::ptx {

// fence.proxy.async.shared::cta: what this thread wrote to shared memory by ordinary stores may be
// read by bulk copies and wgmma. The writer executes it, before the barrier that lets the reader
// go.
TC_DEVICE void fence_proxy_async() {
#if TC_PTX
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#else
  simt::fence_proxy_async();
#endif
}

// fence.mbarrier_init.release.cluster: barriers that this thread initialised may be used by the
// copy engine and by other blocks of the cluster, once a barrier has told them.
TC_DEVICE void fence_mbarrier_init() {
#if TC_PTX
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#else
  simt::fence_mbarrier_init();
#endif
}

}  // namespace tensorcraft::ptx
