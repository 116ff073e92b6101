// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// What softmax() takes besides arrays that it needs.
struct SoftmaxOptions {
  int64_t axis = -1;                     // whose elements together sum to 1
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
};

// out = exp(x - max) / sum(exp(x - max)) along the axis. x: any shape and strides; float32, float16
// or bfloat16; computed in float32. out: shape and dtype of x; may be x itself. -inf gives 0; a row
// with a NaN or +inf, or of nothing but -inf, becomes NaN.
void softmax(const TensorView& out, const TensorView& x, const SoftmaxOptions& options = {});
Tensor softmax(const TensorView& x, const SoftmaxOptions& options = {});

}  // namespace tensorcraft
