// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/row_plan.h"
#include "tensorcraft/ops/embedding/params.h"

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::embedding {

using CallParams = Nested<Params>;
using Choice = op::Choice<Config>;

struct Given {
  int element_bytes;
};

inline constexpr int kVectorBytes = 16, kThreads = 256;
// The bits of a NaN, by the logarithm of an element's bytes.
inline constexpr uint32_t kNanBySize[] = {0x7f, 0x7fff, 0x7fffffff};

// `count` ids and rows of a row-major table [rows, cols], all one behind another.
inline CallParams contiguous_params(const void* ids, const void* table, void* out, int64_t count,
                                    int64_t rows, int64_t cols, int element_bytes) {
  return with_maps(Params{.ids = ids,
                          .table = table,
                          .out = out,
                          .count = count,
                          .rows = rows,
                          .cols = cols,
                          .table_row = cols,
                          .table_step = 1,
                          .out_step = 1,
                          .nan = kNanBySize[std::countr_zero(unsigned(element_bytes))]},
                   op::contiguous_rows(count, 1), op::contiguous_rows(count, cols));
}

inline Choice naive(const CallParams& p, const Given&, const op::Gpu&) {
  return op::Start<Config>{{.threads = kThreads, .nested = p.is_nested()},
                           div_ceil(p.count * p.cols, kThreads)};
}

inline Choice vectorized(const CallParams& p, const Given& given, const op::Gpu&) {
  const int bytes = given.element_bytes;
  if (p.table_step != 1 || p.out_step != 1)
    return op::refuse("rows of table and out must be contiguous");
  if (p.cols * bytes % kVectorBytes) return op::refuse("a row must be a multiple of 16 bytes");
  const bool table_aligned =
      op::is_vector_aligned(p.table) && (p.rows == 1 || p.table_row * bytes % kVectorBytes == 0);
  if (!table_aligned || !op::rows_vector_aligned(p.out, p.maps[Params::kOut], bytes))
    return op::refuse("rows must begin at multiples of 16 bytes");
  // A warp for a row, or fewer threads if it has fewer units.
  const auto units = uint64_t(p.cols) * uint64_t(bytes) / kVectorBytes;
  const int group = int(std::bit_ceil(std::min<uint64_t>(units, 32)));
  return op::Start<Config>{{.threads = kThreads, .group = group, .nested = p.is_nested()},
                           div_ceil(p.count, kThreads / group)};
}

inline constexpr op::Rung<CallParams, Given, Config> kRungs[] = {
    {.name = "vectorized",
     .file = "01_vectorized.cuh",
     .idea = "a warp or less moves a row, 16 bytes a thread",
     .choose = vectorized},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "one thread an element, any strides",
     .choose = naive},
};

}  // namespace tensorcraft::kernel::embedding
