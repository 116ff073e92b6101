// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/paged_attention/pages.cuh"

namespace tensorcraft::kernel::paged_attention {

// The request of a token, by bisection if they are of different lengths; b < 0: of none.
struct Place {
  int b, i;  // request, query of it
  Request request;
};
TC_DEVICE Place place_of(const Params& p, int64_t token) {
  if (!p.starts) {
    const int b = int(token / p.queries), i = int(token % p.queries);
    return {b, i, {int64_t(b) * p.queries, p.queries, length_of(p, b), window_of_request(p, b)}};
  }
  const auto start = [&](int b) { return integer_at(p.starts, b * p.starts_step, p.wide_starts); };
  int low = 0, high = p.batch;  // start(low) <= token < start(high), if there is such a request
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (start(middle) <= token ? low : high) = middle;
  }
  if (p.batch == 0 || token < start(low) || token >= start(low + 1)) return {-1, 0, {}};
  const int64_t first = start(low);
  return {low,
          int(token - first),
          {first, int(start(low + 1) - first), length_of(p, low), window_of_request(p, low)}};
}

}  // namespace tensorcraft::kernel::paged_attention
