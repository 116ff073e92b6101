// SPDX-License-Identifier: Apache-2.0
#pragma once
// The second step of split_kv: a warp adds up the parts of one query of a head.
#include "tensorcraft/device/split_keys.cuh"
#include "tensorcraft/ops/paged_attention/pages.cuh"

namespace tensorcraft::kernel::paged_attention {

struct Combine {
  template <class T, CombineConfig C>
  TC_DEVICE static void run(const Params& p) {
    const int64_t row = int64_t(blockIdx.x) * (C.threads / 32) + threadIdx.x / 32;
    if (row >= p.tokens * p.heads) return;
    const int64_t token = row / p.heads;
    const int h = int(row % p.heads), b = int(token / p.queries), i = int(token % p.queries);
    const KeyRange seen = keys_of(p, {int64_t(b) * p.queries, p.queries, length_of(p, b)}, i);
    T* out = static_cast<T*>(p.out) + b * p.out_strides.batch + i * p.out_strides.row +
             h * p.out_strides.head;
    combine_parts<T, kMaxValueDim>(key_parts(p), row, seen, p.sinks ? p.sinks[h] : -kInfinity, out,
                                   p.lse ? p.lse + row : nullptr);
  }
};

}  // namespace tensorcraft::kernel::paged_attention
