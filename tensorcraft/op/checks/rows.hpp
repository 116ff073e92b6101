// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/device/rows.h"
#include "tensorcraft/op/choice/row_plan.h"

#include <optional>

namespace tensorcraft::op {

// The rows of `t` along `axis` (already in [0, rank)); a tensor of rank 0 is one row of one
// element.
RowMap row_map(const TensorView& t, int axis);
// All elements of `t` as rows of one element each would be; the map of an elementwise kernel.
RowMap element_map(const TensorView& t);

// A tensor that may be absent (then data is null), as rows along its last axis.
struct LastAxisRows {
  void* data = nullptr;
  int64_t step = 0;
  RowMap map{};
  explicit LastAxisRows(const std::optional<TensorView>& t);
};

}  // namespace tensorcraft::op
