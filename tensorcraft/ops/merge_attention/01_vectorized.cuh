// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: a group of threads shares a row, each takes 16 bytes of either side in one access,
// so neighbouring threads read neighbours. Time is that of moving out_a, out_b and out.
// Demands: unit strides along rows, rows of whole 16-byte units that begin at 16-byte boundaries.
#include "tensorcraft/device/packed.cuh"
#include "tensorcraft/ops/merge_attention/params.h"
#include "tensorcraft/ops/merge_attention/shares.cuh"

namespace tensorcraft::kernel::merge_attention {

struct Vectorized {
  template <class T, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    constexpr int N = kVectorSize<T>;
    const int64_t own = int64_t(blockIdx.x) * (C.threads / C.group) + threadIdx.x / C.group;
    const bool exists = own < p.rows;
    const int64_t row = exists ? own : 0;  // a thread without a row takes part in the barrier
    const int lane = int(threadIdx.x % C.group);
    const Shares s = shares_of(p.lse_a[row_offset(p, Params::kLseA, row)],
                               p.lse_b[row_offset(p, Params::kLseB, row)]);
    const T* a = static_cast<const T*>(p.out_a) + row_offset(p, Params::kOutA, row);
    const T* b = static_cast<const T*>(p.out_b) + row_offset(p, Params::kOutB, row);
    T* out = static_cast<T*>(p.out) + row_offset(p, Params::kOut, row);
    const uint64_t policy = stream_policy(p.rows * p.cols * int64_t(2 * sizeof(T)));
    for (int64_t col = lane * N; exists && col < p.cols; col += C.group * N) {
      const auto from_a = Packed<T, N>::load_streamed(a + col, policy);
      const auto from_b = Packed<T, N>::load_streamed(b + col, policy);
      float x[N], y[N];
      to_floats(x, from_a);
      to_floats(y, from_b);
      for (int e = 0; e < N; ++e) x[e] = s.merged(x[e], y[e]);
      from_floats<T, N>(x).store(out + col);
    }
    __syncwarp();  // lse may be one of those that the group reads
    if (p.lse && exists && lane == 0) p.lse[row_offset(p, Params::kLse, row)] = s.lse;
  }
};

}  // namespace tensorcraft::kernel::merge_attention
