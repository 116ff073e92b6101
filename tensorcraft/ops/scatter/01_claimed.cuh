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
#include "tensorcraft/device/vec.cuh"
#include "tensorcraft/ops/scatter/update.cuh"

namespace tensorcraft::kernel::scatter {

inline constexpr int32_t kUnclaimed = -1, kNoneYet = 0x7fffffff;

template <class T, Config C>
struct Table {
  static constexpr int kCombined = C.combines ? C.entries : 1;
  alignas(16) int32_t claim[C.entries];
  int32_t done[kCombined];  // the last update that was combined
  Sum<T> sum[kCombined];
  int32_t last_round;  // in which an update was found
};

// The tile of this block. Entries of the table are in the order of the output's memory.
struct Tile {
  int64_t first_line, first_place;
  int32_t log2_lines, log2_places;
  bool is_axis_inner;

  TC_DEVICE int entries() const { return 1 << (log2_lines + log2_places); }
  TC_DEVICE int64_t line(int entry) const {
    return first_line + (is_axis_inner ? entry >> log2_places : entry & ((1 << log2_lines) - 1));
  }
  TC_DEVICE int64_t place(int entry) const {
    return first_place + (is_axis_inner ? entry & ((1 << log2_places) - 1) : entry >> log2_lines);
  }
  TC_DEVICE int entry(int line, int64_t place) const {
    const int at = int(place - first_place);
    return is_axis_inner ? (line << log2_places) + at : (at << log2_lines) + line;
  }
  TC_DEVICE bool has(int64_t place) const {
    return place >= first_place && place < first_place + (int64_t(1) << log2_places);
  }
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

template <class T>
TC_DEVICE T update_at(const Params& p, int64_t line_update, int32_t j) {
  return static_cast<const T*>(p.updates)[line_update + j * p.update_step];
}

// The winner of each place. A unit of C.vector neighbours is all inside the output or all outside.
template <class T, Config C>
TC_DEVICE void place(const Params& p, const Tile& tile, Table<T, C>& table) {
  for (int e = threadIdx.x; e < tile.entries(); e += C.threads) table.claim[e] = kUnclaimed;
  __syncthreads();
  for_each_update(p, tile, C.threads,
                  [&](int entry, int32_t j) { atomic_max(&table.claim[entry], j); });
  __syncthreads();

  constexpr int V = C.vector, kClaims = V < 4 ? V : 4;  // claims of one access
  // Neighbours are on one line, or on lines beside each other.
  const int64_t line_step =
      V == 1 || tile.is_axis_inner ? 0 : p.lines.update_stride[p.lines.count - 1];
  for (int e = threadIdx.x * V; e < tile.entries(); e += C.threads * V) {
    const int64_t line = tile.line(e), place = tile.place(e);
    if (line >= p.num_lines || place >= p.size) continue;
    int32_t claims[V];
    int num_claimed = 0;
#pragma unroll
    for (int k = 0; k < V; k += kClaims) {
      const auto some = load_vector<kClaims>(&table.claim[e + k]);
#pragma unroll
      for (int c = 0; c < kClaims; ++c) {
        claims[k + c] = some[c];
        num_claimed += some[c] != kUnclaimed;
      }
    }
    if (p.is_in_place && num_claimed == 0) continue;
    const Offsets at = p.lines.offsets(uint32_t(line));
    auto unit = load_vector<V>(static_cast<const T*>(p.x) + (at.x + place * p.x_step));
#pragma unroll
    for (int k = 0; k < V; ++k) {
      if (claims[k] == kUnclaimed) continue;
      unit[k] = update_at<T>(p, at.update + k * line_step, claims[k]);
    }
    T* const out = static_cast<T*>(p.out) + (at.out + place * p.out_step);
    if (!p.is_in_place || num_claimed == V) {
      store_vector<V>(out, unit);
      continue;
    }
#pragma unroll
    for (int k = 0; k < V; ++k)  // of x itself, only the places named
      if (claims[k] != kUnclaimed) out[k] = unit[k];
  }
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
    table.done[e] = kUnclaimed;
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
    const bool is_named = table.done[e] != kUnclaimed;
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
