// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/row_plan.h"
#include "tensorcraft/ops/softmax/params.h"

#include <string_view>

// Which Config and grid each rung gets; host only. A `problem` is why a rung declines, or empty.
namespace tensorcraft::kernel::softmax {

using Launch = op::LaunchPlan<Config>;

// What the call decides of a Config.
struct Given {
  Form form = Form::softmax;
  Mask mask = Mask::none;
};

inline constexpr int kMaxSlots = 8;  // of a block; up to 64 values a thread
inline constexpr int kMaxThreads = 1024;
// Of a warp; a longer row has work for several.
constexpr int max_warp_slots(int vector) { return vector == 1 ? 4 : 32 / vector; }
inline constexpr int kMaxCluster = 8;  // blocks that every GPU with clusters accepts

// `rows` rows of `cols` elements, one behind another; of logsumexp the results are.
inline Params contiguous_params(const void* x, void* out, int64_t rows, int64_t cols,
                                Form form = Form::softmax) {
  const RowMap map = op::contiguous_rows(rows, cols);
  const bool one = form == Form::logsumexp;
  return {.x = x,
          .out = out,
          .rows = rows,
          .cols = cols,
          .x_step = 1,
          .out_step = !one,
          .scale = 1,
          .maps = row_maps(map, RowMap{}, one ? op::contiguous_rows(rows, 1) : map)};
}

inline bool has_unit_step(const Params& p, const Given& given) {
  return p.cols <= 1 || (p.x_step == 1 && (given.mask == Mask::none || p.mask_step == 1) &&
                         (given.form == Form::logsumexp || p.out_step == 1));
}

// Does an access of `vector` elements of the mask start at a multiple of its size in every row, or
// of 16 bytes where it is more than one access?
inline bool mask_aligned(const Params& p, const Given& given, int element_bytes, int vector) {
  if (given.mask == Mask::none) return true;
  const int bytes = given.mask == Mask::boolean   ? 1
                    : given.mask == Mask::float32 ? 4
                                                  : element_bytes;
  const int64_t unit = std::min(bytes * vector, 16);
  if (reinterpret_cast<uintptr_t>(p.mask) % uint64_t(unit)) return false;
  const RowMap& rows = p.maps[Params::kMask];
  for (int i = 0; i < rows.axes; ++i)
    if (rows.stride[i] * bytes % unit) return false;
  return true;
}

// Elements of an access: 16 bytes where every row of both tensors starts at such a boundary, and of
// the mask at its own.
inline int vector_of(const Params& p, const Given& given, int element_bytes) {
  const int vector = 16 / element_bytes;
  const bool aligned = op::rows_vector_aligned(p.x, p.maps[Params::kX], element_bytes) &&
                       (given.form == Form::logsumexp ||
                        op::rows_vector_aligned(p.out, p.maps[Params::kOut], element_bytes)) &&
                       mask_aligned(p, given, element_bytes, vector);
  return aligned ? vector : 1;
}

// `group` threads hold a row in as many accesses of each as it takes.
constexpr Config row_config(int64_t cols, int threads, int group, int vector) {
  const int64_t slots = std::clamp<int64_t>(div_ceil(cols, group * vector), 1, kMaxSlots + 1);
  return {.threads = threads,
          .group = group,
          .vector = vector,
          .slots = int(slots),
          .whole = slots * group * vector == cols};
}

constexpr Config warp_config(int64_t cols, int vector) {
  Config config = row_config(cols, 128, 32, vector);
  config.threads = op::warp_row_threads(config.group, config.slots * vector);
  return config;
}

// 2 accesses a thread, where all threads of a multiprocessor run, keep enough bytes in flight; what
// takes more registers does better with 4, where half of them run.
constexpr bool takes_few_registers(const Given& given) {
  return given.form == Form::softmax && given.mask == Mask::none;
}

constexpr Config in_registers_config(int64_t cols, int vector, const Given& given) {
  // Half a warp where that leaves no thread without elements and a warp would.
  const Config half = row_config(cols, 128, 16, vector), warp = warp_config(cols, vector);
  if (half.whole && !warp.whole && half.slots <= max_warp_slots(vector)) return half;
  if (warp.slots <= max_warp_slots(vector)) return warp;
  const int accesses = takes_few_registers(given) ? 2 : 4;
  int threads = 256;
  while (threads < kMaxThreads && cols > threads * vector * accesses) threads *= 2;
  return row_config(cols, threads, threads, vector);
}

constexpr int in_registers_min_blocks(const Config& c, const Given& given) {
  if (c.group <= 32 || c.vector == 1) return 1;
  return (takes_few_registers(given) && c.slots <= 2 ? 2048 : 1024) / c.threads;
}

// Blocks of 256 threads share a row, as few as have the registers for it.
constexpr Config cluster_config(int64_t cols, int vector) {
  const int64_t block_slot = 256 * vector;  // elements that one access of a block's threads covers
  Config config{.vector = vector, .cluster = 2};
  while (config.cluster < kMaxCluster && cols > config.cluster * block_slot * kMaxSlots)
    config.cluster *= 2;
  const int64_t slots = div_ceil(cols, config.cluster * block_slot);
  config.slots = int(std::min<int64_t>(slots, kMaxSlots + 1));
  config.whole = slots * config.cluster * block_slot == cols;
  return config;
}

inline Launch launch(const Params& p, const Given& given, Config config, int64_t blocks) {
  config.nested = p.maps.is_nested();
  config.form = given.form;
  config.mask = given.mask;
  config.scaled = given.mask != Mask::none || p.scale != 1;
  return {.config = config, .blocks = std::min(blocks, op::kMaxBlocks), .cluster = config.cluster};
}

inline Launch naive_launch(const Params& p, const Given& given = {}) {
  return launch(p, given, {.threads = 128, .group = 1}, div_ceil(p.rows, 128));
}

inline Launch block_launch(const Params& p, const Given& given = {}) {
  const int threads = p.cols <= 1024 ? 128 : 256;
  return launch(p, given, {.threads = threads, .group = threads}, p.rows);
}

inline Launch online_launch(const Params& p, int element_bytes, const Given& given = {}) {
  return launch(p, given,
                {.threads = 256, .group = 256, .vector = vector_of(p, given, element_bytes)},
                p.rows);
}

inline Launch in_registers_launch(const Params& p, int element_bytes, const Given& given = {}) {
  const Config config = in_registers_config(p.cols, vector_of(p, given, element_bytes), given);
  Launch l = launch(p, given, config, div_ceil(p.rows, config.threads / config.group));
  l.min_blocks = in_registers_min_blocks(config, given);
  return l;
}

inline Launch cluster_launch(const Params& p, int element_bytes, const Given& given = {}) {
  const Config config = cluster_config(p.cols, 16 / element_bytes);
  return launch(p, given, config, p.rows * config.cluster);
}

inline Launch staged_launch(const Params& p, int element_bytes, const Given& given = {}) {
  return op::staged_launch<Config>(
      p.rows, p.cols, element_bytes, 1,
      [&](const Config& config, int64_t blocks) { return launch(p, given, config, blocks); });
}

inline op::PersistentRows persistent_rows(const Params& p, int element_bytes, size_t device_bytes,
                                          bool has_clusters) {
  return op::persistent_rows(p.cols, element_bytes, 1, 0, device_bytes, has_clusters);
}

inline Launch persistent_launch(const Params& p, int element_bytes, const op::PersistentRows& split,
                                int num_sms, const Given& given = {}) {
  return op::persistent_launch<Config>(
      p.rows, element_bytes, split, num_sms,
      [&](const Config& config, int64_t blocks) { return launch(p, given, config, blocks); });
}

inline std::string_view naive_problem(const Params& p) {
  return div_ceil(p.rows, 128) > op::kMaxBlocks ? "needs fewer than 2^38 rows" : "";
}

inline std::string_view online_problem(const Params& p, const Given& given = {}) {
  return has_unit_step(p, given) ? "" : "elements along the axis must be neighbours";
}

inline std::string_view in_registers_problem(const Params& p, int element_bytes,
                                             const Given& given = {}) {
  if (!has_unit_step(p, given)) return "elements along the axis must be neighbours";
  const Config config = in_registers_config(p.cols, vector_of(p, given, element_bytes), given);
  if (config.slots > kMaxSlots || p.cols > op::kMaxRegisterRow)
    return p.cols > op::kMaxRegisterRow
               ? "rows of more than 16384 elements do not fit the registers"
               : "rows of more than 8192 elements must be aligned";
  return p.rows > op::kMaxBlocks ? "needs fewer than 2^31 rows" : "";
}

inline std::string_view cluster_problem(const Params& p, int element_bytes, bool has_clusters,
                                        const Given& given = {}) {
  if (!has_clusters) return "needs sm_90 for clusters";
  if (!has_unit_step(p, given)) return "elements along the axis must be neighbours";
  if (vector_of(p, given, element_bytes) == 1) return "rows must start at multiples of 16 bytes";
  if (p.rows > op::kMaxBlocks / kMaxCluster) return "needs fewer than 2^28 rows";
  return cluster_config(p.cols, 16 / element_bytes).slots > kMaxSlots
             ? "a row must fit the registers of 8 blocks"
             : "";
}

// Of rungs that bring whole 16-byte pieces of rows to shared memory.
inline std::string_view pieces_problem(const Params& p, int element_bytes, const Given& given) {
  if (!has_unit_step(p, given)) return "elements along the axis must be neighbours";
  return vector_of(p, given, element_bytes) == 1 || p.cols % (16 / element_bytes) != 0
             ? "rows must start at multiples of 16 bytes and be a multiple of 16 bytes long"
             : "";
}

inline std::string_view staged_problem(const Params& p, int element_bytes, bool has_clusters,
                                       const Given& given = {}) {
  if (std::string_view why = pieces_problem(p, element_bytes, given); !why.empty()) return why;
  return op::stage_problem(p.rows, p.cols, element_bytes, 1, has_clusters);
}

inline std::string_view persistent_problem(const Params& p, int element_bytes,
                                           const op::PersistentRows& split, bool has_clusters,
                                           const Given& given = {}) {
  if (std::string_view why = pieces_problem(p, element_bytes, given); !why.empty()) return why;
  return op::persistent_problem(p.rows, split, has_clusters);
}

// Measured on an H200, as all that decides between these rungs.
inline std::string_view staged_doubt(const Params& p) {
  return p.cols <= 8192 ? "rows of up to 8192 elements are faster in registers" : "";
}
inline std::string_view persistent_doubt(const Params& p, int element_bytes,
                                         const op::PersistentRows& split, int num_sms,
                                         bool has_clusters) {
  if (has_clusters && p.cols * element_bytes <= 64 * 1024)
    return "rows that one block has are faster staged";
  return op::persistent_doubt(p.rows, split, num_sms);
}

}  // namespace tensorcraft::kernel::softmax
