// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/device/rows.h"

namespace tensorcraft::op {

// The rows of `t` along `axis` (already in [0, rank)); a tensor of rank 0 is one row of one
// element.
RowMap row_map(const TensorView& t, int axis);
// All elements of `t` as rows of one element each would be; the map of an elementwise kernel.
RowMap element_map(const TensorView& t);
// Do rows start at multiples of `bytes`, so that vector accesses of that width are legal?
bool rows_aligned(const TensorView& t, const RowMap& map, size_t bytes);

}  // namespace tensorcraft::op
