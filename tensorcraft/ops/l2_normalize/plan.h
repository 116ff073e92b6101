// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/row_plan.h"
#include "tensorcraft/ops/l2_normalize/params.h"

#include <limits>
#include <string_view>

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::l2_normalize {

using Start = op::Start<Config>;
using Choice = op::Choice<Config>;
using CallParams = Nested<Params>;

inline constexpr int64_t kMaxBlocks = int64_t(1) << 30;
inline constexpr int kMaxCluster = 8;  // blocks that every GPU with clusters accepts
struct Given {                         // what the call says besides Params
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

// What rungs demand that hold rows in registers; empty: nothing is missing.
inline std::string_view lacks(const CallParams& p) {
  if (p.cols > 1 && (p.x_step != 1 || p.out_step != 1))
    return "elements along the axis must be neighbours";
  if (p.rows > kMaxBlocks / kMaxCluster) return "more than 2^27 rows";
  if (p.eps > 0 && p.eps < std::numeric_limits<float>::min())
    return "1 / eps must be a finite float";
  return {};
}

// Elements of an access: 16 bytes if they divide every row.
inline int vector_of(const CallParams& p, const Given& given) {
  const int bytes = given.element_bytes, vector = 16 / bytes;
  const bool aligned = op::rows_vector_aligned(p.x, p.maps[Params::kX], bytes) &&
                       op::rows_vector_aligned(p.out, p.maps[Params::kOut], bytes);
  return aligned && p.cols % vector == 0 ? vector : 1;
}

inline Choice in_registers(const CallParams& p, const Given& given, const op::Gpu&) {
  if (const auto why = lacks(p); !why.empty()) return op::refuse(why);
  if (p.cols > op::kMaxRegisterRow)
    return op::refuse("rows of more than 16384 elements do not fit the registers");
  const Config config = op::registers_config<Config>(p.cols, vector_of(p, given));
  return start(p, config, div_ceil(p.rows, config.threads / config.group));
}

inline constexpr int kFewSlots = 4;
// The fewest blocks whose threads have a row in 4 accesses each, or 8 blocks and up to 8 accesses.
constexpr Config cluster_config(int64_t cols, int vector) {
  constexpr int kThreads = 512;
  const int64_t step = kThreads * vector;
  Config config{.threads = kThreads, .group = kThreads, .vector = vector, .cluster = 2};
  while (config.cluster < kMaxCluster && cols > config.cluster * step * kFewSlots)
    config.cluster *= 2;
  config.slots = int(div_ceil(cols, config.cluster * step));
  config.whole = cols == config.slots * config.cluster * step;
  return config;
}

inline Choice cluster(const CallParams& p, const Given& given, const op::Gpu& gpu) {
  if (!gpu.has_clusters()) return op::refuse("needs sm_90 for clusters");
  if (const auto why = lacks(p); !why.empty()) return op::refuse(why);
  const int vector = vector_of(p, given);
  if (vector == 1) return op::refuse("rows must be whole accesses of 16 bytes");
  const Config config = cluster_config(p.cols, vector);
  if (config.slots > 2 * kFewSlots) return op::refuse("a row must fit the registers of 8 blocks");
  auto choice = start(p, config, p.rows * config.cluster);
  choice.cluster = config.cluster;
  choice.min_blocks = config.slots <= kFewSlots ? 3 : 2;
  return choice;
}

inline constexpr op::Rung<CallParams, Given, Config> kRungs[] = {
    {.name = "in_registers",
     .file = "02_in_registers.cuh",
     .idea = "the row stays in registers: one read, one write, 16-byte accesses",
     .choose = in_registers},
    {.name = "cluster",
     .file = "03_cluster.cuh",
     .idea = "a row in the registers of a cluster's blocks: one read, one write",
     .choose = cluster},
    {.name = "block",
     .file = "01_block.cuh",
     .idea = "one block a row, sums through shuffles and shared memory",
     .choose = block},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "one thread a row",
     .choose = naive,
     .general = op::with_nested<Config>},
};

}  // namespace tensorcraft::kernel::l2_normalize
