// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/rows.h"
#include "tensorcraft/op/choice/rung.h"

#include <algorithm>
#include <bit>
#include <span>
#include <string_view>

// How plan headers look at rows; host only, like op/choice/rung.h.
namespace tensorcraft::op {

// How a block of `threads` divides rows that its threads hold in registers: `group` threads share a
// row, each holds `slots` vectors of `vector` elements.
struct RowSplit {
  int threads, group, slots;
};
inline constexpr int64_t kMaxRegisterRow = 16384;  // 64 floats in each of 256 threads

// Threads of a block whose groups have a row each, `held` elements of it a thread: if few blocks
// fit a multiprocessor, small ones follow each other sooner.
constexpr int warp_row_threads(int group, int held) { return group == 32 && held >= 32 ? 64 : 128; }

// For rows of 1 to kMaxRegisterRow elements and vectors of at most 16 bytes. A block of 128 to
// `max_threads` threads has a row of more than 1,024, each of them `kept` elements if they can.
constexpr RowSplit split_rows(int64_t cols, int vector, int kept = 32, int max_threads = 256) {
  const int vectors = int(div_ceil(cols, int64_t(vector)));
  const auto enough = int(std::bit_ceil(uint64_t(div_ceil(cols, int64_t(kept)))));
  int threads = std::clamp(enough, 128, max_threads), group = threads;
  if (cols <= 1024) {
    threads = 128;
    group = std::clamp(int(std::bit_ceil(uint32_t(vectors))), 8, 32);
    // A smaller group that divides the row leaves no thread without elements.
    if (vectors % group != 0 && vectors % 16 == 0 && vectors * vector <= 16 * 32) group = 16;
  }
  int slots = div_ceil(vectors, group);
  if (slots > 8) slots = round_up(slots, 4);  // long scalar rows share kernels
  if (group <= 32) threads = warp_row_threads(group, slots * vector);
  return {threads, group, slots};
}

// A Config of rows in registers, by its fields.
template <class Config>
constexpr Config registers_config(int64_t cols, int vector, int kept = 32, int max_threads = 256) {
  const auto [threads, group, slots] = split_rows(cols, vector, kept, max_threads);
  return Config{.threads = threads,
                .group = group,
                .vector = vector,
                .slots = slots,
                .whole = cols == int64_t(group) * vector * slots};
}

// Registers of a thread that device/row_group.cuh's RowSlots take: values of 2 bytes, 8 of which
// make an access, stay in pairs unless they are sums of two rows.
constexpr int held_registers(int slots, int vector, bool has_residual) {
  return vector == 8 && !has_residual ? slots * vector / 2 : slots * vector;
}

// How the shared memory of the blocks of a cluster holds a row.
struct RowStage {
  int threads, cluster;
  int shared_bytes;  // of a block; more than kMaxStagedBytes if the row does not fit
};
inline constexpr int kMaxStagedCluster = 8;         // blocks that every GPU with clusters accepts
inline constexpr int kMaxStagedBytes = 224 * 1024;  // of a block, beside its static shared memory

// For `tensors` rows of `cols` elements, which are a multiple of 16 bytes. Up to 64 KiB a block
// leave room for three blocks on a multiprocessor: one computes while others copy.
constexpr RowStage stage_row(int64_t cols, int element_bytes, int tensors) {
  constexpr int64_t kGoodBytes = 64 * 1024;
  const int64_t bytes = cols * element_bytes;
  RowStage stage{.cluster = 1};
  while (stage.cluster < kMaxStagedCluster && bytes * tensors > stage.cluster * kGoodBytes)
    stage.cluster *= 2;
  const int64_t slice = round_up(div_ceil(bytes, int64_t(stage.cluster)), int64_t(16));
  stage.threads = slice > 16 * 1024 ? 256 : 128;
  stage.shared_bytes = int(std::min<int64_t>(slice * tensors, kMaxStagedBytes + 1));
  return stage;
}

// The choice of a rung that stages rows; `start` adds to a Config and a count of blocks what the
// call decides. preference: why a later rung is better, or empty.
template <class Config, class MakeStart>
Choice<Config> staged(int64_t rows, int64_t cols, int element_bytes, int tensors, const Gpu& gpu,
                      const MakeStart& start, std::string_view preference) {
  if (!gpu.has_clusters()) return refuse("needs sm_90 for the copy engine");
  if (rows > kMaxBlocks / kMaxStagedCluster) return refuse("needs fewer than 2^28 rows");
  const RowStage stage = stage_row(cols, element_bytes, tensors);
  if (stage.shared_bytes > kMaxStagedBytes)
    return refuse("a row must fit the shared memory of 8 blocks");
  Start<Config> s = start(Config{.threads = stage.threads,
                                 .group = stage.threads,
                                 .vector = 16 / element_bytes,
                                 .cluster = stage.cluster},
                          rows * stage.cluster);
  s.shared_bytes = stage.shared_bytes;
  s.cluster = stage.cluster;
  return {s, preference};
}

// How blocks that stay divide the rows that they walk over (device/persistent_row.cuh): a row, or
// the slice of it that each block of a cluster has, is `slots` accesses of each thread, and has a
// place in shared memory, as have the next ones: `stages` rows in all. 0 blocks if it cannot be.
struct PersistentRows {
  int threads, cluster, slots, stages;
  bool whole;
  int shared_bytes;
};
// Dynamic shared memory that a block may take of `device_bytes`, which are 0 if they are not known;
// the rest is for what its warps tell each other.
constexpr int64_t persistent_bytes(int64_t device_bytes) {
  return std::min<int64_t>(device_bytes ? device_bytes - 8 * 1024 : INT64_MAX, 200 * 1024);
}

// Blocks that rows of values of 4 or 2 bytes may have, the best first, as measured on an H200:
// fewer blocks and threads tell each other less, but what 4 and more tell takes as long as 64 KiB
// of a row. Half the accesses of a thread are half the text, which decides if both are as fast.
struct PersistentBlocks {
  int cluster, threads;
};
inline constexpr PersistentBlocks kWords[] = {{1, 1024}, {2, 1024}, {4, 1024}, {8, 512}},
                                  kHalves[] = {{1, 512},  {2, 512}, {2, 1024},
                                               {4, 1024}, {8, 512}, {8, 1024}},
                                  kTwoRows[] = {{1, 1024}, {2, 1024}, {4, 1024}, {8, 1024}},
                                  kOneBlock[] = {{1, 1024}};

// For `tensors` rows of `cols` elements each, and `weight_bytes` of all weights together for each
// column, which a thread keeps in registers: the first blocks that have the memory for three
// stages, else the first that have it for two.
constexpr PersistentRows persistent_rows(int64_t cols, int element_bytes, int tensors,
                                         int weight_bytes, const Gpu& gpu) {
  constexpr int kMaxValues = 32, kStages = 3;  // 64 KiB of 512 threads' floats
  const int vector = 16 / element_bytes;
  PersistentRows rows{};
  if (cols == 0) return rows;
  std::span<const PersistentBlocks> choices = kHalves;
  if (!gpu.has_clusters())
    choices = kOneBlock;
  else if (tensors > 1)
    choices = kTwoRows;
  else if (element_bytes == 4)
    choices = kWords;
  for (const auto [cluster, threads] : choices) {
    const int64_t slots = div_ceil(cols, int64_t(cluster) * threads * vector);
    const bool whole = slots * cluster * threads * vector == cols;
    // Registers of weights, and of four floats for each element of an access.
    const int64_t registers = slots * vector * weight_bytes / 4 + 4 * vector;
    const int64_t max_registers = threads == 512 ? 112 : whole ? 64 : 48;
    if (slots * vector > kMaxValues || (weight_bytes && registers > max_registers)) continue;
    const int64_t bytes = slots * threads * 16;
    const int64_t room = persistent_bytes(gpu.shared_bytes_per_block) / bytes;
    // Or two of x and one of a residual.
    const int stages = room >= kStages * tensors ? kStages : room >= 3 && tensors == 2 ? 2 : 0;
    if (stages <= rows.stages) continue;
    rows = {.threads = threads,
            .cluster = cluster,
            .slots = int(slots),
            .stages = stages,
            .whole = whole,
            .shared_bytes = int(bytes * (stages == kStages ? stages * tensors : 3))};
  }
  return rows;
}

// The choice of a rung that walks over rows, a block on each multiprocessor; `start` and
// `preference` as in staged(), and another preference if there are few rows.
template <class Config, class MakeStart>
Choice<Config> persistent(int64_t rows, int element_bytes, const PersistentRows& split,
                          const Gpu& gpu, const MakeStart& start, std::string_view preference) {
  if (split.cluster == 0)
    return refuse(gpu.has_clusters()
                      ? "a row must fit the shared memory and the registers of 8 blocks"
                      : "needs sm_90 for rows that blocks share");
  if (rows >= int64_t(1) << 31) return refuse("needs fewer than 2^31 rows");
  const bool few = rows * split.cluster < int64_t(8) * gpu.num_sms;
  if (preference.empty() && few) preference = "few rows for each multiprocessor";
  const int64_t sms = std::max(gpu.num_sms, 1);  // 0 if the device does not say
  const int64_t clusters = std::min(rows, div_ceil(sms, int64_t(split.cluster)));
  Start<Config> s = start(Config{.threads = split.threads,
                                 .group = split.threads,
                                 .vector = 16 / element_bytes,
                                 .slots = split.slots,
                                 .whole = split.whole,
                                 .cluster = split.cluster,
                                 .stages = split.stages},
                          clusters * split.cluster);
  s.shared_bytes = split.shared_bytes;
  s.cluster = split.cluster;
  return {s, preference};
}

// Do all rows start at 16-byte boundaries?
inline bool rows_vector_aligned(const void* data, const RowMap& map, int element_bytes) {
  if (!is_vector_aligned(data)) return false;
  for (int i = 0; i < map.axes; ++i)
    if (map.stride[i] * element_bytes % 16) return false;
  return true;
}

// The map of rows that follow one another.
constexpr RowMap contiguous_rows(int64_t rows, int64_t cols) {
  RowMap map{};
  if (rows == 1) return map;
  map.size[0] = rows;
  map.stride[0] = cols;
  map.axes = 1;
  return map;
}

}  // namespace tensorcraft::op
