// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/cluster.cuh"
#include "tensorcraft/device/shared.cuh"

namespace tensorcraft {

inline constexpr int kMaxCluster = 8;  // blocks of a cluster that every sm_90 GPU accepts

// Part of the kernel's shared struct, at the same place in every block. It serves one exchange.
template <class T>
struct ClusterExchange {
  T values[kMaxCluster];
};

// Every thread gets the value of each block of the cluster in `all`, in the order of the blocks.
// All threads of the cluster call, those of one block with the same value. Blocks may exit
// afterwards: each reads only its own memory.
template <int kBlocks, class T>
TC_DEVICE void cluster_all_gather(ClusterExchange<T>& shared, const T& value, T (&all)[kBlocks]) {
  static_assert(kBlocks <= kMaxCluster);
  ptx::cluster_sync();  // every block runs, so its memory may be written
  if (threadIdx.x < kBlocks)
    ptx::mapa(&shared, threadIdx.x)->values[ptx::cluster_ctarank()] = value;
  ptx::cluster_sync();
  for (int i = 0; i < kBlocks; ++i) all[i] = shared.values[i];
}

}  // namespace tensorcraft
