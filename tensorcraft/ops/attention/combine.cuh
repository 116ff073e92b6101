// SPDX-License-Identifier: Apache-2.0
#pragma once
// The second step of split_kv adds up the parts of a query of a head.
#include "tensorcraft/device/split_keys.cuh"
#include "tensorcraft/device/attention/mask.cuh"
#include "tensorcraft/device/attention/request.cuh"
#include "tensorcraft/ops/attention/params.h"

namespace tensorcraft::kernel::attention {

// Row: query i of request b and head h is (b * heads + h) * seq_q + i.
template <class T>
TC_DEVICE ResultRow<T> result_row(const Params& p, int64_t row) {
  const int i = int(row % p.seq_q), h = int(row / p.seq_q % p.heads);
  const int b = int(row / p.seq_q / p.heads);
  const Request request = whole_request(p, b);
  return {request.keys, request.seen(i), sink_of(p, b, h),
          static_cast<T*>(p.out) + b * p.out_strides.batch + h * p.out_strides.head +
              i * p.out_strides.row,
          p.lse ? p.lse + row : nullptr};
}

struct Combine {
  static constexpr bool begins_itself = true;
  template <class T, CombineConfig C>
  TC_DEVICE static void run(const Params& p) {
    combine_row<C>(key_parts(p), [&](int64_t row) { return result_row<T>(p, row); });
  }
};

}  // namespace tensorcraft::kernel::attention
