// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/cvta.cuh"
#if !TC_PTX
#include "tensorcraft/device/host_async.h"
#endif

// Copies of contiguous bytes by the copy engine (sm_90), issued by one thread. Addresses and sizes
// are multiples of 16. Shared memory is read and written through the async proxy: see fence.cuh.
namespace tensorcraft::ptx {

// cp.async.bulk.shared::cluster.global: `bytes` from global to shared memory, counted at the
// barrier when they have come.
TC_DEVICE void cp_async_bulk_load(void* to, const void* from, uint32_t bytes, uint64_t* barrier) {
#if TC_PTX
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1], %2, [%3];" ::"r"(cvta_to_shared(to)),
      "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(cvta_to_shared(barrier))
      : "memory");
#else
  simt::bulk_load(to, from, bytes, barrier, 0);
#endif
}

// Such a copy with a policy of the L2 cache (load.cuh).
TC_DEVICE void cp_async_bulk_load_hint(void* to, const void* from, uint32_t bytes,
                                       uint64_t* barrier, uint64_t policy) {
#if TC_PTX
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1], %2, [%3], %4;" ::"r"(cvta_to_shared(to)),
      "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(cvta_to_shared(barrier)), "l"(policy)
      : "memory");
#else
  (void)policy;
  simt::bulk_load(to, from, bytes, barrier, 0);
#endif
}

// The load into the blocks of the cluster in `mask`, at the same places; each counts its bytes at
// its own barrier.
TC_DEVICE void cp_async_bulk_load_multicast(void* to, const void* from, uint32_t bytes,
                                            uint64_t* barrier, uint16_t mask) {
#if TC_PTX
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1], %2, [%3], %4;" ::"r"(cvta_to_shared(to)),
      "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(cvta_to_shared(barrier)), "h"(mask)
      : "memory");
#else
  simt::bulk_load(to, from, bytes, barrier, mask);
#endif
}

// cp.async.bulk.shared::cluster.shared::cta: from the own shared memory to block `rank`, to the
// place and barrier there that `to` and `barrier` are here.
TC_DEVICE void cp_async_bulk_to_cluster(void* to, const void* from, uint32_t bytes,
                                        uint64_t* barrier, uint32_t rank) {
#if TC_PTX
  asm volatile(
      "{ .reg .b32 to, bar; mapa.shared::cluster.u32 to, %0, %4; "
      "mapa.shared::cluster.u32 bar, %3, %4; "
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
      "[to], [%1], %2, [bar]; }" ::"r"(cvta_to_shared(to)),
      "r"(cvta_to_shared(from)), "r"(bytes), "r"(cvta_to_shared(barrier)), "r"(rank)
      : "memory");
#else
  simt::bulk_to_cluster(to, from, bytes, barrier, rank);
#endif
}

// cp.async.bulk.global.shared::cta: from shared to global memory, in a bulk group.
TC_DEVICE void cp_async_bulk_store(void* to, const void* from, uint32_t bytes) {
#if TC_PTX
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                   __cvta_generic_to_global(to)),
               "r"(cvta_to_shared(from)), "r"(bytes)
               : "memory");
#else
  simt::bulk_store(to, from, bytes);
#endif
}

// cp.reduce.async.bulk.global.shared::cta.add.f32: each element of global memory becomes the sum.
TC_DEVICE void cp_reduce_async_bulk_add_f32(void* to, const void* from, uint32_t bytes) {
#if TC_PTX
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(
                   __cvta_generic_to_global(to)),
               "r"(cvta_to_shared(from)), "r"(bytes)
               : "memory");
#else
  simt::bulk_reduce(simt::Reduce::add, simt::ReduceType::f32, to, from, bytes);
#endif
}

// cp.reduce.async.bulk.global.shared::cta.add.noftz.f16: each element of global memory becomes the
// sum.
TC_DEVICE void cp_reduce_async_bulk_add_f16(void* to, const void* from, uint32_t bytes) {
#if TC_PTX
  asm volatile(
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%0], [%1], %2;" ::"l"(
          __cvta_generic_to_global(to)),
      "r"(cvta_to_shared(from)), "r"(bytes)
      : "memory");
#else
  simt::bulk_reduce(simt::Reduce::add, simt::ReduceType::f16, to, from, bytes);
#endif
}

// cp.reduce.async.bulk.global.shared::cta.add.noftz.bf16: each element of global memory becomes the
// sum.
TC_DEVICE void cp_reduce_async_bulk_add_bf16(void* to, const void* from, uint32_t bytes) {
#if TC_PTX
  asm volatile(
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16 [%0], [%1], %2;" ::"l"(
          __cvta_generic_to_global(to)),
      "r"(cvta_to_shared(from)), "r"(bytes)
      : "memory");
#else
  simt::bulk_reduce(simt::Reduce::add, simt::ReduceType::bf16, to, from, bytes);
#endif
}

// cp.reduce.async.bulk.global.shared::cta.add.u32: each element of global memory becomes the sum.
TC_DEVICE void cp_reduce_async_bulk_add_u32(void* to, const void* from, uint32_t bytes) {
#if TC_PTX
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;" ::"l"(
                   __cvta_generic_to_global(to)),
               "r"(cvta_to_shared(from)), "r"(bytes)
               : "memory");
#else
  simt::bulk_reduce(simt::Reduce::add, simt::ReduceType::u32, to, from, bytes);
#endif
}

// cp.reduce.async.bulk.global.shared::cta.add.u64: each element of global memory becomes the sum.
TC_DEVICE void cp_reduce_async_bulk_add_u64(void* to, const void* from, uint32_t bytes) {
#if TC_PTX
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64 [%0], [%1], %2;" ::"l"(
                   __cvta_generic_to_global(to)),
               "r"(cvta_to_shared(from)), "r"(bytes)
               : "memory");
#else
  simt::bulk_reduce(simt::Reduce::add, simt::ReduceType::u64, to, from, bytes);
#endif
}

// cp.reduce.async.bulk.global.shared::cta.min.s32: each element of global memory becomes the
// smaller one.
TC_DEVICE void cp_reduce_async_bulk_min_s32(void* to, const void* from, uint32_t bytes) {
#if TC_PTX
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.min.s32 [%0], [%1], %2;" ::"l"(
                   __cvta_generic_to_global(to)),
               "r"(cvta_to_shared(from)), "r"(bytes)
               : "memory");
#else
  simt::bulk_reduce(simt::Reduce::min, simt::ReduceType::s32, to, from, bytes);
#endif
}

// cp.reduce.async.bulk.global.shared::cta.max.s32: each element of global memory becomes the larger
// one.
TC_DEVICE void cp_reduce_async_bulk_max_s32(void* to, const void* from, uint32_t bytes) {
#if TC_PTX
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.max.s32 [%0], [%1], %2;" ::"l"(
                   __cvta_generic_to_global(to)),
               "r"(cvta_to_shared(from)), "r"(bytes)
               : "memory");
#else
  simt::bulk_reduce(simt::Reduce::max, simt::ReduceType::s32, to, from, bytes);
#endif
}

// cp.async.bulk.prefetch.L2.global: a hint.
TC_DEVICE void cp_async_bulk_prefetch(const void* from, uint32_t bytes) {
#if TC_PTX
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(from)),
               "r"(bytes)
               : "memory");
#else
  simt::bulk_prefetch(from, bytes);
#endif
}

// cp.async.bulk.commit_group: the stores and reductions of this thread since the last one make a
// group.
TC_DEVICE void cp_async_bulk_commit_group() {
#if TC_PTX
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#else
  simt::bulk_commit_group();
#endif
}

// cp.async.bulk.wait_group: all groups of this thread but the newest kPending are complete.
template <int kPending>
TC_DEVICE void cp_async_bulk_wait_group() {
#if TC_PTX
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kPending) : "memory");
#else
  simt::bulk_wait_group(kPending, false);
#endif
}

// cp.async.bulk.wait_group.read: the sources of all groups of this thread but the newest kPending
// have been read and may change; needed before the block exits.
template <int kPending>
TC_DEVICE void cp_async_bulk_wait_group_read() {
#if TC_PTX
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
#else
  simt::bulk_wait_group(kPending, true);
#endif
}

}  // namespace tensorcraft::ptx
