// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/row_plan.h"
#include "tensorcraft/ops/softmax/params.h"

#include <cstddef>
#include <string_view>

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::softmax {

using Start = op::Start<Config>;
using Choice = op::Choice<Config>;
using CallParams = Nested<Params>;

// Facts of a call that Params do not hold.
struct Given {
  int element_bytes;
  Form form = Form::softmax;
  Mask mask = Mask::none;
};

inline constexpr int kMaxSlots = 8;  // of a block; up to 64 values a thread
inline constexpr int kMaxThreads = 1024;
// Of a warp; a longer row has work for several.
constexpr int max_warp_slots(int vector) { return vector == 1 ? 4 : 32 / vector; }
inline constexpr int kMaxCluster = 8;  // blocks that every GPU with clusters accepts

// `rows` rows of `cols` elements, one behind another; of logsumexp the results are.
inline CallParams contiguous_params(const void* x, void* out, int64_t rows, int64_t cols,
                                    Form form = Form::softmax) {
  const RowMap map = op::contiguous_rows(rows, cols);
  const bool one = form == Form::logsumexp;
  return with_maps(Params{.x = x,
                          .out = out,
                          .rows = rows,
                          .cols = cols,
                          .x_step = 1,
                          .out_step = !one,
                          .scale = 1},
                   map, RowMap{}, one ? op::contiguous_rows(rows, 1) : map);
}

inline bool has_unit_step(const CallParams& p, const Given& given) {
  return p.cols <= 1 || (p.x_step == 1 && (given.mask == Mask::none || p.mask_step == 1) &&
                         (given.form == Form::logsumexp || p.out_step == 1));
}

// Does an access of `vector` elements of the mask start at a multiple of its size in every row, or
// of 16 bytes where it is more than one access?
inline bool mask_aligned(const CallParams& p, const Given& given, int vector) {
  if (given.mask == Mask::none) return true;
  const int bytes = given.mask == Mask::boolean   ? 1
                    : given.mask == Mask::float32 ? 4
                                                  : given.element_bytes;
  const int64_t unit = std::min(bytes * vector, 16);
  if (reinterpret_cast<uintptr_t>(p.mask) % uint64_t(unit)) return false;
  const RowMap& rows = p.maps[Params::kMask];
  for (int i = 0; i < rows.axes; ++i)
    if (rows.stride[i] * bytes % unit) return false;
  return true;
}

// Elements of an access: 16 bytes where every row of both tensors starts at such a boundary, and of
// the mask at its own.
inline int vector_of(const CallParams& p, const Given& given) {
  const int bytes = given.element_bytes, vector = 16 / bytes;
  const bool aligned = op::rows_vector_aligned(p.x, p.maps[Params::kX], bytes) &&
                       (given.form == Form::logsumexp ||
                        op::rows_vector_aligned(p.out, p.maps[Params::kOut], bytes)) &&
                       mask_aligned(p, given, vector);
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

inline Start start(const CallParams& p, const Given& given, Config config, int64_t blocks) {
  config.nested = p.is_nested();
  config.form = given.form;
  config.mask = given.mask;
  config.scaled = given.mask != Mask::none || p.scale != 1;
  return {.config = config, .blocks = std::min(blocks, op::kMaxBlocks), .cluster = config.cluster};
}

inline constexpr std::string_view kApart = "elements along the axis must be neighbours";

inline Choice naive(const CallParams& p, const Given& given, const op::Gpu&) {
  const int64_t blocks = div_ceil(p.rows, 128);
  if (blocks > op::kMaxBlocks) return op::refuse("needs fewer than 2^38 rows");
  return start(p, given, {.threads = 128, .group = 1}, blocks);
}

inline Choice block(const CallParams& p, const Given& given, const op::Gpu&) {
  const int threads = p.cols <= 1024 ? 128 : 256;
  return start(p, given, {.threads = threads, .group = threads}, p.rows);
}

inline Choice online(const CallParams& p, const Given& given, const op::Gpu&) {
  if (!has_unit_step(p, given)) return op::refuse(kApart);
  return start(p, given, {.vector = vector_of(p, given)}, p.rows);
}

inline Choice in_registers(const CallParams& p, const Given& given, const op::Gpu&) {
  if (!has_unit_step(p, given)) return op::refuse(kApart);
  if (p.cols > op::kMaxRegisterRow)
    return op::refuse("rows of more than 16384 elements do not fit the registers");
  const Config config = in_registers_config(p.cols, vector_of(p, given), given);
  if (config.slots > kMaxSlots)
    return op::refuse("rows of more than 8192 elements must be aligned");
  if (p.rows > op::kMaxBlocks) return op::refuse("needs fewer than 2^31 rows");
  Start s = start(p, given, config, div_ceil(p.rows, config.threads / config.group));
  s.min_blocks = in_registers_min_blocks(config, given);
  return s;
}

inline Choice cluster(const CallParams& p, const Given& given, const op::Gpu& gpu) {
  if (!gpu.has_clusters()) return op::refuse("needs sm_90 for clusters");
  if (!has_unit_step(p, given)) return op::refuse(kApart);
  if (vector_of(p, given) == 1) return op::refuse("rows must start at multiples of 16 bytes");
  if (p.rows > op::kMaxBlocks / kMaxCluster) return op::refuse("needs fewer than 2^28 rows");
  const Config config = cluster_config(p.cols, 16 / given.element_bytes);
  if (config.slots > kMaxSlots) return op::refuse("a row must fit the registers of 8 blocks");
  return start(p, given, config, p.rows * config.cluster);
}

// Why a row cannot be copied to shared memory in pieces of 16 bytes, or empty.
inline std::string_view pieces_refusal(const CallParams& p, const Given& given) {
  if (!has_unit_step(p, given)) return kApart;
  return vector_of(p, given) == 1 || p.cols % (16 / given.element_bytes) != 0
             ? "rows must start at multiples of 16 bytes and be a multiple of 16 bytes long"
             : "";
}

inline Choice staged(const CallParams& p, const Given& given, const op::Gpu& gpu) {
  if (const auto why = pieces_refusal(p, given); !why.empty()) return op::refuse(why);
  return op::staged<Config>(
      p.rows, p.cols, given.element_bytes, 1, gpu,
      [&](const Config& config, int64_t blocks) { return start(p, given, config, blocks); },
      p.cols <= 8192 ? "rows of up to 8192 elements are faster in registers" : "");
}

inline Choice persistent(const CallParams& p, const Given& given, const op::Gpu& gpu) {
  if (const auto why = pieces_refusal(p, given); !why.empty()) return op::refuse(why);
  const bool one_block = gpu.has_clusters() && p.cols * given.element_bytes <= 64 * 1024;
  return op::persistent<Config>(
      p.rows, given.element_bytes, op::persistent_rows(p.cols, given.element_bytes, 1, 0, gpu), gpu,
      [&](const Config& config, int64_t blocks) { return start(p, given, config, blocks); },
      one_block ? "rows that one block has are faster staged" : "");
}

// naive: any strides and a scale of 1 are served too.
constexpr Config serves_all(Config config) {
  config.nested = config.scaled = 1;
  return config;
}

inline constexpr op::Rung<CallParams, Given, Config> kRungs[] = {
    {.name = "persistent",
     .file = "06_persistent.cuh",
     .idea = "blocks stay: the next rows arrive while one is worked on",
     .choose = persistent,
     .counter_at = int(offsetof(Params, taken))},
    {.name = "staged",
     .file = "05_staged.cuh",
     .idea = "the copy engine brings the row to the shared memory of a block or a cluster",
     .choose = staged},
    {.name = "in_registers",
     .file = "03_in_registers.cuh",
     .idea = "a row in the registers of a warp or a block: read once, written once",
     .choose = in_registers},
    {.name = "cluster",
     .file = "04_cluster.cuh",
     .idea = "a row in the registers of a cluster's blocks: one read, one write",
     .choose = cluster},
    {.name = "online",
     .file = "02_online.cuh",
     .idea = "maximum and sum in one walk, 16-byte accesses; results take another",
     .choose = online},
    {.name = "block",
     .file = "01_block.cuh",
     .idea = "one block a row, maximum and sum through shuffles and shared memory",
     .choose = block},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "one thread a row",
     .choose = naive,
     .general = serves_all},
};
// Those of logsumexp, which writes one value a row: online too reads a row once then, and without
// waiting for other blocks.
inline constexpr std::string_view kSumRungs[] = {"in_registers", "online", "block", "naive"};

}  // namespace tensorcraft::kernel::softmax
