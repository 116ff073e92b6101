// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// Arguments of l2_normalize() besides the arrays that it needs.
struct L2NormalizeOptions {
  int64_t axis = -1;                     // whose elements together get length 1
  float eps = 1e-12f;                    // vectors shorter than this are divided by it
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// out = x / max(sqrt(sum(x^2 over axis)), eps). x: any shape and strides; float32, float16 or
// bfloat16; sums in float32. out: shape and dtype of x; may be x itself.
void l2_normalize(const TensorView& out, const TensorView& x,
                  const L2NormalizeOptions& options = {});
Tensor l2_normalize(const TensorView& x, const L2NormalizeOptions& options = {});

}  // namespace tensorcraft
