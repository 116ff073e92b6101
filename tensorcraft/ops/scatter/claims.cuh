// SPDX-License-Identifier: Apache-2.0
#pragma once
// Claims of places by updates: an entry of a table for each place of a tile holds the number of the
// update that has it, counted from 1.
#include "tensorcraft/device/vec.cuh"
#include "tensorcraft/ops/scatter/update.cuh"

namespace tensorcraft::kernel::scatter {

inline constexpr int32_t kUnclaimed = 0;

// Some places of some lines. Entries of its table are in the order of the output's memory.
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

template <class T>
TC_DEVICE T update_at(const Params& p, int64_t line_update, int32_t j) {
  return static_cast<const T*>(p.updates)[line_update + j * p.update_step];
}

// Writes C.vector neighbours, from entry e on, each from the update that has claimed it or from x.
// They are all inside the output or all outside.
template <class T, Config C>
TC_DEVICE void write_places(const Params& p, const Tile& tile, const int32_t* claims_of_tile,
                            int e) {
  constexpr int V = C.vector, kClaims = V < 4 ? V : 4;  // claims of one access
  const int64_t line = tile.line(e), place = tile.place(e);
  if (line >= p.num_lines || place >= p.size) return;
  int32_t claims[V];
  int num_claimed = 0;
#pragma unroll
  for (int k = 0; k < V; k += kClaims) {
    const auto some = load_vector<kClaims>(claims_of_tile + e + k);
#pragma unroll
    for (int c = 0; c < kClaims; ++c) {
      claims[k + c] = some[c];
      num_claimed += some[c] != kUnclaimed;
    }
  }
  if (p.is_in_place && num_claimed == 0) return;
  // Neighbours are on one line, or on lines beside each other.
  const int64_t line_step =
      V == 1 || tile.is_axis_inner ? 0 : p.lines.update_stride[p.lines.count - 1];
  const Offsets at = p.lines.offsets(uint32_t(line));
  auto unit = load_vector<V>(static_cast<const T*>(p.x) + (at.x + place * p.x_step));
#pragma unroll
  for (int k = 0; k < V; ++k) {
    if (claims[k] == kUnclaimed) continue;
    unit[k] = update_at<T>(p, at.update + k * line_step, claims[k] - 1);
  }
  T* const out = static_cast<T*>(p.out) + (at.out + place * p.out_step);
  if (!p.is_in_place || num_claimed == V) {
    store_vector<V>(out, unit);
    return;
  }
#pragma unroll
  for (int k = 0; k < V; ++k)  // of x itself, only the places named
    if (claims[k] != kUnclaimed) out[k] = unit[k];
}

}  // namespace tensorcraft::kernel::scatter
