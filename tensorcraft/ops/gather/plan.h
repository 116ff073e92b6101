// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/rung.h"
#include "tensorcraft/ops/gather/params.h"

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::gather {

using Choice = op::Choice<Config>;

// Facts of a call that Params do not hold, whose strides count elements until adapt.
struct Given {
  int element_bytes;
};

inline constexpr int kThreads = 256, kVectorBytes = 16;

// An axis of out behind those there are; merged with the last if all strides allow it.
inline void add_axis(Axes& axes, int64_t size, int64_t out, int64_t index, int64_t x) {
  if (size == 1) return;
  const int last = axes.count - 1;
  const bool merges = last >= 0 && axes.out_stride[last] == out * size &&
                      axes.index_stride[last] == index * size && axes.x_stride[last] == x * size;
  const int at = merges ? last : axes.count++;
  axes.size[at] = merges ? axes.size[at] * size : size;
  axes.out_stride[at] = out;
  axes.index_stride[at] = index;
  axes.x_stride[at] = x;
}

// out[o, i, :] = x[o, indices[i], :] of dense arrays: x is [outer, axis_size, inner], and there are
// `count` indices.
inline Params contiguous_params(const void* x, const void* indices, void* out, int64_t outer,
                                int64_t axis_size, int64_t inner, int64_t count) {
  Params p{.x = x,
           .indices = indices,
           .out = out,
           .axes = {},
           .count = outer * count * inner,
           .axis_size = axis_size,
           .x_step = inner,
           .missing = 0};
  add_axis(p.axes, outer, count * inner, 0, axis_size * inner);
  add_axis(p.axes, count, inner, 1, 0);
  add_axis(p.axes, inner, 1, 0, 1);
  return p;
}

// The largest power of two up to 16 bytes that divides the runs of neighbours that indices bring;
// one element if they bring single ones.
inline int unit_bytes(const Params& p, const Given& given) {
  const Axes& axes = p.axes;
  const int last = axes.count - 1;
  if (last < 0 || axes.out_stride[last] != 1 || axes.x_stride[last] != 1 ||
      axes.index_stride[last] != 0)
    return given.element_bytes;
  const auto bytes = uint64_t(given.element_bytes);
  uint64_t all = reinterpret_cast<uintptr_t>(p.x) | reinterpret_cast<uintptr_t>(p.out) |
                 kVectorBytes | uint64_t(p.x_step) * bytes | uint64_t(axes.size[last]) * bytes;
  for (int i = 0; i < last; ++i)
    all |= uint64_t(axes.x_stride[i]) * bytes | uint64_t(axes.out_stride[i]) * bytes;
  return int(all & (~all + 1));
}

inline bool is_wide(const Params& p) { return p.count >= int64_t(1) << 31; }

inline Choice naive(const Params& p, const Given&, const op::Gpu&) {
  return op::Start<Config>{{.threads = kThreads, .wide = is_wide(p)},
                           div_ceil(p.count, int64_t(kThreads))};
}

// Few units spread over all SMs rather than fill a thread.
inline Choice vectorized(const Params& p, const Given& given, const op::Gpu& gpu) {
  constexpr int kMany = 4, kBlocksPerSm = 4;
  const int unit = unit_bytes(p, given);
  const int64_t count = p.count * given.element_bytes / unit;
  const bool fills_device = count >= int64_t(kThreads) * kMany * kBlocksPerSm * gpu.num_sms;
  const Config config{.threads = kThreads,
                      .vector = unit == kVectorBytes ? 2 : 1,
                      .vectors = fills_device ? kMany : 1,
                      .wide = is_wide(p)};
  return op::Start<Config>{config, div_ceil(count, int64_t(kThreads) * config.vectors)};
}

// Elements become units.
inline void count_units(Params& p, const Given& given, const op::Gpu&) {
  const int unit = unit_bytes(p, given);
  if (unit == given.element_bytes) return;
  const auto to_units = [&](int64_t& elements) {
    elements = elements * given.element_bytes / unit;
  };
  const int last = p.axes.count - 1;
  for (int i = 0; i < last; ++i) {
    to_units(p.axes.x_stride[i]);
    to_units(p.axes.out_stride[i]);
  }
  to_units(p.axes.size[last]);
  to_units(p.x_step);
  to_units(p.count);
}

inline constexpr op::Rung<Params, Given, Config> kRungs[] = {
    {.name = "vectorized",
     .file = "01_vectorized.cuh",
     .idea = "units of up to 16 bytes, several indices in flight in each thread",
     .choose = vectorized,
     .adapt = count_units},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "one thread an element",
     .choose = naive,
     .general = op::with_wide<Config>},
};
// The rung whose kernel has the dtype of a unit.
inline constexpr std::string_view kMovesUnits = "vectorized";

}  // namespace tensorcraft::kernel::gather
