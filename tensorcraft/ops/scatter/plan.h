// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/rung.h"
#include "tensorcraft/ops/scatter/params.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::scatter {

using Choice = op::Choice<Config>;

// Facts of a call that Params do not hold, whose tile is chosen by adapt.
struct Given {
  int element_bytes;
  bool has_workspace = false;  // the launch brings workspace_bytes(), all 0
};

// Entries of the table: 32 KiB of claims, or claims, what is done and sums in 24 or 32 KiB.
inline constexpr int kThreads = 256, kUnitBytes = 16, kPlaceEntries = 8192, kCombineEntries = 2048;

// An axis of lines behind those there are; merged with the last if all strides allow it.
inline void add_axis(Lines& lines, int64_t size, int64_t out, int64_t x, int64_t index,
                     int64_t update) {
  if (size == 1) return;
  const int last = lines.count - 1;
  const bool merges =
      last >= 0 && lines.out_stride[last] == out * size && lines.x_stride[last] == x * size &&
      lines.index_stride[last] == index * size && lines.update_stride[last] == update * size;
  const int at = merges ? last : lines.count++;
  lines.size[at] = merges ? lines.size[at] * size : size;
  lines.out_stride[at] = out;
  lines.x_stride[at] = x;
  lines.index_stride[at] = index;
  lines.update_stride[at] = update;
}

// What follows from the lines and the steps, which are given.
inline void finish(Params& p) {
  p.num_lines = 1;
  for (int i = 0; i < p.lines.count; ++i) p.num_lines *= p.lines.size[i];
  const int last = p.lines.count - 1;
  p.is_axis_inner = last < 0 || std::abs(p.out_step) < std::abs(p.lines.out_stride[last]);
  p.is_in_place = p.x == p.out;
}

// out[o, indices[o, j, i], i] = updates[o, j, i] of dense arrays: x is [outer, size, inner], and
// there are `count` indices on each line.
inline Params contiguous_params(const void* x, const void* indices, const void* updates, void* out,
                                int index_bytes, Operation operation, int64_t outer, int64_t size,
                                int64_t inner, int64_t count) {
  Params p{.x = x,
           .indices = indices,
           .updates = updates,
           .out = out,
           .lines = {},
           .size = size,
           .num_updates = count,
           .out_step = inner,
           .x_step = inner,
           .index_step = inner,
           .update_step = inner,
           .operation = operation,
           .index_bytes = index_bytes};
  add_axis(p.lines, outer, size * inner, size * inner, count * inner, count * inner);
  add_axis(p.lines, inner, 1, 1, 1, 1);
  finish(p);
  return p;
}

inline Choice naive(const Params& p, const Given&, const op::Gpu&) {
  const int64_t count = p.num_lines * p.size;
  return op::Start<Config>{{.threads = kThreads, .wide = count >= int64_t(1) << 31},
                           div_ceil(count, int64_t(kThreads))};
}

inline int log2_ceil(int64_t n) { return n <= 1 ? 0 : std::bit_width(uint64_t(n - 1)); }

// Neighbours that can be moved in one access: 16 bytes of them or one.
inline int vector_of(const Params& p, const Given& given) {
  const int vector = kUnitBytes / given.element_bytes, last = p.lines.count - 1;
  if (p.operation != Operation::none) return 1;
  uint64_t all = 0;  // everything that must be whole units
  if (p.is_axis_inner) {
    if (p.out_step != 1 || p.x_step != 1) return 1;
    all = uint64_t(p.size);
  } else {
    if (p.lines.out_stride[last] != 1 || p.lines.x_stride[last] != 1) return 1;
    all = uint64_t(p.lines.size[last]) | uint64_t(p.out_step) | uint64_t(p.x_step);
  }
  for (int i = 0; i < p.lines.count; ++i)
    if (p.is_axis_inner || i != last)
      all |= uint64_t(p.lines.out_stride[i]) | uint64_t(p.lines.x_stride[i]);
  const bool is_aligned = op::is_vector_aligned(p.x) && op::is_vector_aligned(p.out);
  return is_aligned && all % uint64_t(vector) == 0 ? vector : 1;
}

// The tile of a block: a power of two in each direction, small if large ones would leave
// multiprocessors without work. Neighbours in memory come first.
inline void choose_tile(Params& p, const Given&, const op::Gpu& gpu) {
  constexpr int kLog2Neighbours = 5;  // lines beside each other, if those are neighbours
  const int entries = p.operation == Operation::none ? kPlaceEntries : kCombineEntries;
  const int64_t elements = p.num_lines * p.size;
  int log2 = log2_ceil(entries);
  while (log2 > 10 && elements >> log2 < int64_t(2) * gpu.num_sms) --log2;
  const int all_lines = log2_ceil(p.num_lines), all_places = log2_ceil(p.size);
  if (p.is_axis_inner) {
    p.log2_places = std::min(all_places, log2);
    p.log2_lines = std::min(all_lines, log2 - p.log2_places);
  } else {
    p.log2_lines = std::min(all_lines, std::max(kLog2Neighbours, log2 - all_places));
    p.log2_places = std::min(all_places, log2 - p.log2_lines);
  }
  p.axis_tiles = uint32_t(div_ceil(p.size, int64_t(1) << p.log2_places));
}

inline Choice claimed(const Params& p, const Given& given, const op::Gpu& gpu) {
  constexpr int64_t kTooMany = int64_t(1) << 31;
  Params tile = p;
  choose_tile(tile, given, gpu);
  const int64_t blocks = div_ceil(p.num_lines, int64_t(1) << tile.log2_lines) *
                         div_ceil(p.size, int64_t(1) << tile.log2_places);
  if (p.num_lines >= kTooMany || blocks >= kTooMany)
    return op::refuse("31 bits must count lines and tiles");
  if (p.num_updates >= kTooMany >> tile.log2_lines)
    return op::refuse("31 bits must count the updates of a tile");
  const bool combines = p.operation != Operation::none;
  const Config config{.threads = kThreads,
                      .entries = combines ? kCombineEntries : kPlaceEntries,
                      .vector = vector_of(p, given),
                      .combines = combines};
  return {op::Start<Config>{config, blocks},
          combines && p.num_updates / kMaxRounds > p.size
              ? "places have more than 16 updates each, and combining them takes a round for each"
              : ""};
}

// The lines of a panel: about 8 MiB of claims, or the fewest lines whose neighbours make accesses
// of 32 bytes or more.
inline constexpr int kLog2PanelEntries = 21, kLog2MaxPanelEntries = 25;
inline void choose_panels(Params& p, const Given& given, const op::Gpu&) {
  const int threads = kThreads, unit = threads * kUnitsOfThread * vector_of(p, given);
  const int least = p.is_axis_inner ? 0 : 5, most = log2_ceil(threads);
  p.log2_places = log2_ceil(p.size);
  p.log2_lines =
      std::min(log2_ceil(p.num_lines), std::clamp(kLog2PanelEntries - p.log2_places, least, most));
  const int64_t lines = int64_t(1) << p.log2_lines, entries = lines << p.log2_places;
  const int64_t updates = p.is_axis_inner ? p.num_updates : p.num_updates * lines;
  p.panels = uint32_t(div_ceil(p.num_lines, lines));
  p.claiming_blocks = uint32_t(div_ceil(updates, int64_t(threads) * kUpdatesOfThread));
  if (p.is_axis_inner) p.claiming_blocks <<= p.log2_lines;
  p.writing_blocks = uint32_t(div_ceil(entries, int64_t(unit)));
}

inline size_t workspace_bytes(const Params& p) {
  const int64_t entries = int64_t(1) << (p.log2_lines + p.log2_places);
  return size_t(claims_at(p.panels) + kPanelsAtOnce * entries * int64_t(sizeof(int32_t)));
}

inline Choice panels(const Params& whole, const Given& given, const op::Gpu& gpu) {
  constexpr int64_t kTooMany = int64_t(1) << 31, kManyUpdates = int64_t(1) << 20;
  constexpr uint32_t kFewTiles = 4;
  if (!given.has_workspace) return op::refuse("needs a workspace");
  if (whole.operation != Operation::none) return op::refuse("updates are combined");
  if (whole.num_lines >= kTooMany || whole.num_updates >= kTooMany >> log2_ceil(kThreads))
    return op::refuse("31 bits must count lines, and the updates of a panel");
  if (whole.size > int64_t(1) << kLog2MaxPanelEntries)
    return op::refuse("a line has more than 2^25 places");
  Params p = whole;
  choose_panels(p, given, gpu);
  if (p.log2_lines + p.log2_places > kLog2MaxPanelEntries)
    return op::refuse("the claims of neighbouring lines take more than 128 MiB");
  const int64_t blocks = (int64_t(p.claiming_blocks) + p.writing_blocks) * p.panels;
  if (blocks >= kTooMany) return op::refuse("31 bits must count blocks");
  const int vector = vector_of(p, given);
  const int blocks_of_sm = vector > 8 ? 3 : 4;  // more leave too few registers
  const op::Start<Config> start{{.threads = kThreads, .vector = vector}, blocks, blocks_of_sm};
  choose_tile(p, given, gpu);
  if (p.axis_tiles <= kFewTiles)
    return {start, "a line has few tiles, and each reads the indices but once"};
  if (p.num_lines * p.num_updates < kManyUpdates) return {start, "few updates"};
  return start;
}

inline constexpr op::Rung<Params, Given, Config> kRungs[] = {
    {.name = "panels",
     .file = "02_panels.cuh",
     .idea = "claims of whole lines lie in the L2 cache, so each index is read once",
     .choose = panels,
     .adapt = choose_panels},
    {.name = "claimed",
     .file = "01_claimed.cuh",
     .idea = "updates claim their places in shared memory, then each place is written once",
     .choose = claimed,
     .adapt = choose_tile},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "one thread a place, which looks through all indices of its line",
     .choose = naive,
     .general = op::with_wide<Config>},
};

}  // namespace tensorcraft::kernel::scatter
