// SPDX-License-Identifier: Apache-2.0
#pragma once
// The second step of split_kv adds up the parts of a query of a head.
#include "tensorcraft/device/split_keys.cuh"
#include "tensorcraft/ops/paged_attention/pages.cuh"

namespace tensorcraft::kernel::paged_attention {

// Row (b * queries + i) * heads + h: query i of request b and head h.
struct RowPlace {
  int b, i, h;
  Request request;
};
TC_DEVICE RowPlace place_of_row(const Params& p, int64_t row) {
  const int64_t token = row / p.heads;
  const int h = int(row % p.heads), b = int(token / p.queries), i = int(token % p.queries);
  return {b, i, h, {int64_t(b) * p.queries, p.queries, length_of(p, b), window_of_request(p, b)}};
}
template <class T>
TC_DEVICE ResultRow<T> result_row(const Params& p, int64_t row, const RowPlace& at) {
  return {at.request.keys, keys_of(at.request, at.i), p.sinks ? p.sinks[at.h] : -kInfinity,
          static_cast<T*>(p.out) + at.b * p.out_strides.batch + at.i * p.out_strides.row +
              at.h * p.out_strides.head,
          p.lse ? p.lse + row : nullptr};
}
template <class T>
TC_DEVICE ResultRow<T> result_row(const Params& p, int64_t row) {
  return result_row<T>(p, row, place_of_row(p, row));
}

struct Combine {
  static constexpr bool begins_itself = true;
  template <class T, CombineConfig C>
  TC_DEVICE static void run(const Params& p) {
    combine_row<C>(key_parts(p), [&](int64_t row) { return result_row<T>(p, row); });
  }
};

}  // namespace tensorcraft::kernel::paged_attention
