// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// What rms_norm() takes besides arrays that it needs.
struct RmsNormOptions {
  std::optional<TensorView> weight = {};    // [cols], contiguous; dtype of x or float32
  float eps = 1e-6f;                        // added to the mean of squares
  std::optional<TensorView> residual = {};  // added to x first; shape and dtype of x
  // A further output, written where given: x + residual, shape and dtype of x.
  std::optional<TensorView> residual_out = {};
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
};

// residual_out is empty where no residual was given.
struct RmsNormResult {
  Tensor out, residual_out;  // shape and dtype of x
};

// out = h / sqrt(mean(h^2) + eps) * weight over the last axis, with h = x + residual. x: float32,
// float16 or bfloat16, any strides, rank at least 1. Computed in float32 from the sum before it is
// rounded to residual_out. out: shape and dtype of x; out and residual_out may be exactly x or
// residual.
void rms_norm(const TensorView& out, const TensorView& x, const RmsNormOptions& options = {});
RmsNormResult rms_norm(const TensorView& x, const RmsNormOptions& options = {});

}  // namespace tensorcraft
