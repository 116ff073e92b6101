// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/rung.h"
#include "tensorcraft/ops/spmv/params.h"

#include <algorithm>

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::spmv {

using Choice = op::Choice<Config>;
using Start = op::Start<Config>;

struct Given {
  int64_t longest_row;  // below 0: not known
};

inline int64_t mean_row(const Csr& a) { return a.rows ? div_ceil(a.stored, a.rows) : 0; }

// A warp waits for its longest row, so one that is much longer than the mean makes many wait; and
// few rows leave most of a GPU idle.
inline bool is_skewed(const Csr& a, const Given& given) {
  constexpr int64_t kFewRows = 4096;
  const int64_t mean = mean_row(a);
  return given.longest_row > 256 + 8 * mean || (a.rows < kFewRows && mean > 4096);
}

inline bool is_contiguous(const Csr& a) {
  return (a.data_stride == 1 && a.indices_stride == 1) || a.stored <= 1;
}
constexpr std::string_view kStrided = "data and indices must be contiguous";

inline Choice rows_of_groups(const Params& p, const Config& config) {
  const int64_t blocks = div_ceil(p.a.rows, int64_t(config.threads / config.group));
  return Start{config, blocks};
}

inline Choice naive(const Params& p, const Given&, const op::Gpu&) { return rows_of_groups(p, {}); }

inline Choice warp(const Params& p, const Given&, const op::Gpu&) {
  if (!is_contiguous(p.a)) return op::refuse(kStrided);
  return rows_of_groups(p, {.group = 32});
}

// Lanes that have about three elements each.
inline Choice sub_warp(const Params& p, const Given&, const op::Gpu&) {
  if (!is_contiguous(p.a)) return op::refuse(kStrided);
  int group = 2;
  while (group < 32 && 3 * group < mean_row(p.a)) group *= 2;
  return rows_of_groups(p, {.group = group});
}

inline Choice merge_path(const Params& p, const Given& given, const op::Gpu&) {
  if (!is_contiguous(p.a)) return op::refuse(kStrided);
  const Start start{{}, std::max<int64_t>(tiles(p), 1)};
  if (!is_skewed(p.a, given))
    return {start, "rows are about as long as one another, or their longest is not known"};
  return start;
}

inline constexpr op::Rung<Params, Given, Config> kRungs[] = {
    {.name = "merge_path",
     .file = "03_merge_path.cuh",
     .idea = "an equal part of row ends and stored elements a thread, so no row makes others wait",
     .choose = merge_path},
    {.name = "sub_warp",
     .file = "02_sub_warp.cuh",
     .idea = "as many lanes a row as its mean length can feed",
     .choose = sub_warp},
    {.name = "warp",
     .file = "01_warp.cuh",
     .idea = "a warp a row, whose lanes read neighbouring elements",
     .choose = warp},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "one thread a row, any strides",
     .choose = naive},
};

}  // namespace tensorcraft::kernel::spmv
