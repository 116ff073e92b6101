// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/launch_plan.h"
#include "tensorcraft/ops/pad/params.h"

#include <string_view>

// Which Config and grid each rung gets; host only. A `problem` is why a rung declines, or empty.
namespace tensorcraft::kernel::pad {

using Launch = op::LaunchPlan<Config>;

inline constexpr int kThreads = 256, kUnitBytes = 16;

// An axis of the output behind those there are. Where x fills it, it is one with the axis in front
// if both tensors merge them.
inline void add_axis(Axes& axes, int64_t before, int64_t inside, int64_t after, int64_t out_stride,
                     int64_t x_stride) {
  const int64_t size = before + inside + after;
  if (size == 1 && inside == 1) return;
  const int last = axes.count - 1;
  const bool merges = last >= 0 && inside == size && axes.out_stride[last] == out_stride * size &&
                      axes.x_stride[last] == x_stride * size;
  const int at = merges ? last : axes.count++;
  axes.size[at] = merges ? axes.size[at] * size : size;
  axes.before[at] = merges ? axes.before[at] * size : before;
  axes.inside[at] = merges ? axes.inside[at] * size : inside;
  axes.out_stride[at] = out_stride;
  axes.x_stride[at] = x_stride;
}

// What is padded: the axes of out with the strides of both tensors.
inline Params make_params(const void* x, void* out, uint64_t value, int rank, const int64_t* before,
                          const int64_t* after, const int64_t* shape, const int64_t* x_strides,
                          const int64_t* out_strides) {
  Params p{.x = x, .out = out, .axes = {}, .count = 1, .value = value};
  for (int i = 0; i < rank; ++i) {
    add_axis(p.axes, before[i], shape[i], after[i], out_strides[i], x_strides[i]);
    p.count *= before[i] + shape[i] + after[i];
  }
  if (p.axes.count == 0) {  // one element
    p.axes.count = 1;
    p.axes.size[0] = p.axes.inside[0] = p.axes.out_stride[0] = p.axes.x_stride[0] = 1;
  }
  return p;
}

// Dense arrays: x is of `shape`.
inline Params contiguous_params(const void* x, void* out, uint64_t value, int rank,
                                const int64_t* before, const int64_t* after, const int64_t* shape) {
  int64_t x_strides[Axes::kMax], out_strides[Axes::kMax], x_step = 1, out_step = 1;
  for (int i = rank - 1; i >= 0; --i) {
    x_strides[i] = x_step;
    out_strides[i] = out_step;
    x_step *= shape[i];
    out_step *= before[i] + shape[i] + after[i];
  }
  return make_params(x, out, value, rank, before, after, shape, x_strides, out_strides);
}

inline bool is_wide(const Params& p) { return p.count >= int64_t(1) << 31; }

inline Launch naive_launch(const Params& p) {
  return {{.threads = kThreads, .wide = is_wide(p)}, div_ceil(p.count, int64_t(kThreads))};
}

inline std::string_view vectorized_problem(const Params& p, int element_bytes) {
  int64_t step = 1;
  for (int i = p.axes.count - 1; i >= 0; --i) {
    if (p.axes.out_stride[i] != step) return "out must be dense";
    step *= p.axes.size[i];
  }
  if (!op::is_vector_aligned(p.out)) return "out must begin at a multiple of 16 bytes";
  if (p.axes.size[p.axes.count - 1] * element_bytes < kUnitBytes)
    return "rows of out have less than 16 bytes";
  return "";
}

// Few units spread over all SMs rather than fill a thread.
inline Launch vectorized_launch(const Params& p, int element_bytes, int num_sms) {
  constexpr int kMany = 2, kBlocksPerSm = 4;
  const int64_t units = div_ceil(p.count * element_bytes, int64_t(kUnitBytes));
  const bool fills_device = units >= int64_t(kThreads) * kMany * kBlocksPerSm * num_sms;
  const int vectors = fills_device ? kMany : 1;
  return {{.threads = kThreads, .vectors = vectors, .wide = is_wide(p)},
          div_ceil(units, int64_t(kThreads) * vectors)};
}

}  // namespace tensorcraft::kernel::pad
