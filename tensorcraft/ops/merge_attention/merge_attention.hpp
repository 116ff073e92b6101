// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>
#include <utility>

namespace tensorcraft {

// Arguments of merge_attention() besides the arrays that it needs.
struct MergeAttentionOptions {
  // A further output, written if given: float32, shape of lse_a.
  std::optional<TensorView> lse = {};
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// The allocating form returns this.
struct MergeAttentionResult {
  Tensor out, lse;  // shape and dtype of out_a; of lse_a
  // Converts to out, so the result can be passed as a tensor.
  operator TensorView() const { return out; }  // NOLINT
  // Hands it over: Tensor y = ... takes the memory.
  operator Tensor() && { return std::move(out); }  // NOLINT
};

// The attention over all keys from that over two parts of them: lse = log(e^lse_a + e^lse_b),
// out = e^(lse_a - lse) out_a + e^(lse_b - lse) out_b. out_a and out_b: [..., head_dim], float32,
// float16 or bfloat16, one dtype and shape; lse_a and lse_b: float32 [...], natural logarithms. Any
// strides; out may be out_a or out_b, and lse likewise. A side whose lse is -inf saw no key: it is
// left out, whatever its out holds, and two such sides give 0 and -inf. Computed in float32,
// rounded once. A sink counts in both lse if both calls had it: give it to one of them.
void merge_attention(const TensorView& out, const TensorView& out_a, const TensorView& lse_a,
                     const TensorView& out_b, const TensorView& lse_b,
                     const MergeAttentionOptions& options = {});
MergeAttentionResult merge_attention(const TensorView& out_a, const TensorView& lse_a,
                                     const TensorView& out_b, const TensorView& lse_b,
                                     const MergeAttentionOptions& options = {});

}  // namespace tensorcraft
