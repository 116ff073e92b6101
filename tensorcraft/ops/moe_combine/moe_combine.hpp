// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// Arguments of moe_combine() besides the arrays that it needs.
struct MoeCombineOptions {
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// out[t, :] = the sum over slots s of weights[t, s] * y[row_map[t, s], :], in the order of slots
// and in float32, rounded once: the same bits whatever else is in the batch. y: (rows, hidden),
// float32, float16 or bfloat16; row_map: (tokens, k), int32, as moe_permute() gives it; weights:
// (tokens, k), float32; out: (tokens, hidden), dtype of y; any strides. A slot with a negative row
// adds nothing. A row past the last is an error of kind index on a host device, before anything is
// written; on a GPU, which cannot ask the host, it adds nothing.
void moe_combine(const TensorView& out, const TensorView& y, const TensorView& row_map,
                 const TensorView& weights, const MoeCombineOptions& options = {});
Tensor moe_combine(const TensorView& y, const TensorView& row_map, const TensorView& weights,
                   const MoeCombineOptions& options = {});

}  // namespace tensorcraft
