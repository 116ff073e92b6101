// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/device/rows.h"
#include "tensorcraft/op/row_plan.h"

#include <optional>

namespace tensorcraft::op {

// The rows of `t` along `axis` (already in [0, rank)); a tensor of rank 0 is one row of one
// element.
RowMap row_map(const TensorView& t, int axis);
// All elements of `t` as rows of one element each would be; the map of an elementwise kernel.
RowMap element_map(const TensorView& t);
// Do rows start at multiples of `bytes`, so that vector accesses of that width are legal?
bool rows_aligned(const TensorView& t, const RowMap& map, size_t bytes);

// A tensor that may be absent (then data is null), as rows along its last axis.
struct LastAxisRows {
  void* data = nullptr;
  int64_t step = 0;
  RowMap map{};
  bool is_unit = true;     // neighbours in a row are neighbours in memory
  bool is_aligned = true;  // rows start at 16-byte boundaries
  // The rows lie along more than one axis: finding one takes divisions.
  bool is_nested() const { return map.axes > 1; }
  explicit LastAxisRows(const std::optional<TensorView>& t);
};

}  // namespace tensorcraft::op
