// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// What every operator takes besides arrays; options of its own would stand before these.
struct RowCenterOptions {
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// out = x minus the mean of its row; a row lies along the last axis. x: any shape but a number's,
// any strides; float32, float16 or bfloat16, summed in float32. out: shape and dtype of x; may be
// x.
void row_center(const TensorView& out, const TensorView& x, const RowCenterOptions& options = {});
Tensor row_center(const TensorView& x, const RowCenterOptions& options = {});

}  // namespace tensorcraft
