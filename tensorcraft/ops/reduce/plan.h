// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/row_plan.h"
#include "tensorcraft/ops/reduce/params.h"

#include <algorithm>
#include <bit>
#include <string_view>

// Which Config and grid each rung gets; host only. Params come in with a row for each output; a
// plan then says how blocks share them.
namespace tensorcraft::kernel::reduce {

struct Planned {
  op::LaunchPlan<Config> launch;
  Params params;
  op::LaunchPlan<Config> combine{};  // no blocks: none share an output
  size_t workspace_bytes = 0;
};

inline constexpr int kThreads = 256;
inline constexpr int64_t kStateBytes = 16;  // of the largest State

// Blocks that an SM holds at once: 4 at 64 registers a thread, fewer where states or maps take
// more, or values of 8 bytes have many accesses in flight.
constexpr int blocks_per_sm(const Config& c) {
  const bool is_large =
      c.operation == Operation::argmax || c.operation == Operation::var || c.vector == 2;
  return c.nested && is_large ? 2 : c.nested || is_large ? 3 : 4;
}

constexpr void add_axis(RowMap& map, int64_t size, int64_t stride) {
  map.size[map.axes] = size;
  map.stride[map.axes++] = stride;
}

// x[outer][reduced][inner] to out[outer][inner], both row-major.
inline Params contiguous_params(const void* x, void* out, int64_t outer, int64_t reduced,
                                int64_t inner, float correction = 0) {
  Params p{.x = x, .out = out, .rows = outer * inner, .segments = 1, .cols = reduced};
  p.step = reduced == 1 ? 1 : inner;
  const bool merge = reduced == 1 || outer == 1 || inner == 1;
  RowMap x_rows{}, out_rows{};
  if (merge && p.rows > 1) {
    add_axis(x_rows, p.rows, inner == 1 ? reduced : 1);
    add_axis(out_rows, p.rows, 1);
  } else if (!merge) {
    add_axis(x_rows, outer, reduced * inner);
    add_axis(x_rows, inner, 1);
    add_axis(out_rows, outer, inner);
    add_axis(out_rows, inner, 1);
  }
  p.maps = row_maps(x_rows, out_rows, RowMap{});
  p.repeats = 1;
  p.count = float(reduced);
  p.divisor = std::max(float(reduced) - correction, 0.0f);
  return p;
}

// How many blocks share the `units` of an output, where the GPU holds `slots` blocks at once:
// enough to fill it, and as many units in one as in the next.
constexpr int64_t splits_of(int64_t blocks, int64_t units, int64_t slots) {
  constexpr int64_t kFewUnits = 4, kWaves = 4;
  if (units < kFewUnits || blocks == 0 || blocks >= kWaves * slots) return 1;
  const int64_t wanted = blocks <= slots ? slots / blocks : div_ceil(kWaves * slots, blocks);
  const int64_t most = blocks <= slots ? units : units / kFewUnits;
  const int64_t each = div_ceil(units, std::clamp(wanted, int64_t(1), most));
  return div_ceil(units, each);
}

// A thread an output where that has few parts or outputs are many, else a warp or a block.
inline op::LaunchPlan<Config> combine_launch(const Params& p, Config config) {
  constexpr int64_t kFewParts = 8, kManyOutputs = 32 * kThreads, kPartsOfWarp = 128;
  const int64_t outputs = p.rows * p.inner;
  const bool is_thread = p.splits <= kFewParts || outputs >= kManyOutputs;
  config.group = is_thread ? 1 : p.splits <= kPartsOfWarp ? 32 : kThreads;
  config.vector = config.unroll = 1;
  return {.config = config, .blocks = div_ceil(outputs, int64_t(kThreads / config.group))};
}

inline Planned planned(Params p, Config config, int64_t blocks, int num_sms, bool can_share) {
  const int64_t slots = int64_t(blocks_per_sm(config)) * num_sms;
  p.splits = can_share ? splits_of(blocks, p.units, slots) : 1;
  p.by_splits = Divider::of(p.splits);
  Planned plan{.launch = {.config = config, .blocks = blocks * p.splits}, .params = p};
  plan.launch.min_blocks = blocks_per_sm(config);
  if (p.splits > 1) {
    plan.params.by_inner = Divider::of(p.inner);  // shared outputs are few
    plan.launch.config.shared = 1;
    plan.combine = combine_launch(p, config);
    plan.workspace_bytes = size_t(p.rows * p.inner * p.splits * kStateBytes);
  }
  return plan;
}

inline bool is_nested(const Params& p) { return p.maps[Params::kX].axes > 1 || p.segments > 1; }

inline Planned naive_plan(const Params& p, Operation operation) {
  const Config config{.operation = operation, .threads = 128, .nested = is_nested(p)};
  return {.launch = {.config = config, .blocks = div_ceil(p.rows, int64_t(128))}, .params = p};
}
inline std::string_view naive_problem(const Params& p) {
  return div_ceil(p.rows, int64_t(128)) > op::kMaxBlocks ? "needs fewer than 2^38 outputs" : "";
}

// Elements of an access; 1 where neighbours or addresses do not allow more.
inline int row_vector(const Params& p, int element_bytes) {
  const bool whole = p.step == 1 &&
                     op::rows_vector_aligned(p.x, p.maps[Params::kX], element_bytes) &&
                     op::rows_vector_aligned(p.x, p.maps[Params::kSegments], element_bytes);
  return whole ? 16 / element_bytes : 1;
}

// Accesses that a thread has in flight where a reduction is long. A state of more than one word,
// the unpacking of bytes and the divisions of a nested map take the registers of some.
constexpr int most_accesses(const Config& config, int element_bytes) {
  const bool adds_up = config.operation <= Operation::mean || config.operation >= Operation::any;
  return adds_up && element_bytes > 1 && !config.nested ? 8 : 4;
}

// Accesses of a thread where more would leave multiprocessors without a block.
inline constexpr int kFewAccesses = 2;

inline Planned row_plan(Params p, Operation operation, int element_bytes, int num_sms) {
  Config config{.operation = operation, .threads = kThreads, .nested = is_nested(p)};
  config.vector = row_vector(p, element_bytes);
  const int64_t vectors = div_ceil(p.cols, int64_t(config.vector));
  // A warp reads 128 accesses at once, and again as many where rows enough keep the GPU busy.
  const int64_t most_of_warp = p.rows < int64_t(kThreads / 32) * num_sms ? 128 : 256;
  config.group = vectors <= 16 ? 4 : vectors <= most_of_warp ? 32 : kThreads;
  const bool is_block = config.group == kThreads;
  config.unroll = is_block ? most_accesses(config, element_bytes) : 4;
  const auto set_units = [&] {
    p.tiles = div_ceil(vectors, int64_t(config.group) * config.unroll);
    p.units = p.segments * p.tiles;
  };
  set_units();
  if (is_block && p.rows * p.units < num_sms) {
    config.unroll = kFewAccesses;
    set_units();
  }
  p.inner = 1;
  return planned(p, config, div_ceil(p.rows, int64_t(kThreads / config.group)), num_sms, is_block);
}
inline std::string_view row_problem(const Params& p) {
  return p.rows > op::kMaxBlocks / 8 ? "needs fewer than 2^28 outputs" : "";
}

// Why an accepted problem is left to naive; empty where it is not.
inline std::string_view row_doubt(const Params& p) {
  const int64_t length = p.segments * p.cols;
  if (length < 8) return "a reduction has fewer than 8 elements";
  return p.step != 1 && length < 128 ? "a reduction has fewer than 128 elements, which are apart"
                                     : "";
}

// The last axis of the rows becomes `inner`.
inline Params column_params(Params p) {
  RowMap x = p.maps[Params::kX], out = p.maps[Params::kOut];
  const int last = --x.axes;
  --out.axes;
  p.inner = x.size[last];
  p.out_inner = out.stride[last];
  for (RowMap* map : {&x, &out}) map->size[last] = map->stride[last] = 0;
  p.maps.set(Params::kX, x);
  p.maps.set(Params::kOut, out);
  p.rows /= p.inner;
  return p;
}

inline Planned column_plan(const Params& whole, Operation operation, int element_bytes,
                           int num_sms) {
  Params p = column_params(whole);
  Config config{.operation = operation, .threads = kThreads, .nested = is_nested(p)};
  const int widest = std::min(16 / element_bytes, 8);  // states of more columns fill the registers
  const bool is_wide = p.inner % widest == 0 && p.step * element_bytes % 16 == 0 &&
                       op::rows_vector_aligned(p.x, p.maps[Params::kX], element_bytes) &&
                       op::rows_vector_aligned(p.x, p.maps[Params::kSegments], element_bytes);
  config.vector = is_wide ? widest : 1;
  config.unroll = most_accesses(config, element_bytes);
  const auto with_group = [&](int group) {
    config.group = group;
    p.tiles = div_ceil(p.inner, int64_t(group) * config.vector);
    p.by_tiles = Divider::of(p.tiles);
    p.units = div_ceil(p.segments * p.cols, int64_t(kThreads / group) * config.unroll);
    return planned(p, config, p.rows * p.tiles, num_sms, true);
  };
  constexpr int kWidest = 32, kNarrowest = 4;
  const auto vectors = uint64_t(p.inner / config.vector);
  const Planned wide =
      with_group(vectors >= kWidest ? kWidest : std::max(kNarrowest, int(std::bit_ceil(vectors))));
  if (wide.params.splits == 1) return wide;
  // Narrow tiles are as many blocks. Where each reads its columns at once, no parts are left; where
  // there are many, whole lines of memory count for more.
  const Planned narrow = with_group(kNarrowest);
  return narrow.params.units == 1 && narrow.launch.blocks <= num_sms ? narrow : wide;
}
inline std::string_view column_problem(const Params& p) {
  const RowMap& x = p.maps[Params::kX];
  if (x.axes == 0 || x.stride[x.axes - 1] != 1)
    return "neighbours must be outputs of their own, not elements of one";
  if (p.rows == 0) return "there are no outputs";
  if (p.segments * p.cols >> 36)
    return "needs fewer than 2^36 elements of an output";  // 2^31 units
  return p.rows > op::kMaxBlocks / 8 ? "needs fewer than 2^28 outputs" : "";
}
inline std::string_view column_doubt(const Params& p) {
  return p.segments * p.cols < 8 ? "a reduction has fewer than 8 elements" : "";
}

}  // namespace tensorcraft::kernel::reduce
