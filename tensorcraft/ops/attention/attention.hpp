// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// The order of the dimensions of q, k, v and out: batch, heads, sequence, head_dim (bhsd), or
// batch, sequence, heads, head_dim (bshd).
enum class AttentionLayout : int { bhsd, bshd };

// What attention() takes besides arrays that it needs.
struct AttentionOptions {
  std::optional<float> scale = {};  // of q k^T; 1 / sqrt(head_dim) if not given
  bool causal = false;  // query i sees keys j <= i + keys - seq_q; keys: seq_k, or key_lengths[b]
  // int32 or int64 [batch], contiguous: keys in use, the first ones
  std::optional<TensorView> key_lengths = {};
  AttentionLayout layout = AttentionLayout::bhsd;  // of q, k, v and out
  bool return_lse = false;                         // the allocating form computes lse too
  std::optional<TensorView> lse =
      {};                         // float32 [batch, heads, seq_q], contiguous: log(sum(exp(s)))
  std::string_view variant = {};  // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
};

// What the allocating form returns.
struct AttentionResult {
  Tensor out;                 // shape, dtype and layout of q
  std::optional<Tensor> lse;  // if return_lse
};

// out = softmax(scale q k^T + mask) v for each batch and head, softmax over the keys a query sees.
// q and out [batch, heads, seq_q, head_dim], k and v [batch, heads_k, seq_k, head_dim] or the bshd
// order; heads is a multiple of heads_k, query head h reads head h / (heads / heads_k); head_dim is
// 1 to 256. float32, float16 or bfloat16, equal in all four; any strides, but head_dim's is 1.
// Scores and sums are float32: any q k^T that float32 holds will do, a larger one makes its row
// NaN. Causal is aligned to the end of the keys in use, of which there are key_lengths[b] if given:
// the queries are the newest tokens of a cache in a longer buffer. A query that sees no key gives
// 0, and -inf in lse. What lies after key_lengths has no effect, NaN included; a NaN in v may also
// reach queries from which causal hides it.
// rope() takes [batch, seq, heads, head_dim]: that is bshd here, which is not the default.
void attention(const TensorView& out, const TensorView& q, const TensorView& k, const TensorView& v,
               const AttentionOptions& options = {});
AttentionResult attention(const TensorView& q, const TensorView& k, const TensorView& v,
                          const AttentionOptions& options = {});

}  // namespace tensorcraft
