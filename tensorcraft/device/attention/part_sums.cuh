// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/attention/ring.cuh"
#include "tensorcraft/device/attention/row_fold.cuh"

namespace tensorcraft::kernel::attention_tiles {

// Which parts of the keys a consumer goes through, from the last one on.
template <Config C>
struct PartWalk {
  int part, first_tile, tiles;  // tiles: of a whole part; first_tile: of the one it goes through

  template <class Ring>
  TC_DEVICE void begin(Ring&, const HopperParams&, const Work<C>& w) {
    part = w.part;
    tiles = w.part_tiles;
    first_tile = part * tiles - w.first_key / C.block_n;
  }
  TC_DEVICE bool begins_part(int tile) {
    if (tile >= first_tile) return false;
    first_tile -= tiles;
    return true;
  }
};

// A consumer keeps this of parts: of each of a thread's two rows, and of its values.
template <Config C, int kParts = C.parts>
struct PartSums {};

// Parts that are written.
template <Config C>
struct PartSums<C, kWritten> : PartWalk<C> {};

// Parts that are folded. Values lie in memory behind the ring, or if they are keys in the
// workspace.
template <Config C>
struct PartSums<C, kFolded> : PartWalk<C> {
  static constexpr int kSums = values_of_consumer(C) / 2;
  static constexpr int kThreads = (values_are_keys(C) ? 2 : C.consumers) * kWarpgroup;
  RowFold rows[2];
  RowFold::Factors factors[2];
  float* sums;    // of this thread: neighbours are kThreads apart
  bool is_first;  // no sums are there

  template <class Ring>
  TC_DEVICE void begin(Ring& ring, const HopperParams& p, const Work<C>& w) {
    static_assert(kSums * kThreads * sizeof(float) == folded_bytes(C));
    PartWalk<C>::begin(ring, p, w);
    if constexpr (values_are_keys(C))
      sums = p.parts + blockIdx.x * int64_t(kSums * kThreads) + threadIdx.x - kWarpgroup;
    else
      sums = reinterpret_cast<float*>(&ring + 1) + threadIdx.x;
    rows[0] = rows[1] = {};
    is_first = true;
  }
  TC_DEVICE void end_row(int half, const RowSum& part, float factor) {
    factors[half] = rows[half].add(part, factor);
  }
  // take(c, x): sum c is x now.
  template <class Sums, class Take>
  TC_DEVICE void add_sums(const Sums& part, const Take& take) {
    constexpr int kAtOnce = 16;  // loads that start together, before the stores of others
#pragma unroll
    for (int from = 0; from < kSums; from += kAtOnce) {
      float kept[kAtOnce];
#pragma unroll
      for (int c = 0; c < kAtOnce; ++c) kept[c] = is_first ? 0.f : sums[(from + c) * kThreads];
#pragma unroll
      for (int c = 0; c < kAtOnce; ++c)
        take(from + c, RowFold::value(kept[c], *part.at(from + c), factors[c / 2 % 2]));
    }
    is_first = false;
  }
  template <class Sums>
  TC_DEVICE void add_sums(const Sums& part) {
    add_sums(part, [&](int c, float x) { sums[c * kThreads] = x; });
  }
};

}  // namespace tensorcraft::kernel::attention_tiles
