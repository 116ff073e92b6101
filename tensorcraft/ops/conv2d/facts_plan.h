// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/image_plan.h"
#include "tensorcraft/op/choice/rung.h"
#include "tensorcraft/ops/conv2d/params.h"

#include <algorithm>

// Facts of a call that the choices of plan.h and depthwise_plan.h ask for; host only.
namespace tensorcraft::kernel::conv2d {

using Choice = op::Choice<Config>;
using Start = op::Start<Config>;
struct Given {  // what choices look at besides Params
  int element_bytes;
  ConvActivation activation;
  bool allow_tf32 = false;  // float32 may be rounded
};

inline int64_t num_places(const Params& p) { return p.batch * p.rows.out * p.columns.out; }
inline bool is_depthwise(const Params& p) { return p.channels == 1 && p.filters == 1; }

// Can one access take `vector` channels of the result, and of the residual?
inline bool has_result_vectors(const Params& p, int vector, int element_bytes) {
  return op::has_channel_vectors(p.out, p.out_at, vector, element_bytes) &&
         op::has_channel_vectors(p.residual, p.residual_at, vector, element_bytes);
}
// Can one access take 16 bytes of channels of x?
inline bool has_input_vectors(const Params& p, int element_bytes) {
  return op::has_channel_vectors(p.x, p.x_at, 16 / element_bytes, element_bytes);
}

// ---- Images and filters without gaps, as launchers take them.

// The arrays of a call; bias and residual may be null.
struct Tensors {
  const void *x, *w, *bias, *residual;
  void* out;
};
// Their sizes; channels and filters are those of all groups.
struct Sizes {
  int64_t batch, channels, filters, groups;
  WindowAxis rows, columns;
  ImageLayout layout;
};

inline Divider divider_of(int64_t n) {
  return Divider::of(std::clamp<int64_t>(n, 1, (int64_t(1) << 31) - 1));
}
inline Params contiguous_params(const Tensors& t, const Sizes& s) {
  const WindowAxis &rows = s.rows, &columns = s.columns;
  const int64_t channels = s.channels / s.groups;
  const ImageStrides out = ImageStrides::dense(s.layout, s.filters, rows.out, columns.out),
                     w = ImageStrides::dense(s.layout, channels, rows.taps, columns.taps);
  return {.x = t.x,
          .w = t.w,
          .bias = t.bias,
          .residual = t.residual,
          .out = t.out,
          .batch = s.batch,
          .groups = s.groups,
          .channels = channels,
          .filters = s.filters / s.groups,
          .rows = rows,
          .columns = columns,
          .x_at = ImageStrides::dense(s.layout, s.channels, rows.in, columns.in),
          .out_at = out,
          .residual_at = t.residual ? out : ImageStrides{},
          .w_at = {w.sample, w.row, w.column, w.channel},
          .bias_stride = t.bias ? 1 : 0,
          .by_columns = divider_of(columns.out),
          .by_image = divider_of(rows.out * columns.out)};
}
inline Im2colParams contiguous_params(const void* x, void* out, const Sizes& s) {
  const bool first = s.layout == ImageLayout::nchw;
  const int64_t positions = s.rows.out * s.columns.out;
  const int64_t elements = s.channels * s.rows.taps * s.columns.taps;
  return {.x = x,
          .out = out,
          .batch = s.batch,
          .channels = s.channels,
          .rows = s.rows,
          .columns = s.columns,
          .x_at = ImageStrides::dense(s.layout, s.channels, s.rows.in, s.columns.in),
          .out_sample = positions * elements,
          .out_position = first ? 1 : elements,
          .out_element = first ? positions : 1,
          .channels_first = first};
}

}  // namespace tensorcraft::kernel::conv2d
