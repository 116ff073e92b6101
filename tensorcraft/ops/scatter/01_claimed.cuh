// SPDX-License-Identifier: Apache-2.0
#pragma once
// A block has a tile of places, some of some lines, and a table of them in shared memory. Updates
// claim their place there by their number, all at once and in any order; the highest number wins,
// so what is written does not depend on which came first. Then every place is written once, from
// the update that won or from x:
//   indices read = num_updates for each tile of a line, not for each of its elements.
// Combined updates take rounds. In each the lowest number that is left wins and is combined, so the
// order is that of the updates. Places that have updates left after kMaxRounds are finished by one
// thread each, which reads the rest of its line.
#include "tensorcraft/device/atomic.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/ops/scatter/claims.cuh"

namespace tensorcraft::kernel::scatter {

inline constexpr int32_t kNoneDone = -1, kNoneYet = 0x7fffffff;

template <class T, Config C>
struct Table {
  static constexpr int kCombined = C.combines ? C.entries : 1;
  alignas(16) int32_t claim[C.entries];
  int32_t done[kCombined];  // the last update that was combined
  Sum<T> sum[kCombined];
  int32_t last_round;  // in which an update was found
};

TC_DEVICE Tile tile_of(const Params& p) {
  const uint32_t group = blockIdx.x / p.axis_tiles, along = blockIdx.x - group * p.axis_tiles;
  return {int64_t(group) << p.log2_lines, int64_t(along) << p.log2_places, p.log2_lines,
          p.log2_places, p.is_axis_inner != 0};
}

// claim(entry, j) for every update j that names a place of the tile; neighbouring threads read
// neighbouring indices.
template <class Claim>
TC_DEVICE void for_each_update(const Params& p, const Tile& tile, int threads, Claim&& claim) {
  const int lines = 1 << tile.log2_lines;
  const auto updates = uint32_t(p.num_updates);
  for (uint32_t item = threadIdx.x; item < updates * lines; item += threads) {
    uint32_t line = item & (lines - 1), j = item >> tile.log2_lines;
    if (tile.is_axis_inner) {
      line = item / updates;
      j = item - line * updates;
    }
    if (tile.first_line + line >= p.num_lines) continue;
    const Offsets at = p.lines.offsets(uint32_t(tile.first_line) + line);
    const int64_t place = place_of(p, at.index, j);
    if (place >= 0 && tile.has(place)) claim(tile.entry(int(line), place), int32_t(j));
  }
}

// The winner of each place.
template <class T, Config C>
TC_DEVICE void place(const Params& p, const Tile& tile, Table<T, C>& table) {
  for (int e = threadIdx.x; e < tile.entries(); e += C.threads) table.claim[e] = kUnclaimed;
  __syncthreads();
  for_each_update(p, tile, C.threads,
                  [&](int entry, int32_t j) { atomic_max(&table.claim[entry], j + 1); });
  __syncthreads();
  for (int e = threadIdx.x * C.vector; e < tile.entries(); e += C.threads * C.vector)
    write_places<T, C>(p, tile, table.claim, e);
}

// Combines update j of a place and all behind it that name the place.
template <class T>
TC_DEVICE void combine_rest(const Params& p, const Offsets& at, int64_t place, int32_t j,
                            Sum<T>& sum) {
  for (; j < p.num_updates; ++j)
    if (place_of(p, at.index, j) == place)
      sum = combine(p.operation, sum, Sum<T>(update_at<T>(p, at.update, j)));
}

// The sum, product or extreme of each place; a thread has the same entries in every round.
template <class T, Config C>
TC_DEVICE void reduce(const Params& p, const Tile& tile, Table<T, C>& table) {
  static_assert(C.vector == 1);
  const T* const x = static_cast<const T*>(p.x);
  const auto is_inside = [&](int e) {
    return tile.line(e) < p.num_lines && tile.place(e) < p.size;
  };
  const auto offsets = [&](int e) { return p.lines.offsets(uint32_t(tile.line(e))); };
  for (int e = threadIdx.x; e < tile.entries(); e += C.threads) {
    table.claim[e] = kNoneYet;
    table.done[e] = kNoneDone;
    if (is_inside(e)) table.sum[e] = Sum<T>(x[offsets(e).x + tile.place(e) * p.x_step]);
  }
  if (threadIdx.x == 0) table.last_round = -1;
  __syncthreads();
  for (int round = 0;; ++round) {
    for_each_update(p, tile, C.threads, [&](int e, int32_t j) {
      if (j > table.done[e]) atomic_min(&table.claim[e], j);
    });
    __syncthreads();
    for (int e = threadIdx.x; e < tile.entries(); e += C.threads) {
      const int32_t j = table.claim[e];
      if (j == kNoneYet) continue;
      table.done[e] = j;
      if (round == kMaxRounds) {
        combine_rest<T>(p, offsets(e), tile.place(e), j, table.sum[e]);
        continue;
      }
      const auto update = Sum<T>(update_at<T>(p, offsets(e).update, j));
      table.sum[e] = combine(p.operation, table.sum[e], update);
      table.claim[e] = kNoneYet;
      atomic_max(&table.last_round, round);
    }
    __syncthreads();
    if (table.last_round != round) break;
  }
  for (int e = threadIdx.x; e < tile.entries(); e += C.threads) {
    const bool is_named = table.done[e] != kNoneDone;
    if (!is_inside(e) || (p.is_in_place && !is_named)) continue;
    const Offsets at = offsets(e);
    const int64_t place = tile.place(e);
    static_cast<T*>(p.out)[at.out + place * p.out_step] =
        is_named ? T(table.sum[e]) : x[at.x + place * p.x_step];
  }
}

struct Claimed {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    auto& table = static_shared<Table<T, C>>();
    const Tile tile = tile_of(p);
    if constexpr (C.combines != 0)
      reduce<T, C>(p, tile, table);
    else
      place<T, C>(p, tile, table);
  }
};

}  // namespace tensorcraft::kernel::scatter
