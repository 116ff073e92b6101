// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/load.cuh"
#include "tensorcraft/device/vec.cuh"

namespace tensorcraft {

// The policy by which a kernel that writes about as much as it reads, here `bytes`, reads what it
// reads once. If that is more than L2 holds, the lines that were read are replaced last, so results
// reach memory early and steadily: 2 to 4 % of the time (ops/norm/README.md), and the next
// kernel finds L2 no worse. If it is less, everything stays in L2 for the next kernel.
inline constexpr int64_t kStreamedBytes = 32 << 20;
TC_DEVICE uint64_t stream_policy(int64_t bytes) {
  const uint64_t last = ptx::createpolicy_evict_last(), normal = ptx::createpolicy_evict_normal();
  return bytes > kStreamedBytes ? last : normal;
}

// The policy if each block of the grid reads kBytes: without a product, since each load waits
// for the policy.
template <int64_t kBytes>
TC_DEVICE uint64_t stream_policy_of_blocks() {
  constexpr uint32_t kMax = uint32_t(kStreamedBytes / kBytes);
  const uint64_t last = ptx::createpolicy_evict_last(), normal = ptx::createpolicy_evict_normal();
  return gridDim.x > kMax ? last : normal;
}

// load_vector() by that policy if an access has 16 bytes.
template <int N, class T>
TC_DEVICE AlignedVector<T, N> load_streamed(const T* from, uint64_t policy) {
  if constexpr (sizeof(T) * N == kVectorBytes)
    return bit_cast<AlignedVector<T, N>>(ptx::ld_global_hint_v4(from, policy));
  else
    return load_vector<N>(from);
}

}  // namespace tensorcraft
