// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// Arguments of group_norm() besides the arrays that it needs.
struct GroupNormOptions {
  int64_t num_groups = 1;  // of neighbouring channels; divides their number
  // [channels], contiguous; both of one dtype, that of x or float32.
  std::optional<TensorView> weight = {}, bias = {};
  float eps = 1e-5f;                     // added to the variance
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// out = (x - mean) / sqrt(variance + eps) * weight + bias, with mean and variance of each group of
// channels of each sample, weight and bias of each channel. x: [batch, channels, ...] of any
// strides; float32, float16 or bfloat16; computed in float32. A group with a NaN or an infinity
// becomes NaN. out: shape and dtype of x; may be x itself.
void group_norm(const TensorView& out, const TensorView& x, const GroupNormOptions& options);
Tensor group_norm(const TensorView& x, const GroupNormOptions& options);

}  // namespace tensorcraft
