// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/index.h"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/device/scan.cuh"
#include "tensorcraft/device/vec.cuh"
#include "tensorcraft/ops/sample/params.h"
#include "tensorcraft/ops/sample/weight.cuh"

namespace tensorcraft::kernel::sample {

struct Larger {
  template <class V>
  TC_DEVICE V operator()(V a, V b) const {
    return a > b ? a : b;
  }
};
struct Smaller {
  template <class V>
  TC_DEVICE V operator()(V a, V b) const {
    return a < b ? a : b;
  }
};

// A row of logits with its settings.
template <class T, class P>
struct Row {
  const P& p;
  int64_t row;
  const T* x;
  Settings settings;

  TC_DEVICE Row(const P& params, int64_t which)
      : p(params),
        row(which),
        x(static_cast<const T*>(params.logits) + row_offset(params, P::kLogits, which)),
        settings(settings_of(number(p.temperatures, P::kTemperature, p.temperature),
                             integer(p.top_ks, P::kTopK, p.wide_top_ks, p.top_k),
                             number(p.top_ps, P::kTopP, p.top_p),
                             number(p.min_ps, P::kMinP, p.min_p), p.cols)) {}

  TC_DEVICE float number(const float* tensor, int which, float otherwise) const {
    return tensor ? tensor[row_offset(p, which, row)] : otherwise;
  }
  TC_DEVICE int64_t integer(const void* tensor, int which, int32_t wide, int64_t otherwise) const {
    return tensor ? integer_at(tensor, row_offset(p, which, row), wide) : otherwise;
  }
  TC_DEVICE Draw draw() const {
    return draw_of(uint64_t(integer(p.seeds, P::kSeed, p.wide_seeds, p.seed)),
                   uint64_t(integer(p.offsets, P::kOffset, p.wide_offsets, p.offset)),
                   p.row_counts ? uint64_t(row) : 0);
  }
  TC_DEVICE int64_t chunks() const { return div_ceil(p.cols, int64_t(kChunk)); }
  // Is the result the largest, whatever is drawn?
  TC_DEVICE bool takes_largest(float most) const { return settings.scale == 0 || !is_finite(most); }
  TC_DEVICE void store(int64_t index) const { p.out[row_offset(p, P::kOut, row)] = index; }
};

// Which elements of a row stay: all by default.
struct Kept {
  float most = 0;     // the largest of the row
  uint64_t last = 0;  // the lowest key
  uint64_t least = 0;
  int64_t cols = 0;
  float scale = 0;

  template <class R>
  TC_DEVICE static Kept all_of(const R& r, float most) {
    return {most, 0, 0, r.p.cols, r.settings.scale};
  }
  TC_DEVICE uint64_t weight(float x) const { return weight_of((most - x) * scale); }
  TC_DEVICE bool has(float x, int64_t index) const {
    return key_of(order_of(x), index, cols) >= last && (least == 0 || weight(x) >= least);
  }
  // The lowest value that could stay; NaN if any could.
  TC_DEVICE float lowest() const { return value_of(uint32_t(last >> kIndexBits)); }
  // Could the row keep anything of a chunk with this largest?
  TC_DEVICE bool has_any(uint32_t order) const {
    return order >= uint32_t(last >> kIndexBits) &&
           (least == 0 || weight(value_of(order)) >= least);
  }
};

// C.vector elements from `at` on, -inf behind the end of the row.
template <class T, Config C, class P>
TC_DEVICE AlignedVector<T, C.vector> load(const Row<T, P>& r, int64_t at) {
  if (at + C.vector <= r.p.cols)
    return load_vector<C.vector>(r.x + (C.vector > 1 ? at : at * r.p.col_step));
  AlignedVector<T, C.vector> some;
#pragma unroll
  for (int i = 0; i < C.vector; ++i) some[i] = at + i < r.p.cols ? r.x[at + i] : T(-kInfinity);
  return some;
}

// A chunk in the registers of a warp, kEach elements a lane.
inline constexpr int kEach = kChunk / kWarpSize;
template <class T, Config C>
struct Chunk {
  static constexpr int kVectors = kEach / C.vector;
  AlignedVector<T, C.vector> loaded[kVectors];

  template <class P>
  TC_DEVICE Chunk(const Row<T, P>& r, int64_t chunk) {
    const int64_t first = chunk * kChunk + threadIdx.x % kWarpSize * C.vector;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) loaded[v] = load<T, C>(r, first + v * kWarpSize * C.vector);
  }
  TC_DEVICE float value(int i) const { return float(loaded[i / C.vector][i % C.vector]); }
  // The order of the largest, in every lane.
  TC_DEVICE uint32_t largest() const {
    float most = value(0);
#pragma unroll
    for (int i = 1; i < kEach; ++i) most = fmax_nan(most, value(i));
    return order_of(warp_max(most));
  }
  // The part of the row that the chunk is if all of it stays; a row that top_k filters has no use
  // for the sum.
  template <class P>
  TC_DEVICE Part part(const Row<T, P>& r) const {
    const uint32_t order = largest();
    if (C.filters != 0 && r.settings.top_k < r.p.cols) return {0, order, 0};
    const float most = value_of(order);
    uint64_t sum = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) sum += weight_of((most - value(i)) * r.settings.scale);
    return {warp_sum(sum), order, 0};
  }
};

// Calls f(x, index) for the elements of a chunk that are not below `lowest`, each in one lane. They
// are few, so what is done to one is compiled once.
template <Config C, class T, class P, class F>
TC_DEVICE void for_each(const Row<T, P>& r, int64_t chunk, float lowest, const F& f) {
  constexpr int kAtOnce = 4, kStep = kWarpSize * C.vector;  // loads in flight
  const int64_t first = chunk * kChunk + threadIdx.x % kWarpSize * C.vector;
#pragma unroll 1
  for (int64_t from = first; from < first + kChunk; from += kAtOnce * kStep) {
    unsigned found = 0;
#pragma unroll
    for (int v = 0; v < kAtOnce; ++v) {
      const auto some = load<T, C>(r, from + v * kStep);
      float most = float(some[0]);
#pragma unroll
      for (int i = 1; i < C.vector; ++i) most = fmaxf(most, float(some[i]));
      found |= unsigned(!(most < lowest)) << v;
    }
#pragma unroll 1
    for (int64_t at = from; found != 0; found >>= 1, at += kStep) {
      if ((found & 1) == 0) continue;
#pragma unroll 1
      for (int64_t i = at; i < at + C.vector && i < r.p.cols; ++i) {
        const auto x = float(r.x[i * r.p.col_step]);
        if (!(x < lowest)) f(x, i);
      }
    }
  }
}

// The part of the row that is in a chunk, of what stays.
template <Config C, class R>
TC_DEVICE Part filtered_part(const R& r, int64_t chunk, uint32_t order, const Kept& kept) {
  const float most = value_of(order);
  uint64_t sum = 0;
  for_each<C>(r, chunk, kept.lowest(), [&](float x, int64_t index) {
    if (kept.has(x, index)) sum += weight_of((most - x) * kept.scale);
  });
  return {warp_sum(sum), order, 0};
}

// Stores the first index of the largest element of a chunk; a warp calls.
template <class R>
TC_DEVICE void store_largest(const R& r, int64_t chunk, uint32_t order) {
  int64_t found = r.p.cols;
  const int64_t end = Smaller()(r.p.cols, (chunk + 1) * kChunk);
  for (int64_t i = chunk * kChunk + threadIdx.x % kWarpSize; i < end; i += kWarpSize)
    if (order_of(float(r.x[i * r.p.col_step])) == order) found = Smaller()(found, i);
  found = warp_reduce(found, Smaller());
  if (threadIdx.x % kWarpSize == 0) r.store(found);
}

// Stores which element of a chunk is drawn: lanes have neighbours, in the order of indices.
template <Config C, class T, class P>
TC_DEVICE void store_drawn(const Row<T, P>& r, int64_t chunk, const Part& part, uint64_t random,
                           const Kept& kept) {
  const int64_t first = chunk * kChunk + threadIdx.x % kWarpSize * kEach;
  const float most = value_of(part.order);
  // Up to which element the sum of a lane exceeds `target`; without one, the sum.
  const auto walk = [&](uint64_t& sum, uint64_t target) -> int64_t {
#pragma unroll 1
    for (int64_t at = first; at < first + kEach; at += C.vector) {
      const auto some = load<T, C>(r, at);
#pragma unroll
      for (int i = 0; i < C.vector; ++i) {
        const auto x = float(some[i]);
        if (C.filters == 0 || kept.has(x, at + i)) sum += weight_of((most - x) * kept.scale);
        if (sum > target) return at + i;
      }
    }
    return -1;
  };
  uint64_t own = 0;
  walk(own, ~uint64_t(0));
  const uint64_t target = high_of(random, part.sum), up_to = warp_scan(own);
  uint64_t below = up_to - own;
  if (target >= up_to || target < below) return;
  r.store(walk(below, target));
}

// Which chunk the first random number means, and its element; a warp calls. part_of(c) is that of
// a chunk, and lanes may ask for chunks of their own.
template <Config C, class R, class PartOf>
TC_DEVICE void store_pick(const R& r, const Kept& kept, uint32_t largest, const PartOf& part_of) {
  const int lane = int(threadIdx.x) % kWarpSize;
  const int64_t chunks = r.chunks();
  const bool takes_largest = r.takes_largest(kept.most);
  const auto share = [&](int64_t c) -> uint64_t {
    if (c >= chunks) return 0;
    const Part part = part_of(c);
    return takes_largest ? part.order == largest : share_of(part, kept.most, r.settings.scale);
  };
  uint64_t total = 0;
  for (int64_t c = lane; c < chunks; c += kWarpSize) total += share(c);
  total = warp_sum(total);
  const Draw draw = r.draw();
  uint64_t left = takes_largest ? 0 : high_of(draw.first, total);
  for (int64_t first = 0; first < chunks; first += kWarpSize) {
    const uint64_t own = share(first + lane), up_to = warp_scan(own);
    const uint64_t all = warp_broadcast(up_to, kWarpSize - 1);
    if (left >= all) {
      left -= all;
      continue;
    }
    const unsigned above = __ballot_sync(kFullWarp, up_to > left);
    int which = 0;
    while (!(above >> which & 1)) ++which;
    const Part part = part_of(first + which);
    if (takes_largest)
      store_largest(r, first + which, largest);
    else
      store_drawn<C>(r, first + which, part, draw.second, kept);
    return;
  }
}

}  // namespace tensorcraft::kernel::sample
