// SPDX-License-Identifier: Apache-2.0
#pragma once
// One warp, one row, which it reads again for whatever it wants to know of it. The lowest key that
// stays is found bit by bit: the largest number to which the keys from it on have enough.
#include "tensorcraft/ops/sample/row.cuh"

namespace tensorcraft::kernel::sample {

struct Naive {
  // What the elements from `key` on amount to, f(x) each.
  template <class R, class F>
  TC_DEVICE static uint64_t amount(const R& r, uint64_t key, const F& f) {
    uint64_t sum = 0;
#pragma unroll 1
    for (int64_t i = threadIdx.x % kWarpSize; i < r.p.cols; i += kWarpSize) {
      const auto x = float(r.x[i * r.p.col_step]);
      if (key_of(order_of(x), i, r.p.cols) >= key) sum += f(x);
    }
    return warp_sum(sum);
  }
  // The largest key from which on the amount is `target` or more.
  template <class R, class F>
  TC_DEVICE static uint64_t last_key(const R& r, uint64_t target, const F& f) {
    uint64_t key = 0;
#pragma unroll 1
    for (int bit = 31 + kIndexBits; bit >= 0; --bit) {
      const uint64_t larger = key | uint64_t(1) << bit;
      if (amount(r, larger, f) >= target) key = larger;
    }
    return key;
  }
  template <Config C, class T, class P>
  TC_DEVICE static Part part_of(const Row<T, P>& r, int64_t chunk, const Kept& kept) {
    return filtered_part<C>(r, chunk, Chunk<T, C>(r, chunk).largest(), kept);
  }
  template <Config C, class R>
  TC_DEVICE static Kept kept_of(const R& r, float most) {
    Kept kept = Kept::all_of(r, most);
    const Settings& s = r.settings;
    const auto weight = [&](float x) { return kept.weight(x); };
    if (s.top_k < r.p.cols)
      kept.last = last_key(r, uint64_t(s.top_k), [](float) { return uint64_t(1); });
    if (s.share != 0) {
      uint64_t total = 0;
#pragma unroll 1
      for (int64_t c = 0; c < r.chunks(); ++c)
        total += share_of(part_of<C>(r, c, kept), most, s.scale);
      kept.last = Larger()(kept.last, last_key(r, target_of(total, s.share), weight));
    }
    kept.least = s.least;
    return kept;
  }

  template <class T, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    const int64_t row = int64_t(blockIdx.x) * (C.threads / kWarpSize) + threadIdx.x / kWarpSize;
    if (row >= p.rows) return;  // the whole warp
    const Row<T, RowParams<Params, C>> r(p, row);
    const int64_t chunks = r.chunks();
    uint32_t largest = 0;
#pragma unroll 1
    for (int64_t c = 0; c < chunks; ++c) largest = Larger()(largest, Chunk<T, C>(r, c).largest());
    const float most = value_of(largest);
    const bool takes_largest = r.takes_largest(most);
    const Kept kept = takes_largest ? Kept::all_of(r, most) : kept_of<C>(r, most);
    const auto share = [&](const Part& part) -> uint64_t {
      return takes_largest ? part.order == largest : share_of(part, most, r.settings.scale);
    };
    uint64_t total = 0;
#pragma unroll 1
    for (int64_t c = 0; c < chunks; ++c) total += share(part_of<C>(r, c, kept));
    const Draw draw = r.draw();
    uint64_t left = takes_largest ? 0 : high_of(draw.first, total);
#pragma unroll 1
    for (int64_t c = 0; c < chunks; ++c) {
      const Part part = part_of<C>(r, c, kept);
      const uint64_t own = share(part);
      if (left >= own) {
        left -= own;
        continue;
      }
      return takes_largest ? store_largest(r, c, largest)
                           : store_drawn<C>(r, c, part, draw.second, kept);
    }
  }
};

}  // namespace tensorcraft::kernel::sample
