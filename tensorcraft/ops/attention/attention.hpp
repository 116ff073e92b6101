// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/op/checks/value_or_tensor.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>
#include <utility>

namespace tensorcraft {

// The order of the dimensions of q, k, v and out: batch, heads, sequence, head_dim (bhsd), or
// batch, sequence, heads, head_dim (bshd).
enum class AttentionLayout : int { bhsd, bshd };

// Arguments of attention() besides the arrays that it needs.
struct AttentionOptions {
  std::optional<float> scale = {};  // of q k^T; 1 / sqrt(head_dim) if not given
  // Query i sees keys j <= i + keys - seq_q; keys: seq_k, or key_lengths[b]. Or bool [batch],
  // contiguous: is each request causal.
  BooleanOrTensor causal = false;
  // int32 or int64 [batch], contiguous: keys in use, the first ones
  std::optional<TensorView> key_lengths = {};
  // left and right: keys from i + keys - seq_q - left to that + right; -1 is unlimited.
  std::optional<Dims> window = {};
  std::optional<float> softcap = {};     // scores become softcap tanh(score / softcap)
  std::optional<TensorView> sinks = {};  // float32 [heads]: a logit in the denominator alone
  // Broadcast to [batch, heads, seq_q, seq_k]. bool: is a key seen; float32 or the dtype of q: is
  // added to the score, after softcap.
  std::optional<TensorView> mask = {};
  // int32 or int64 [batch + 1], contiguous: q, k, v and out are [tokens, heads, head_dim], and
  // request b has the tokens [cu_seqlens[b], cu_seqlens[b + 1]) of each. Both or neither.
  std::optional<TensorView> cu_seqlens_q = {}, cu_seqlens_k = {};
  // Each scale multiplies float8 values: float32, one number (a tensor of one element) or one per
  // head, [heads] of q and [heads_k] of k and v, contiguous; positive. Not given: 1.
  std::optional<TensorView> q_scale = {}, k_scale = {}, v_scale = {};
  // With float8 inputs out is bfloat16, float16 or float32; bfloat16 if the call makes out.
  std::optional<DType> out_dtype = {};
  AttentionLayout layout = AttentionLayout::bhsd;  // of q, k, v and out, unless they are ragged
  bool return_lse = false;                         // the allocating form computes lse too
  // float32 [batch, heads, seq_q], ragged [heads, tokens], contiguous: log(sum(exp(s))), natural,
  // the sink included
  std::optional<TensorView> lse = {};
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// The allocating form returns this.
struct AttentionResult {
  Tensor out;  // shape of q but for head_dim, its dtype (of float8: out_dtype) and layout
  Tensor lse;  // if return_lse, else empty
  // Converts to out, so the result can be passed as a tensor.
  operator TensorView() const { return out; }  // NOLINT
  // Hands it over: Tensor y = ... takes the memory.
  operator Tensor() && { return std::move(out); }  // NOLINT
};

// out = softmax(scale q k^T + mask) v for each batch and head, softmax over the keys a query sees.
// q [batch, heads, seq_q, head_dim], k [batch, heads_k, seq_k, head_dim], v and out with a head_dim
// of their own, or the bshd order, or ragged by cu_seqlens; heads is a multiple of heads_k, query
// head h reads head h / (heads / heads_k); head_dims are 1 to 512. float32, float16 or bfloat16,
// equal in all four, or q, k and v of float8_e4m3fn; any strides, but head_dim's is 1. Codes of
// float8 are multiplied by their scales; rungs on wgmma round weights to 4 bits too. Scores and
// sums are float32: any q k^T that float32 holds will do, a larger one makes its row NaN. Query i
// stands at key i + keys - seq_q of the keys in use, of which there are key_lengths[b] if given:
// the queries are the newest tokens of a cache in a longer buffer. causal hides the keys after it,
// window those farther away than it says. A query that sees no key gives 0, and in lse -inf, or the
// sink; a token of no request gives 0 and -inf. What lies after key_lengths has no effect, NaN
// included; a NaN in v may also reach queries from which causal, a window or a mask hides it.
// cu_seqlens that decrease or leave the tensors are an error of kind index on the CPU; a GPU reads
// and writes only tensors. Read on the device: key_lengths, causal, sinks, mask, cu_seqlens
// and scales. rope() takes [batch, seq, heads, head_dim]: that is bshd here, which is not the
// default.
void attention(const TensorView& out, const TensorView& q, const TensorView& k, const TensorView& v,
               const AttentionOptions& options = {});
AttentionResult attention(const TensorView& q, const TensorView& k, const TensorView& v,
                          const AttentionOptions& options = {});

}  // namespace tensorcraft
