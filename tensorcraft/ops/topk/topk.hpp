// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>
#include <utility>

namespace tensorcraft {

// Arguments of topk() besides the arrays that it needs.
struct TopkOptions {
  int64_t k = 1;      // how many: at most 64, and at most the elements along the axis
  int64_t axis = -1;  // along which elements compete
  // A further output, written if given: int64, the place of each along the axis.
  std::optional<TensorView> indices = {};
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// Both have the shape of x with k along the axis.
struct TopkResult {
  Tensor out, indices;  // dtype of x; int64
  // Converts to out, so the result can be passed as a tensor.
  operator TensorView() const { return out; }  // NOLINT
  // Hands it over: Tensor y = ... takes the memory.
  operator Tensor() && { return std::move(out); }  // NOLINT
};

// The k largest elements along an axis, the largest first; of equals the lower index comes first,
// zeros of both signs are equal, and a NaN is larger than any number. x: float32, float16 or
// bfloat16, any strides, rank at least 1. out: shape of x with k along the axis. Kind value if k
// is not in [0, 64] or there are fewer elements.
void topk(const TensorView& out, const TensorView& x, const TopkOptions& options = {});
TopkResult topk(const TensorView& x, const TopkOptions& options = {});

}  // namespace tensorcraft
