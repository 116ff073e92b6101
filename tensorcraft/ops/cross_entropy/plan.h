// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/row_plan.h"
#include "tensorcraft/ops/cross_entropy/params.h"

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::cross_entropy {

using Start = op::Start<Config>;
using Choice = op::Choice<Config>;
using CallParams = Nested<Params>;

struct Given {  // what the call says besides Params
  int element_bytes;
  bool is_float16;
};

inline constexpr int64_t kIgnoreIndex = -100;

// `rows` rows of `classes` logits, targets, losses and, unless lse is null, sums, one behind
// another.
inline CallParams contiguous_params(const void* logits, const void* targets, float* out, float* lse,
                                    int64_t rows, int64_t classes) {
  const RowMap map = op::contiguous_rows(rows, 1);
  return with_maps(Params{.logits = logits,
                          .targets = targets,
                          .out = out,
                          .lse = lse,
                          .rows = rows,
                          .classes = classes,
                          .class_step = 1,
                          .ignore_index = kIgnoreIndex},
                   op::contiguous_rows(rows, classes), map, map, lse ? map : RowMap{});
}

// One block at least: a mean of no rows has two steps too.
inline Start start(const CallParams& p, Config config) {
  config.nested = p.is_nested();
  return {config, std::max<int64_t>(1, div_ceil(p.rows, config.threads / config.group))};
}

inline Choice naive(const CallParams& p, const Given&, const op::Gpu&) {
  return start(p, {.threads = 128, .group = 1, .loads = 1});
}

// Blocks of 512 threads that a multiprocessor shall hold: three keep 96 KiB in flight, with 40
// registers a thread, which the conversions of float16 exceed.
constexpr int long_row_blocks(bool is_float16) { return is_float16 ? 2 : 3; }

// As few threads as hold a row in one batch of loads, up to 512.
inline Choice online(const CallParams& p, const Given& given, const op::Gpu&) {
  if (p.rows > op::kMaxBlocks || p.classes >> 33)
    return op::refuse("needs fewer than 2^31 rows, of fewer than 2^33 classes");
  if (p.classes > 1 && p.class_step != 1) return op::refuse("the classes must be neighbours");
  const auto batch = [&](int group) {
    return int64_t(group) * Config{}.loads * 16 / given.element_bytes;
  };
  if (p.classes <= batch(32)) return start(p, {.threads = 128, .group = 32});
  if (p.classes <= batch(128)) return start(p, {.threads = 128, .group = 128});
  Start long_rows = start(p, {.threads = 512, .group = 512});
  long_rows.min_blocks = long_row_blocks(given.is_float16);
  return long_rows;
}

// A large block starts later, and a warp needs no barrier: as few threads as read all at once, 16
// losses each.
inline op::Start<ReduceConfig> reduce_start(int64_t rows) {
  const int threads = rows <= 16 * 32 ? 32 : rows <= 16 * 128 ? 128 : 1024;
  return {.config = {.threads = threads}, .blocks = 1};
}

inline constexpr op::Rung<CallParams, Given, Config> kRungs[] = {
    {.name = "online",
     .file = "01_online.cuh",
     .idea = "a warp or a block reads a row once, 4 accesses of 16 bytes in flight a thread",
     .choose = online},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "one thread a row, any strides",
     .choose = naive,
     .general = op::with_nested<Config>},
};

}  // namespace tensorcraft::kernel::cross_entropy
