// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/launch_plan.h"
#include "tensorcraft/ops/gather/params.h"

#include <algorithm>

// Which Config and grid each rung gets; host only.
namespace tensorcraft::kernel::gather {

using Launch = op::LaunchPlan<Config>;

inline constexpr int kThreads = 256, kVectorBytes = 16;

// What is gathered: the axes of out with the strides of all three tensors in elements.
struct Gather {
  const void* x;
  const void* indices;
  void* out;
  Axes axes;
  int64_t axis_size, x_step;
  uint64_t missing;
  int element_bytes;

  int last() const { return axes.count - 1; }
  int64_t size() const {
    int64_t elements = 1;
    for (int i = 0; i < axes.count; ++i) elements *= axes.size[i];
    return elements;
  }
};

// An axis of out behind those there are; merged with the last where all strides allow it.
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
inline Gather take_rows(const void* x, const void* indices, void* out, int element_bytes,
                        uint64_t missing, int64_t outer, int64_t axis_size, int64_t inner,
                        int64_t count) {
  Gather g{.x = x,
           .indices = indices,
           .out = out,
           .axes = {},
           .axis_size = axis_size,
           .x_step = inner,
           .missing = missing,
           .element_bytes = element_bytes};
  add_axis(g.axes, outer, count * inner, 0, axis_size * inner);
  add_axis(g.axes, count, inner, 1, 0);
  add_axis(g.axes, inner, 1, 0, 1);
  return g;
}

// Does an index bring a run of neighbours?
inline bool brings_runs(const Gather& g) {
  return g.axes.count > 0 && g.axes.out_stride[g.last()] == 1 && g.axes.x_stride[g.last()] == 1 &&
         g.axes.index_stride[g.last()] == 0;
}

// The largest power of two up to 16 bytes in which it can be moved; one element where it is one.
inline int unit_bytes(const Gather& g) {
  if (!brings_runs(g)) return g.element_bytes;
  const auto bytes = uint64_t(g.element_bytes);
  uint64_t all = reinterpret_cast<uintptr_t>(g.x) | reinterpret_cast<uintptr_t>(g.out) |
                 kVectorBytes | uint64_t(g.x_step) * bytes |
                 uint64_t(g.axes.size[g.last()]) * bytes;
  for (int i = 0; i < g.last(); ++i)
    all |= uint64_t(g.axes.x_stride[i]) * bytes | uint64_t(g.axes.out_stride[i]) * bytes;
  return int(all & (~all + 1));
}

inline Params naive_params(const Gather& g) {
  return {.x = g.x,
          .indices = g.indices,
          .out = g.out,
          .axes = g.axes,
          .count = g.size(),
          .axis_size = g.axis_size,
          .x_step = g.x_step,
          .missing = g.missing};
}

inline Params vectorized_params(const Gather& g) {
  const int unit = unit_bytes(g);
  Params p = naive_params(g);
  if (unit == g.element_bytes) return p;
  for (int i = 0; i < g.last(); ++i) {
    p.axes.x_stride[i] = g.axes.x_stride[i] * g.element_bytes / unit;
    p.axes.out_stride[i] = g.axes.out_stride[i] * g.element_bytes / unit;
  }
  p.axes.size[g.last()] = g.axes.size[g.last()] * g.element_bytes / unit;
  p.x_step = g.x_step * g.element_bytes / unit;
  p.count = g.size() * g.element_bytes / unit;
  return p;
}

inline Launch naive_launch(const Gather& g) {
  const Config config{.threads = kThreads, .wide = g.size() >= int64_t(1) << 31};
  return {config, div_ceil(g.size(), int64_t(kThreads))};
}

// Few units spread over all SMs rather than fill a thread.
inline Launch vectorized_launch(const Gather& g, int num_sms) {
  constexpr int kMany = 4, kBlocksPerSm = 4;
  const int unit = unit_bytes(g);
  const int64_t count = g.size() * g.element_bytes / unit;
  const bool fills_device = count >= int64_t(kThreads) * kMany * kBlocksPerSm * num_sms;
  const Config config{.threads = kThreads,
                      .vector = unit == kVectorBytes ? 2 : 1,
                      .vectors = fills_device ? kMany : 1,
                      .wide = g.size() >= int64_t(1) << 31};
  return {config, div_ceil(count, int64_t(kThreads) * config.vectors)};
}

}  // namespace tensorcraft::kernel::gather
