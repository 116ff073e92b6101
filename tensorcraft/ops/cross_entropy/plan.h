// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/row_plan.h"
#include "tensorcraft/ops/cross_entropy/params.h"

#include <string_view>

// Which Config and grid each rung gets; host only. A `problem` is why a rung declines, or empty.
namespace tensorcraft::kernel::cross_entropy {

using Launch = op::LaunchPlan<Config>;

inline constexpr int64_t kIgnoreIndex = -100;

// `rows` rows of `classes` logits, targets, losses and, where lse is not null, sums, one behind
// another.
inline Params contiguous_params(const void* logits, const void* targets, float* out, float* lse,
                                int64_t rows, int64_t classes) {
  const RowMap map = op::contiguous_rows(rows, 1);
  return {.logits = logits,
          .targets = targets,
          .out = out,
          .lse = lse,
          .rows = rows,
          .classes = classes,
          .class_step = 1,
          .ignore_index = kIgnoreIndex,
          .maps = row_maps(op::contiguous_rows(rows, classes), map, map, lse ? map : RowMap{})};
}

inline Launch launch(const Params& p, Config config) {
  config.nested = p.maps.is_nested();
  return {.config = config, .blocks = div_ceil(p.rows, config.threads / config.group)};
}

inline Launch naive_launch(const Params& p) {
  return launch(p, {.threads = 128, .group = 1, .loads = 1});
}

// Blocks of 512 threads that a multiprocessor shall hold: three keep 96 KiB in flight, with 40
// registers a thread, which the conversions of float16 exceed.
constexpr int long_row_blocks(bool is_float16) { return is_float16 ? 2 : 3; }

// As few threads as hold a row in one batch of loads, up to 512.
inline Launch online_launch(const Params& p, int element_bytes, bool is_float16) {
  const auto batch = [&](int group) {
    return int64_t(group) * Config{}.loads * 16 / element_bytes;
  };
  if (p.classes <= batch(32)) return launch(p, {.threads = 128, .group = 32});
  if (p.classes <= batch(128)) return launch(p, {.threads = 128, .group = 128});
  Launch long_rows = launch(p, {.threads = 512, .group = 512});
  long_rows.min_blocks = long_row_blocks(is_float16);
  return long_rows;
}

inline std::string_view naive_problem(const Params& p) {
  return div_ceil(p.rows, 128) > op::kMaxBlocks ? "needs fewer than 2^38 rows" : "";
}

inline std::string_view online_problem(const Params& p) {
  if (p.rows > op::kMaxBlocks || p.classes >> 33)
    return "needs fewer than 2^31 rows, of fewer than 2^33 classes";
  return p.classes <= 1 || p.class_step == 1 ? "" : "the classes must be neighbours";
}

// A large block starts later, and a warp needs no barrier: as few threads as read all at once, 16
// losses each.
inline op::LaunchPlan<ReduceConfig> reduce_launch(int64_t rows) {
  const int threads = rows <= 16 * 32 ? 32 : rows <= 16 * 128 ? 128 : 1024;
  return {.config = {.threads = threads}, .blocks = 1};
}

}  // namespace tensorcraft::kernel::cross_entropy
