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
    combine_row<T, kMaxHeadDim, C.threads>(key_parts(p), p.lse, [&](int64_t row) {
      const int i = int(row % p.seq_q), h = int(row / p.seq_q % p.heads);
      const int b = int(row / p.seq_q / p.heads);
      return CombinedRow<T>{whole_request(p, b).seen(i), sink_of(p, b, h),
                            static_cast<T*>(p.out) + b * p.out_strides.batch +
                                h * p.out_strides.head + i * p.out_strides.row};
    });
  }
};

}  // namespace tensorcraft::kernel::attention
