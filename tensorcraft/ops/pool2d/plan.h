// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/image_plan.h"
#include "tensorcraft/op/choice/rung.h"
#include "tensorcraft/ops/pool2d/params.h"

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::pool2d {

using Choice = op::Choice<Config>;
using Start = op::Start<Config>;
struct Given {  // what choices look at besides Params
  int element_bytes;
  bool mean;
};

inline Start start(const Params& p, int vector, bool mean) {
  const Config c{.vector = vector, .mean = mean};
  const int64_t all = p.batch * p.rows.out * p.columns.out * (p.channels / vector);
  return {c, div_ceil(all, int64_t(c.threads))};
}

inline Choice naive(const Params& p, const Given& given, const op::Gpu&) {
  return start(p, 1, given.mean);
}

inline Choice vectorized(const Params& p, const Given& given, const op::Gpu&) {
  const int vector = 16 / given.element_bytes;
  const auto takes = [&](const void* data, const ImageStrides& at) {
    return op::has_channel_vectors(data, at, vector, given.element_bytes);
  };
  if (p.channels % vector != 0) return op::refuse("needs channels of whole units of 16 bytes");
  if (!takes(p.x, p.x_at) || !takes(p.out, p.out_at))
    return op::refuse("needs channels side by side, at multiples of 16 bytes");
  return start(p, vector, given.mean);
}

inline constexpr op::Rung<Params, Given, Config> kRungs[] = {
    {.name = "vectorized",
     .file = "01_vectorized.cuh",
     .idea = "16 bytes of channels a thread: one access a tap",
     .choose = vectorized},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "one thread an element; any strides",
     .choose = naive},
};

}  // namespace tensorcraft::kernel::pool2d
