// SPDX-License-Identifier: Apache-2.0
#pragma once
// The second step of split_kv adds up the parts of a query of a head.
#include "tensorcraft/device/split_keys.cuh"
#include "tensorcraft/ops/paged_attention/pages.cuh"

namespace tensorcraft::kernel::paged_attention {

// Row: query i of request b and head h is (b * queries + i) * heads + h.
template <class T>
TC_DEVICE ResultRow<T> result_row(const Params& p, int64_t row) {
  const int64_t token = row / p.heads;
  const int h = int(row % p.heads), b = int(token / p.queries), i = int(token % p.queries);
  const Request request{int64_t(b) * p.queries, p.queries, length_of(p, b),
                        window_of_request(p, b)};
  return {request.keys, keys_of(request, i), p.sinks ? p.sinks[h] : -kInfinity,
          static_cast<T*>(p.out) + b * p.out_strides.batch + i * p.out_strides.row +
              h * p.out_strides.head,
          p.lse ? p.lse + row : nullptr};
}

struct Combine {
  static constexpr bool begins_itself = true;
  template <class T, CombineConfig C>
  TC_DEVICE static void run(const Params& p) {
    combine_row<C>(key_parts(p), [&](int64_t row) { return result_row<T>(p, row); });
  }
};

}  // namespace tensorcraft::kernel::paged_attention
