// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/row_plan.h"
#include "tensorcraft/ops/embedding/params.h"

#include <string_view>

// Which Config and grid each rung gets; host only. A `problem` is why a rung declines, or empty.
namespace tensorcraft::kernel::embedding {

using Launch = op::LaunchPlan<Config>;

inline constexpr int kVectorBytes = 16;
// The bits of a NaN, by the logarithm of an element's bytes.
inline constexpr uint32_t kNanBySize[] = {0x7f, 0x7fff, 0x7fffffff};

// `count` ids and rows of a row-major table [rows, cols], all one behind another.
inline Params contiguous_params(const void* ids, const void* table, void* out, int64_t count,
                                int64_t rows, int64_t cols, int element_bytes) {
  return {.ids = ids,
          .table = table,
          .out = out,
          .count = count,
          .rows = rows,
          .cols = cols,
          .table_row = cols,
          .table_step = 1,
          .out_step = 1,
          .ids_map = op::contiguous_rows(count, 1),
          .out_rows = op::contiguous_rows(count, cols),
          .nan = kNanBySize[std::countr_zero(unsigned(element_bytes))]};
}

inline Launch launch(const Params& p, Config config, int64_t blocks) {
  config.nested = p.ids_map.axes > 1 || p.out_rows.axes > 1;
  return {config, blocks};
}

inline Launch naive_launch(const Params& p) {
  return launch(p, {.threads = 256}, div_ceil(p.count * p.cols, 256));
}

// A warp for a row, or fewer threads where it has fewer units.
inline Launch vectorized_launch(const Params& p, int element_bytes) {
  const auto units = uint64_t(p.cols) * uint64_t(element_bytes) / kVectorBytes;
  const Config config{.threads = 256, .group = int(std::bit_ceil(std::min<uint64_t>(units, 32)))};
  return launch(p, config, div_ceil(p.count, config.threads / config.group));
}

inline std::string_view vectorized_problem(const Params& p, int element_bytes) {
  if (p.table_step != 1 || p.out_step != 1) return "rows of table and out must be contiguous";
  if (p.cols * element_bytes % kVectorBytes) return "a row must be a multiple of 16 bytes";
  const bool table_aligned =
      op::is_vector_aligned(p.table) && (p.rows == 1 || p.table_row * element_bytes % 16 == 0);
  if (!table_aligned || !op::rows_vector_aligned(p.out, p.out_rows, element_bytes))
    return "rows must begin at multiples of 16 bytes";
  return "";
}

}  // namespace tensorcraft::kernel::embedding
