// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/cvta.cuh"
#if !TC_PTX
#include "tensorcraft/device/host_async.h"
#endif

// Barriers in shared memory for threads and asynchronous copies (sm_90). A phase completes when its
// arrivals have come and as many bytes have as were announced; then the next begins. The 8 bytes of
// a barrier are opaque.
namespace tensorcraft::ptx {

// mbarrier.init: `count` arrivals (1 to 2^20 - 1) complete a phase. By one thread;
// fence_mbarrier_init() and a barrier of the block or cluster come before any use by others.
TC_DEVICE void mbarrier_init(uint64_t* barrier, uint32_t count) {
#if TC_PTX
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(cvta_to_shared(barrier)), "r"(count)
               : "memory");
#else
  simt::mbarrier_init(barrier, count);
#endif
}

// mbarrier.inval: the memory may be used for something else, or initialised again.
TC_DEVICE void mbarrier_inval(uint64_t* barrier) {
#if TC_PTX
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(cvta_to_shared(barrier)) : "memory");
#else
  simt::mbarrier_inval(barrier);
#endif
}

// mbarrier.arrive (release, block): `count` of the arrivals that the phase waits for.
TC_DEVICE void mbarrier_arrive(uint64_t* barrier, uint32_t count = 1) {
#if TC_PTX
  asm volatile(
      "mbarrier.arrive.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(cvta_to_shared(barrier)),
      "r"(count)
      : "memory");
#else
  simt::mbarrier_arrive(barrier, count);
#endif
}

// mapa and mbarrier.arrive (release, cluster): at the barrier in the same place of block `rank`.
TC_DEVICE void mbarrier_arrive_cluster(uint64_t* barrier, uint32_t rank, uint32_t count = 1) {
#if TC_PTX
  asm volatile(
      "{ .reg .b32 remote; mapa.shared::cluster.u32 remote, %0, %1; "
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote], %2; }" ::"r"(
          cvta_to_shared(barrier)),
      "r"(rank), "r"(count)
      : "memory");
#else
  simt::mbarrier_arrive_cluster(barrier, rank, count);
#endif
}

// Such an arrival, ordered for the own block only (release, block), as mbarrier_arrive() is: hands
// over to the copy engine what this thread has read. The wider order would wait for all its memory
// accesses.
TC_DEVICE void mbarrier_arrive_cluster_read(uint64_t* barrier, uint32_t rank, uint32_t count = 1) {
#if TC_PTX
  asm volatile(
      "{ .reg .b32 remote; mapa.shared::cluster.u32 remote, %0, %1; "
      "mbarrier.arrive.release.cta.shared::cluster.b64 _, [remote], %2; }" ::"r"(
          cvta_to_shared(barrier)),
      "r"(rank), "r"(count)
      : "memory");
#else
  simt::mbarrier_arrive_cluster(barrier, rank, count);
#endif
}

// mbarrier.arrive.expect_tx: the phase waits for `bytes` more of bulk copies; then one arrival.
TC_DEVICE void mbarrier_arrive_expect_tx(uint64_t* barrier, uint32_t bytes) {
#if TC_PTX
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(
                   cvta_to_shared(barrier)),
               "r"(bytes)
               : "memory");
#else
  simt::mbarrier_expect_tx(barrier, bytes, true);
#endif
}

// mbarrier.expect_tx: the same without the arrival.
TC_DEVICE void mbarrier_expect_tx(uint64_t* barrier, uint32_t bytes) {
#if TC_PTX
  asm volatile(
      "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(cvta_to_shared(barrier)),
      "r"(bytes)
      : "memory");
#else
  simt::mbarrier_expect_tx(barrier, bytes, false);
#endif
}

// mbarrier.test_wait.parity (acquire, block): whether the phase of this parity has completed, which
// is the one before the current: a fresh barrier says yes to 1 and no to 0.
TC_DEVICE bool mbarrier_test_wait_parity(const uint64_t* barrier, uint32_t parity) {
#if TC_PTX
  uint32_t done;
  asm volatile(
      "{ .reg .pred p; mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2; "
      "selp.b32 %0, 1, 0, p; }"
      : "=r"(done)
      : "r"(cvta_to_shared(barrier)), "r"(parity)
      : "memory");
  return done != 0;
#else
  return simt::mbarrier_test_wait(barrier, parity);
#endif
}

// mbarrier.try_wait.parity (acquire, block): the same, but it may wait a while before it says no.
TC_DEVICE bool mbarrier_try_wait_parity(const uint64_t* barrier, uint32_t parity) {
#if TC_PTX
  uint32_t done;
  asm volatile(
      "{ .reg .pred p; mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2; "
      "selp.b32 %0, 1, 0, p; }"
      : "=r"(done)
      : "r"(cvta_to_shared(barrier)), "r"(parity)
      : "memory");
  return done != 0;
#else
  return simt::mbarrier_try_wait(barrier, parity);
#endif
}

// Returns when the phase of this parity has completed.
TC_DEVICE void mbarrier_wait_parity(const uint64_t* barrier, uint32_t parity) {
  while (!mbarrier_try_wait_parity(barrier, parity)) {
  }
}

// cp.async.mbarrier.arrive: one arrival when all cp.async that this thread has issued are complete;
// the phase waits for one arrival more.
TC_DEVICE void cp_async_mbarrier_arrive(uint64_t* barrier) {
#if TC_PTX
  asm volatile("cp.async.mbarrier.arrive.shared::cta.b64 [%0];" ::"r"(cvta_to_shared(barrier))
               : "memory");
#else
  simt::cp_async_mbarrier_arrive(barrier, true);
#endif
}

// As above, but it is one of the arrivals that mbarrier_init() counted.
TC_DEVICE void cp_async_mbarrier_arrive_noinc(uint64_t* barrier) {
#if TC_PTX
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(cvta_to_shared(barrier))
               : "memory");
#else
  simt::cp_async_mbarrier_arrive(barrier, false);
#endif
}

}  // namespace tensorcraft::ptx
