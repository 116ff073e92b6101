// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/row_plan.h"
#include "tensorcraft/ops/l2_normalize/params.h"

#include <limits>

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::l2_normalize {

using Start = op::Start<Config>;
using Choice = op::Choice<Config>;
using CallParams = Nested<Params>;

inline constexpr int64_t kMaxBlocks = int64_t(1) << 30;
struct Given {  // what the call says besides Params
  int element_bytes;
};

// `rows` rows of `cols` elements, one behind another.
inline CallParams contiguous_params(const void* x, void* out, int64_t rows, int64_t cols,
                                    float eps) {
  const RowMap map = op::contiguous_rows(rows, cols);
  return with_maps(
      Params{
          .x_step = 1, .out_step = 1, .x = x, .out = out, .rows = rows, .cols = cols, .eps = eps},
      map, map);
}

inline Start start(const CallParams& p, Config config, int64_t blocks) {
  config.nested = p.is_nested();
  return {config, blocks};
}

inline Choice naive(const CallParams& p, const Given&, const op::Gpu&) {
  return start(p, {.threads = 128, .group = 1}, div_ceil(p.rows, 128));
}

inline Choice block(const CallParams& p, const Given&, const op::Gpu&) {
  const int threads = p.cols <= 1024 ? 128 : 256;
  return start(p, {.threads = threads, .group = threads}, std::min(p.rows, kMaxBlocks));
}

inline Choice in_registers(const CallParams& p, const Given& given, const op::Gpu&) {
  if (p.cols > 1 && (p.x_step != 1 || p.out_step != 1))
    return op::refuse("elements along the axis must be neighbours");
  if (p.cols > op::kMaxRegisterRow)
    return op::refuse("rows of more than 16384 elements do not fit the registers");
  if (p.rows > kMaxBlocks) return op::refuse("more than 2^30 rows");
  if (p.eps > 0 && p.eps < std::numeric_limits<float>::min())
    return op::refuse("1 / eps must be a finite float");
  // Accesses of 16 bytes if they divide every row.
  const int bytes = given.element_bytes, vector = 16 / bytes;
  const bool aligned = op::rows_vector_aligned(p.x, p.maps[Params::kX], bytes) &&
                       op::rows_vector_aligned(p.out, p.maps[Params::kOut], bytes);
  const Config config =
      op::registers_config<Config>(p.cols, aligned && p.cols % vector == 0 ? vector : 1);
  return start(p, config, div_ceil(p.rows, config.threads / config.group));
}

inline constexpr op::Rung<CallParams, Given, Config> kRungs[] = {
    {.name = "in_registers",
     .file = "02_in_registers.cuh",
     .idea = "the row stays in registers: one read, one write, 16-byte accesses",
     .choose = in_registers},
    {.name = "block",
     .file = "01_block.cuh",
     .idea = "one block a row, sums through shuffles and shared memory",
     .choose = block},
    {.name = "naive", .file = "00_naive.cuh", .idea = "one thread a row", .choose = naive},
};

}  // namespace tensorcraft::kernel::l2_normalize
