// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/row_plan.h"
#include "tensorcraft/ops/reduce/params.h"

#include <algorithm>
#include <bit>
#include <string_view>

// How each rung is chosen and started; host only. Params come in with a row for each output.
namespace tensorcraft::kernel::reduce {

using Start = op::Start<Config>;
using Choice = op::Choice<Config>;
using CallParams = Nested<Params>;

struct Given {
  Operation operation;
  int element_bytes;
};

// The start of a rung and what it makes of Params. One function gives both, as each depends on how
// many blocks share an output: a choice takes the start, adapt() the Params.
struct Planned {
  Start start;
  CallParams params;
};
template <Planned (*plan)(const CallParams&, const Given&, const op::Gpu&)>
void adapt(CallParams& p, const Given& given, const op::Gpu& gpu) {
  p = plan(p, given, gpu).params;
}

inline constexpr int kThreads = 256;
inline constexpr int64_t kStateBytes = 16;  // of the largest State

constexpr bool is_index(Operation o) { return o == Operation::argmax || o == Operation::argmin; }
constexpr bool is_spread(Operation o) { return o == Operation::var || o == Operation::std; }
constexpr bool has_large_state(Operation o) { return is_index(o) || is_spread(o); }

// Blocks that an SM holds at once: 4 at 64 registers a thread, fewer if states or maps take
// more, or values of 8 bytes have many accesses in flight.
constexpr int blocks_per_sm(const Config& c) {
  const bool is_large = has_large_state(c.operation) || c.vector == 2;
  return c.nested && is_large ? 2 : c.nested || is_large ? 3 : 4;
}

constexpr void add_axis(RowMap& map, int64_t size, int64_t stride) {
  map.size[map.axes] = size;
  map.stride[map.axes++] = stride;
}

// x[outer][reduced][inner] to out[outer][inner], both row-major.
inline CallParams contiguous_params(const void* x, void* out, int64_t outer, int64_t reduced,
                                    int64_t inner, float correction = 0) {
  const int64_t rows = outer * inner;
  const bool merge = reduced == 1 || outer == 1 || inner == 1;
  RowMap x_rows{}, out_rows{};
  if (merge && rows > 1) {
    add_axis(x_rows, rows, inner == 1 ? reduced : 1);
    add_axis(out_rows, rows, 1);
  } else if (!merge) {
    add_axis(x_rows, outer, reduced * inner);
    add_axis(x_rows, inner, 1);
    add_axis(out_rows, outer, inner);
    add_axis(out_rows, inner, 1);
  }
  return with_maps(Params{.x = x,
                          .out = out,
                          .rows = rows,
                          .segments = 1,
                          .cols = reduced,
                          .x_step = reduced == 1 ? 1 : inner,
                          .repeats = 1,
                          .count = float(reduced),
                          .divisor = std::max(float(reduced) - correction, 0.0f)},
                   x_rows, out_rows, RowMap{});
}

// How many blocks share the `units` of an output, if the GPU holds `slots` blocks at once:
// enough to fill it, and as many units in one as in the next.
constexpr int64_t splits_of(int64_t blocks, int64_t units, int64_t slots) {
  constexpr int64_t kFewUnits = 4, kWaves = 4;
  if (units < kFewUnits || blocks == 0 || blocks >= kWaves * slots) return 1;
  const int64_t wanted = blocks <= slots ? slots / blocks : div_ceil(kWaves * slots, blocks);
  const int64_t most = blocks <= slots ? units : units / kFewUnits;
  const int64_t each = div_ceil(units, std::clamp(wanted, int64_t(1), most));
  return div_ceil(units, each);
}

inline bool is_nested(const CallParams& p) { return p.maps[Params::kX].axes > 1 || p.segments > 1; }

inline Planned planned(CallParams p, Config config, int64_t blocks, int num_sms, bool can_share) {
  const int64_t slots = int64_t(blocks_per_sm(config)) * num_sms;
  p.splits = can_share ? splits_of(blocks, p.units, slots) : 1;
  p.by_splits = Divider::of(p.splits);
  if (p.splits > 1) p.by_inner = Divider::of(p.inner);  // shared outputs are few
  config.shared = p.splits > 1;
  return {{config, blocks * p.splits, blocks_per_sm(config)}, p};
}

// If blocks share outputs: the memory for their parts, and the start of what joins them, a thread
// an output if that has few parts or outputs are many, else a warp or a block.
inline size_t workspace_bytes(const Params& p) {
  return p.splits > 1 ? size_t(p.rows * p.inner * p.splits * kStateBytes) : 0;
}
inline Start combine_start(const CallParams& p, Operation operation) {
  constexpr int64_t kFewParts = 8, kManyOutputs = 32 * kThreads, kPartsOfWarp = 128;
  const int64_t outputs = p.rows * p.inner;
  const bool is_thread = p.splits <= kFewParts || outputs >= kManyOutputs;
  const int group = is_thread ? 1 : p.splits <= kPartsOfWarp ? 32 : kThreads;
  return {{.operation = operation, .threads = kThreads, .group = group, .nested = is_nested(p)},
          div_ceil(outputs, int64_t(kThreads / group))};
}

inline Choice naive(const CallParams& p, const Given& given, const op::Gpu&) {
  const int64_t blocks = div_ceil(p.rows, int64_t(128));
  return Start{{.operation = given.operation, .threads = 128, .nested = is_nested(p)}, blocks};
}

// Elements of an access; 1 if neighbours or addresses do not allow more.
inline int row_vector(const CallParams& p, int element_bytes) {
  const bool whole = p.x_step == 1 &&
                     op::rows_vector_aligned(p.x, p.maps[Params::kX], element_bytes) &&
                     op::rows_vector_aligned(p.x, p.maps[Params::kSegments], element_bytes);
  return whole ? 16 / element_bytes : 1;
}

// Accesses that a thread has in flight if a reduction is long. A state of more than one word,
// the unpacking of bytes and the divisions of a nested map take the registers of some; a product
// has two words for each of eight columns of 16 bits.
constexpr int max_accesses(const Config& config, int element_bytes) {
  const bool is_extreme = config.operation == Operation::max || config.operation == Operation::min;
  const bool is_product =
      config.operation == Operation::prod || config.operation == Operation::float_prod;
  return !is_extreme && !has_large_state(config.operation) && !config.nested &&
                 element_bytes > (is_product ? 2 : 1)
             ? 8
             : 4;
}

// Accesses of a thread if more would leave multiprocessors without a block.
inline constexpr int kFewAccesses = 2;

inline Planned row_plan(const CallParams& whole, const Given& given, const op::Gpu& gpu) {
  CallParams p = whole;
  Config config{.operation = given.operation, .threads = kThreads, .nested = is_nested(p)};
  config.vector = row_vector(p, given.element_bytes);
  const int64_t vectors = div_ceil(p.cols, int64_t(config.vector));
  // A warp reads 128 accesses at once, and again as many if rows enough keep the GPU busy.
  const int64_t max_of_warp = p.rows < int64_t(kThreads / 32) * gpu.num_sms ? 128 : 256;
  config.group = vectors <= 16 ? 4 : vectors <= max_of_warp ? 32 : kThreads;
  const bool is_block = config.group == kThreads;
  config.unroll = is_block ? max_accesses(config, given.element_bytes) : 4;
  const auto set_units = [&] {
    p.tiles = div_ceil(vectors, int64_t(config.group) * config.unroll);
    p.units = p.segments * p.tiles;
  };
  set_units();
  if (is_block && p.rows * p.units < gpu.num_sms) {
    config.unroll = kFewAccesses;
    set_units();
  }
  p.inner = 1;
  return planned(p, config, div_ceil(p.rows, int64_t(kThreads / config.group)), gpu.num_sms,
                 is_block);
}

inline Choice row(const CallParams& p, const Given& given, const op::Gpu& gpu) {
  if (p.rows > op::kMaxBlocks / 8) return op::refuse("needs fewer than 2^28 outputs");
  const Start start = row_plan(p, given, gpu).start;
  const int64_t length = p.segments * p.cols;
  if (length < 8) return {start, "a reduction has fewer than 8 elements"};
  if (p.x_step != 1 && length < 128)
    return {start, "a reduction has fewer than 128 elements, which are apart"};
  return start;
}

// The last axis of the rows becomes `inner`.
inline CallParams column_params(CallParams p) {
  RowMap x = p.maps[Params::kX], out = p.maps[Params::kOut];
  const int last = --x.axes;
  --out.axes;
  p.inner = x.size[last];
  p.out_inner = out.stride[last];
  for (RowMap* map : {&x, &out}) map->size[last] = map->stride[last] = 0;
  p.set_map(Params::kX, x);
  p.set_map(Params::kOut, out);
  p.rows /= p.inner;
  return p;
}

inline Planned column_plan(const CallParams& whole, const Given& given, const op::Gpu& gpu) {
  CallParams p = column_params(whole);
  const int element_bytes = given.element_bytes;
  Config config{.operation = given.operation, .threads = kThreads, .nested = is_nested(p)};
  const int widest = std::min(16 / element_bytes, 8);  // states of more columns fill the registers
  const bool is_wide = p.inner % widest == 0 && p.x_step * element_bytes % 16 == 0 &&
                       op::rows_vector_aligned(p.x, p.maps[Params::kX], element_bytes) &&
                       op::rows_vector_aligned(p.x, p.maps[Params::kSegments], element_bytes);
  config.vector = is_wide ? widest : 1;
  config.unroll = max_accesses(config, element_bytes);
  const auto with_group = [&](int group) {
    config.group = group;
    p.tiles = div_ceil(p.inner, int64_t(group) * config.vector);
    p.by_tiles = Divider::of(p.tiles);
    p.units = div_ceil(p.segments * p.cols, int64_t(kThreads / group) * config.unroll);
    return planned(p, config, p.rows * p.tiles, gpu.num_sms, true);
  };
  constexpr int kWidest = 32, kNarrowest = 4;
  const auto vectors = uint64_t(p.inner / config.vector);
  const Planned wide =
      with_group(vectors >= kWidest ? kWidest : std::max(kNarrowest, int(std::bit_ceil(vectors))));
  if (wide.params.splits == 1) return wide;
  // Narrow tiles are as many blocks. If each reads its columns at once, no parts are left; if there
  // are many, whole lines of memory count for more.
  const Planned narrow = with_group(kNarrowest);
  return narrow.params.units == 1 && narrow.start.blocks <= gpu.num_sms ? narrow : wide;
}

// The CPU takes columns alike.
inline std::string_view column_refusal(const CallParams& p) {
  const RowMap& x = p.maps[Params::kX];
  if (x.axes == 0 || x.stride[x.axes - 1] != 1)
    return "neighbours must be outputs of their own, not elements of one";
  if (p.rows == 0) return "there are no outputs";
  if (p.segments * p.cols >> 36)
    return "needs fewer than 2^36 elements of an output";  // 2^31 units
  return p.rows > op::kMaxBlocks / 8 ? "needs fewer than 2^28 outputs" : "";
}

inline Choice column(const CallParams& p, const Given& given, const op::Gpu& gpu) {
  if (const auto why = column_refusal(p); !why.empty()) return op::refuse(why);
  const Start start = column_plan(p, given, gpu).start;
  if (p.segments * p.cols < 8) return {start, "a reduction has fewer than 8 elements"};
  return start;
}

inline constexpr op::Rung<CallParams, Given, Config> kRungs[] = {
    {.name = "column",
     .file = "02_column.cuh",
     .idea = "neighbouring outputs a thread, 16-byte accesses, blocks share the lines",
     .choose = column,
     .spills = "eight columns of int16 have sums of 64 bits, more than the registers of a thread",
     .adapt = adapt<column_plan>},
    {.name = "row",
     .file = "01_row.cuh",
     .idea = "a few lanes, a warp, a block or several a row, 16-byte accesses",
     .choose = row,
     .adapt = adapt<row_plan>},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "one thread an output, any strides",
     .choose = naive,
     .general = op::with_nested<Config>},
};

}  // namespace tensorcraft::kernel::reduce
