// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/row_plan.h"
#include "tensorcraft/ops/l2_normalize/params.h"

#include <limits>
#include <string_view>

// Which Config and grid each rung gets; host only. A `problem` is why a rung declines, or empty.
namespace tensorcraft::kernel::l2_normalize {

using Launch = op::LaunchPlan<Config>;

inline constexpr int64_t kMaxBlocks = int64_t(1) << 30;

// `rows` rows of `cols` elements, one behind another.
inline Params contiguous_params(const void* x, void* out, int64_t rows, int64_t cols, float eps) {
  const RowMap map = op::contiguous_rows(rows, cols);
  return {.x_step = 1,
          .out_step = 1,
          .x = x,
          .out = out,
          .rows = rows,
          .cols = cols,
          .eps = eps,
          .maps = row_maps(map, map)};
}

inline Launch launch(const Params& p, Config config, int64_t blocks) {
  config.nested = p.maps.is_nested();
  return {config, blocks};
}

inline Launch naive_launch(const Params& p) {
  return launch(p, {.threads = 128, .group = 1}, div_ceil(p.rows, 128));
}

inline Launch block_launch(const Params& p) {
  const int threads = p.cols <= 1024 ? 128 : 256;
  return launch(p, {.threads = threads, .group = threads}, std::min(p.rows, kMaxBlocks));
}

// Elements of a 16-byte access, or 1 where a row cannot be divided into such accesses.
inline int vector_of(const Params& p, int element_bytes) {
  const int vector = 16 / element_bytes;
  const bool aligned = op::rows_vector_aligned(p.x, p.maps[Params::kX], element_bytes) &&
                       op::rows_vector_aligned(p.out, p.maps[Params::kOut], element_bytes);
  return aligned && p.cols % vector == 0 ? vector : 1;
}

constexpr Config in_registers_config(int64_t cols, int vector) {
  return op::registers_config<Config>(cols, vector);
}

inline Launch in_registers_launch(const Params& p, int element_bytes) {
  const Config config = in_registers_config(p.cols, vector_of(p, element_bytes));
  return launch(p, config, div_ceil(p.rows, config.threads / config.group));
}

inline std::string_view in_registers_problem(const Params& p) {
  if (p.cols > 1 && (p.x_step != 1 || p.out_step != 1))
    return "elements along the axis must be neighbours";
  if (p.cols > op::kMaxRegisterRow)
    return "rows of more than 16384 elements do not fit the registers";
  if (p.rows > kMaxBlocks) return "more than 2^30 rows";
  if (p.eps > 0 && p.eps < std::numeric_limits<float>::min())
    return "1 / eps must be a finite float";
  return "";
}

}  // namespace tensorcraft::kernel::l2_normalize
