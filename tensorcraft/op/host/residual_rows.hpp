// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/host/rows.hpp"

#include <optional>

namespace tensorcraft::host {

// The rows of x + residual along the last axis; residual may be absent. What the norms read.
class ResidualRows {
 public:
  ResidualRows(const TensorView& x, const std::optional<TensorView>& residual,
               const std::optional<TensorView>& residual_out);
  // The row as floats, also rounded to residual_out if there is one. Uses the slots row_a and row_c
  // of the calling thread; valid until their next use.
  const float* read(int64_t row) const;

 private:
  Rows x_;
  std::optional<Rows> residual_, residual_out_;
};

// A contiguous vector as floats: itself or a copy in `slot` of the calling thread; null if absent.
const float* read_vector(const std::optional<TensorView>& t, Slot slot);

}  // namespace tensorcraft::host
