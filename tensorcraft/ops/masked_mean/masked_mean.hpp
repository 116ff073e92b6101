// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// Arguments of masked_mean() besides the arrays that it needs.
struct MaskedMeanOptions {
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// out[b, :] = the mean of x[b, 0 .. lengths[b], :]; zeros where the length is 0. x: [batch, steps,
// dim], float32, float16 or bfloat16, any strides; lengths: [batch], int32 or int64; out: [batch,
// dim], dtype of x. Sums are float32; steps beyond a length are not read. A length outside [0,
// steps] is of kind value on a host device; on a GPU the nearer end is taken.
void masked_mean(const TensorView& out, const TensorView& x, const TensorView& lengths,
                 const MaskedMeanOptions& options = {});
Tensor masked_mean(const TensorView& x, const TensorView& lengths,
                   const MaskedMeanOptions& options = {});

}  // namespace tensorcraft
