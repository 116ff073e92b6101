// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/device/rows.h"

#include <optional>

namespace tensorcraft::host {

// The dtypes of codes: float8_e4m3fn, float8_e5m2 and int8.
bool is_code_dtype(DType dtype);

// The rows along the last axis of a tensor of codes, as device/quantize.cuh defines them: with one
// scale, or, if `scales` is given (contiguous float32, one a row), with a scale of each row's own,
// from its largest magnitude, which is written there.
class CodeRows {
 public:
  CodeRows(const TensorView& out, const std::optional<TensorView>& scales, float scale);
  void commit(int64_t row, const float* values) const;

 private:
  TensorView out_;
  RowMap map_;
  float* scales_;
  float scale_;
};

}  // namespace tensorcraft::host
