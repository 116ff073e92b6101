// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/rows.h"
#include "tensorcraft/op/launch_plan.h"

#include <algorithm>
#include <bit>
#include <string_view>

// How plan headers look at rows; host only, like op/launch_plan.h.
namespace tensorcraft::op {

// How a block of `threads` divides rows that its threads hold in registers: `group` threads share a
// row, each holds `slots` vectors of `vector` elements.
struct RowSplit {
  int threads, group, slots;
};
inline constexpr int64_t kMaxRegisterRow = 16384;  // 64 floats in each of 256 threads

// For rows of 1 to kMaxRegisterRow elements and vectors of at most 16 bytes. At most 32 elements a
// thread up to 8,192 columns: several blocks fit a multiprocessor then.
constexpr RowSplit split_rows(int64_t cols, int vector) {
  const int vectors = int(div_ceil(cols, int64_t(vector)));
  int threads = 256, group = 256;
  if (cols <= 4096) threads = group = 128;
  if (cols <= 1024) {
    group = std::clamp(int(std::bit_ceil(uint32_t(vectors))), 8, 32);
    // A smaller group that divides the row leaves no thread without elements.
    if (vectors % group != 0 && vectors % 16 == 0 && vectors * vector <= 16 * 32) group = 16;
  }
  const int slots = div_ceil(vectors, group);
  // Long scalar rows share kernels: their count of slots is rounded up.
  return {threads, group, slots <= 8 ? slots : round_up(slots, 4)};
}

// A Config of rows in registers, by its fields.
template <class Config>
constexpr Config registers_config(int64_t cols, int vector) {
  const auto [threads, group, slots] = split_rows(cols, vector);
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

// How a row lies in the shared memory of the blocks of a cluster.
struct RowStage {
  int threads, cluster;
  int shared_bytes;  // of a block; more than kMaxStagedBytes where the row does not fit
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

// Why rows cannot be staged, or empty.
inline std::string_view stage_problem(int64_t rows, int64_t cols, int element_bytes, int tensors,
                                      bool has_clusters) {
  if (!has_clusters) return "needs sm_90 for the copy engine";
  if (rows > kMaxBlocks / kMaxStagedCluster) return "needs fewer than 2^28 rows";
  return stage_row(cols, element_bytes, tensors).shared_bytes > kMaxStagedBytes
             ? "a row must fit the shared memory of 8 blocks"
             : "";
}

// The launch of a rung that stages rows; `launch` adds to a Config and a count of blocks what the
// call decides.
template <class Config, class Launch>
auto staged_launch(int64_t rows, int64_t cols, int element_bytes, int tensors,
                   const Launch& launch) {
  const RowStage stage = stage_row(cols, element_bytes, tensors);
  auto l = launch(Config{.threads = stage.threads,
                         .group = stage.threads,
                         .vector = 16 / element_bytes,
                         .cluster = stage.cluster},
                  rows * stage.cluster);
  l.shared_bytes = stage.shared_bytes;
  l.cluster = stage.cluster;
  return l;
}

// Do all rows start at 16-byte boundaries?
inline bool rows_vector_aligned(const void* data, const RowMap& map, int element_bytes) {
  if (!is_vector_aligned(data)) return false;
  for (int i = 0; i < map.axes; ++i)
    if (map.stride[i] * element_bytes % 16) return false;
  return true;
}

// The map of rows that lie one behind another.
constexpr RowMap contiguous_rows(int64_t rows, int64_t cols) {
  RowMap map{};
  if (rows == 1) return map;
  map.size[0] = rows;
  map.stride[0] = cols;
  map.axes = 1;
  return map;
}

}  // namespace tensorcraft::op
