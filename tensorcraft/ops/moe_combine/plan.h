// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/rung.h"
#include "tensorcraft/ops/moe_combine/params.h"

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::moe_combine {

using Choice = op::Choice<Config>;

struct Given {
  int element_bytes;
};

inline Choice naive(const Params& p, const Given&, const op::Gpu&) {
  const int64_t blocks = div_ceil(p.tokens * p.hidden, int64_t(Config().threads));
  return op::Start<Config>{{}, blocks};
}

inline void cut_rows(Params& p, const Given& given, const op::Gpu&) {
  const int64_t units = div_ceil(p.hidden * given.element_bytes, int64_t(16));
  p.pieces = int32_t(div_ceil(units, int64_t(Config().threads)));
}

inline Choice rows(const Params& whole, const Given& given, const op::Gpu& gpu) {
  const int bytes = given.element_bytes;
  if ((whole.y_strides[1] != 1 || whole.out_strides[1] != 1) && whole.hidden != 1)
    return op::refuse("rows of y and out must be contiguous");
  if (whole.hidden * bytes % 16) return op::refuse("a row must be a multiple of 16 bytes");
  const bool aligned = op::is_vector_aligned(whole.y) && op::is_vector_aligned(whole.out) &&
                       whole.y_strides[0] * bytes % 16 == 0 &&
                       whole.out_strides[0] * bytes % 16 == 0;
  if (!aligned) return op::refuse("rows must begin at multiples of 16 bytes");
  Params p = whole;
  cut_rows(p, given, gpu);
  const int64_t blocks = p.tokens * p.pieces;
  constexpr int kBlocksOfSm = 5;  // more leave too few registers for all rows in flight
  return op::Start<Config>{{}, blocks, kBlocksOfSm};
}

inline constexpr op::Rung<Params, Given, Config> kRungs[] = {
    {.name = "rows",
     .file = "01_rows.cuh",
     .idea = "16 bytes a thread, those of all rows in flight before the sum",
     .choose = rows,
     .adapt = cut_rows},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "one thread an element, any strides",
     .choose = naive},
};

}  // namespace tensorcraft::kernel::moe_combine
