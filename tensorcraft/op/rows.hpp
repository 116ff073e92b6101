// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/device/rows.h"

#include <optional>

namespace tensorcraft::op {

// The rows of `t` along `axis` (already in [0, rank)); a tensor of rank 0 is one row of one
// element.
RowMap row_map(const TensorView& t, int axis);
// All elements of `t` as rows of one element each would be; the map of an elementwise kernel.
RowMap element_map(const TensorView& t);
// Do rows along `axis` start at multiples of `bytes`, so that vector accesses of that width are
// legal? A warm call asks, so no map is made for it.
bool rows_aligned(const TensorView& t, int axis, size_t bytes);
// Of a tensor that may be absent, along its last axis: neighbours are neighbours in memory, and
// rows start at 16-byte boundaries.
bool has_unit_rows(const std::optional<TensorView>& t);
bool has_aligned_rows(const std::optional<TensorView>& t);

// A tensor that may be absent (then data is null), as rows along its last axis.
struct LastAxisRows {
  void* data = nullptr;
  int64_t step = 0;
  RowMap map{};
  // The rows lie along more than one axis: finding one takes divisions.
  bool is_nested() const { return map.axes > 1; }
  explicit LastAxisRows(const std::optional<TensorView>& t);
};

// How a block of `threads` divides rows that its threads hold in registers: `group` threads share a
// row, each holds `slots` vectors of `vector` elements.
struct RowSplit {
  int threads, group, slots;
};
inline constexpr int64_t kMaxRegisterRow = 16384;  // 64 floats in each of 256 threads
// For rows of 1 to kMaxRegisterRow elements and vectors of at most 16 bytes. At most 32 elements a
// thread up to 8,192 columns: several blocks fit a multiprocessor then.
RowSplit split_rows(int64_t cols, int vector);

}  // namespace tensorcraft::op
