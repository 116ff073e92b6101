// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/rung.h"
#include "tensorcraft/ops/pad/params.h"

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::pad {

using Choice = op::Choice<Config>;

// Facts of a call that Params do not hold.
struct Given {
  int element_bytes;
};

inline constexpr int kThreads = 256, kUnitBytes = 16;

// An axis of the output behind those there are. One that x fills is one with the axis in front
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

inline Choice naive(const Params& p, const Given&, const op::Gpu&) {
  return op::Start<Config>{{.threads = kThreads, .wide = is_wide(p)},
                           div_ceil(p.count, int64_t(kThreads))};
}

// Few units spread over all SMs rather than fill a thread.
inline Choice vectorized(const Params& p, const Given& given, const op::Gpu& gpu) {
  constexpr int kMany = 2, kBlocksPerSm = 4;
  int64_t step = 1;
  for (int i = p.axes.count - 1; i >= 0; --i) {
    if (p.axes.out_stride[i] != step) return op::refuse("out must be dense");
    step *= p.axes.size[i];
  }
  if (!op::is_vector_aligned(p.out)) return op::refuse("out must begin at a multiple of 16 bytes");
  if (p.axes.size[p.axes.count - 1] * given.element_bytes < kUnitBytes)
    return op::refuse("rows of out have less than 16 bytes");
  const int64_t units = div_ceil(p.count * given.element_bytes, int64_t(kUnitBytes));
  const bool fills_device = units >= int64_t(kThreads) * kMany * kBlocksPerSm * gpu.num_sms;
  const int vectors = fills_device ? kMany : 1;
  return op::Start<Config>{{.threads = kThreads, .vectors = vectors, .wide = is_wide(p)},
                           div_ceil(units, int64_t(kThreads) * vectors)};
}

inline constexpr op::Rung<Params, Given, Config> kRungs[] = {
    {.name = "vectorized",
     .file = "01_vectorized.cuh",
     .idea = "out as one run in units of 16 bytes, several in flight in each thread",
     .choose = vectorized},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "one thread an element, any strides",
     .choose = naive,
     .general = op::with_wide<Config>},
};

}  // namespace tensorcraft::kernel::pad
