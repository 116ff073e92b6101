// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/cvta.cuh"
#if !TC_PTX
#include "tensorcraft/device/host_async.h"
#endif

// Blocks that run together and reach each other's shared memory (sm_90).
namespace tensorcraft::ptx {

struct ClusterIndex {
  uint32_t x, y, z;
};

// %cluster_ctaid: the place of this block in its cluster.
TC_DEVICE ClusterIndex cluster_ctaid() {
#if TC_PTX
  ClusterIndex i;
  asm volatile(
      "mov.u32 %0, %%cluster_ctaid.x; mov.u32 %1, %%cluster_ctaid.y; mov.u32 %2, %%cluster_ctaid.z;"
      : "=r"(i.x), "=r"(i.y), "=r"(i.z));
  return i;
#else
  const Index3 i = simt::cluster_ctaid();
  return {i.x, i.y, i.z};
#endif
}

// %cluster_nctaid: the blocks of a cluster along each direction.
TC_DEVICE ClusterIndex cluster_nctaid() {
#if TC_PTX
  ClusterIndex i;
  asm volatile(
      "mov.u32 %0, %%cluster_nctaid.x; mov.u32 %1, %%cluster_nctaid.y; mov.u32 %2, "
      "%%cluster_nctaid.z;"
      : "=r"(i.x), "=r"(i.y), "=r"(i.z));
  return i;
#else
  const Index3 i = simt::cluster_nctaid();
  return {i.x, i.y, i.z};
#endif
}

// %cluster_ctarank: the number of this block in its cluster.
TC_DEVICE uint32_t cluster_ctarank() {
#if TC_PTX
  uint32_t y;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(y));
  return y;
#else
  return simt::cluster_ctarank();
#endif
}

// %cluster_nctarank: how many blocks a cluster has.
TC_DEVICE uint32_t cluster_nctarank() {
#if TC_PTX
  uint32_t y;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(y));
  return y;
#else
  return simt::cluster_nctarank();
#endif
}

// barrier.cluster.arrive.release.aligned: all threads of a warp together; then comes one wait.
TC_DEVICE void cluster_arrive() {
#if TC_PTX
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#else
  simt::cluster_arrive();
#endif
}

// barrier.cluster.arrive.relaxed.aligned: orders no memory; enough to show that a block runs or
// ends.
TC_DEVICE void cluster_arrive_relaxed() {
#if TC_PTX
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#else
  simt::cluster_arrive();
#endif
}

// barrier.cluster.wait.acquire.aligned: every thread of the cluster has arrived or exited.
TC_DEVICE void cluster_wait() {
#if TC_PTX
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
  simt::cluster_wait();
#endif
}

// Both: what any thread of the cluster did before is visible to all. A block touches another's
// shared memory only after one, and exits only after one that follows the last such access.
TC_DEVICE void cluster_sync() {
  cluster_arrive();
  cluster_wait();
}

// mapa: the same place in the shared memory of block `rank`, for ordinary loads and stores.
template <class T>
TC_DEVICE T* mapa(T* own, uint32_t rank) {
#if TC_PTX
  uint64_t y;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(y) : "l"(own), "r"(rank));
  return reinterpret_cast<T*>(y);
#else
  return static_cast<T*>(simt::mapa(own, rank));
#endif
}

// ld.shared::cluster.u32 from the same place in block `rank`.
TC_DEVICE uint32_t ld_shared_cluster_u32(const uint32_t* own, uint32_t rank) {
#if TC_PTX
  uint32_t y;
  asm volatile(
      "{ .reg .b32 remote; mapa.shared::cluster.u32 remote, %1, %2; "
      "ld.shared::cluster.u32 %0, [remote]; }"
      : "=r"(y)
      : "r"(cvta_to_shared(own)), "r"(rank)
      : "memory");
  return y;
#else
  return *static_cast<const uint32_t*>(
      simt::cluster_access(own, rank, sizeof(*own), "ld.shared::cluster"));
#endif
}

// st.shared::cluster.u32 to the same place in block `rank`.
TC_DEVICE void st_shared_cluster_u32(uint32_t* own, uint32_t rank, uint32_t x) {
#if TC_PTX
  asm volatile(
      "{ .reg .b32 remote; mapa.shared::cluster.u32 remote, %0, %1; "
      "st.shared::cluster.u32 [remote], %2; }" ::"r"(cvta_to_shared(own)),
      "r"(rank), "r"(x)
      : "memory");
#else
  *static_cast<uint32_t*>(simt::cluster_access(own, rank, sizeof(*own), "st.shared::cluster")) = x;
#endif
}

// st.async.u32 to the same place in block `rank`; its 4 bytes count at the barrier there.
TC_DEVICE void st_async_u32(uint32_t* own, uint32_t x, uint64_t* barrier, uint32_t rank) {
#if TC_PTX
  asm volatile(
      "{ .reg .b32 to, bar; mapa.shared::cluster.u32 to, %0, %3; "
      "mapa.shared::cluster.u32 bar, %2, %3; "
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [to], %1, [bar]; }" ::"r"(
          cvta_to_shared(own)),
      "r"(x), "r"(cvta_to_shared(barrier)), "r"(rank)
      : "memory");
#else
  simt::st_async(own, &x, sizeof(x), barrier, rank);
#endif
}

}  // namespace tensorcraft::ptx
