// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/row_plan.h"
#include "tensorcraft/ops/sample/params.h"

#include <cstddef>
#include <string_view>

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::sample {

using Start = op::Start<Config>;
using Choice = op::Choice<Config>;
using CallParams = Nested<Params>;

struct Given {
  int element_bytes;
  bool filters;  // top_k, top_p or min_p is given
};

inline constexpr int64_t kMaxBlockCols = int64_t(1) << 20;
inline constexpr int kSplitThreads = 128, kBlockThreads = 512;
inline constexpr size_t kPartBytes = 16;

constexpr int64_t chunks_of(const Params& p) { return div_ceil(p.cols, int64_t(kChunk)); }

// Elements of an access; 1 if neighbours or addresses do not allow more.
inline int vector_of(const CallParams& p, const Given& given) {
  const bool whole =
      (p.col_step == 1 || p.cols == 1) &&
      op::rows_vector_aligned(p.logits, p.maps[Params::kLogits], given.element_bytes);
  return whole ? 16 / given.element_bytes : 1;
}

inline Choice naive(const CallParams& p, const Given&, const op::Gpu&) {
  constexpr int kThreads = 128;
  const int64_t blocks = div_ceil(p.rows, int64_t(kThreads / 32));
  return Start{{.threads = kThreads, .nested = p.is_nested()}, blocks};
}

inline Choice block(const CallParams& p, const Given& given, const op::Gpu&) {
  if (p.cols > kMaxBlockCols) return op::refuse("needs at most 2^20 elements a row");
  const int64_t chunks = chunks_of(p);
  return Start{{.threads = chunks == 1   ? 32
                           : chunks <= 8 ? 256
                                         : 512,
                .vector = vector_of(p, given),
                .filters = given.filters,
                .nested = p.is_nested()},
               p.rows};
}

inline Choice split(const CallParams& p, const Given& given, const op::Gpu&) {
  if (given.filters && p.cols > kMaxBlockCols)
    return op::refuse("top_k, top_p and min_p need at most 2^20 elements a row");
  const int64_t units = p.rows * chunks_of(p);
  if (units > op::kMaxBlocks) return op::refuse("needs fewer than 2^31 chunks of 1,024 elements");
  const Start start{{.threads = kSplitThreads,
                     .vector = vector_of(p, given),
                     .filters = given.filters,
                     .nested = p.is_nested()},
                    div_ceil(units, int64_t(kSplitThreads / 32))};
  if (p.cols <= kChunk) return {start, "a row has one chunk"};
  return start;
}

// The start of what picks from the parts of split.
inline Start pick_start(const CallParams& p, Config config) {
  config.threads = config.filters ? kBlockThreads : 32;
  return {config, p.rows};
}
inline size_t workspace_bytes(const Params& p) {
  return size_t(p.rows * chunks_of(p)) * kPartBytes;
}

inline constexpr op::Rung<CallParams, Given, Config> kRungs[] = {
    {.name = "split",
     .file = "02_split.cuh",
     .idea = "a warp a chunk of a row, over the whole GPU; a second kernel filters and picks",
     .choose = split},
    {.name = "block",
     .file = "01_block.cuh",
     .idea = "one block a row, 16-byte accesses; filters by histograms of 11 bits of the keys",
     .choose = block},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "one warp a row, filters bit by bit",
     .choose = naive,
     .general = op::with_nested<Config>},
};

}  // namespace tensorcraft::kernel::sample
