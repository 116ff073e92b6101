// SPDX-License-Identifier: Apache-2.0
#pragma once
// The second step of split_kv: a warp adds up the parts of one query of a head.
#include "tensorcraft/device/split_keys.cuh"
#include "tensorcraft/ops/attention/mask.cuh"
#include "tensorcraft/ops/attention/request.cuh"

namespace tensorcraft::kernel::attention {

struct Combine {
  template <class T, CombineConfig C>
  TC_DEVICE static void run(const Params& p) {
    const int64_t row = int64_t(blockIdx.x) * (C.threads / 32) + threadIdx.x / 32;
    if (row >= int64_t(p.batch) * p.heads * p.seq_q) return;
    const int i = int(row % p.seq_q), h = int(row / p.seq_q % p.heads);
    const int b = int(row / p.seq_q / p.heads);
    T* out = static_cast<T*>(p.out) + b * p.out_strides.batch + h * p.out_strides.head +
             i * p.out_strides.row;
    combine_parts<T, kMaxHeadDim>(key_parts(p), row, whole_request(p, b).seen(i), sink_of(p, b, h),
                                  out, p.lse ? p.lse + row : nullptr);
  }
};

}  // namespace tensorcraft::kernel::attention
