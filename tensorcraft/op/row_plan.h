// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/rows.h"
#include "tensorcraft/op/launch_plan.h"

#include <algorithm>
#include <bit>

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
