// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/attention/plan.h"

#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

// What launch_attention is given: the half of it that any compiler takes.
namespace tensorcraft::kernels {

// Row-major q [batch, heads, seq_q, head_dim], k [batch, heads_k, seq_k, head_dim], v and out the
// same with v_dim. Of a ragged batch of `batch` requests q and out are [seq_q, heads, head_dim], k
// and v [seq_k, heads_k, head_dim]: the rows of all requests.
struct AttentionShape {
  // Each at most 2^30; head_dim 1 to 512; heads a multiple of heads_k.
  int64_t batch, heads, heads_k, seq_q, seq_k, head_dim;
  int64_t v_dim = 0;  // 0: head_dim
};

// What need not be given.
struct AttentionArguments {
  std::optional<float> scale = {};  // of q k^T; 1 / sqrt(head_dim) if not given
  bool causal = false;  // query i sees keys j <= i + keys - seq_q; keys: seq_k, or key_lengths[b]
  const int32_t* key_lengths = nullptr;  // [batch]: keys in use, the first ones
  // [batch, heads, seq_q], ragged [heads, seq_q]: log(sum(exp(score))), the sink included
  float* lse = nullptr;
  const bool* causal_each = nullptr;  // [batch]: which requests are causal, in place of `causal`
  // Keys before and after a query's own that it sees; -1: all.
  int64_t window_left = -1, window_right = -1;
  float softcap = 0;                      // scores become softcap tanh(score / softcap); 0: none
  const float* sinks = nullptr;           // [heads]: a logit in the denominator alone
  const bool* seen = nullptr;             // [seq_q, seq_k]: which keys are seen; not with `added`
  const float* added = nullptr;           // [seq_q, seq_k]: added to a score after softcap
  int64_t mask_batch = 0, mask_head = 0;  // elements between those of batches and heads; 0: shared
  // [batch + 1], both or neither: a batch is ragged, and request b has the rows from entry b to the
  // next one. They do not decrease.
  const int32_t *cu_seqlens_q = nullptr, *cu_seqlens_k = nullptr;
  std::string_view variant =
      {};  // tensor_core or tiled, by T, or naive; empty: the first that takes
};

// Throws std::invalid_argument for a shape that breaks these bounds.
inline void validate_attention(const AttentionShape& s) {
  for (const int64_t size : {s.batch, s.heads, s.heads_k, s.seq_q, s.seq_k})
    if (size < 0 || size > int64_t(1) << 30)
      throw std::invalid_argument("launch_attention: sizes must be in [0, 2^30]");
  for (const int64_t dim : {s.head_dim, s.v_dim ? s.v_dim : s.head_dim})
    if (dim < 1 || dim > kernel::attention::kMaxHeadDim)
      throw std::invalid_argument("launch_attention: head_dim must be 1 to 512, also that of v");
  if (s.heads != 0 && (s.heads_k == 0 || s.heads % s.heads_k != 0))
    throw std::invalid_argument("launch_attention: heads must be a multiple of heads_k");
}
// The same of arguments, and of a variant that is neither `on_tiles` nor naive.
inline void validate_attention(const AttentionArguments& a, std::string_view on_tiles) {
  const auto refuse_if = [](bool is_wrong, const char* text) {
    if (is_wrong) throw std::invalid_argument(std::string("launch_attention: ") + text);
  };
  if (!a.variant.empty() && a.variant != on_tiles && a.variant != "naive")
    throw std::invalid_argument("launch_attention: no variant is named \"" +
                                std::string(a.variant) + "\" for this type; there are " +
                                std::string(on_tiles) + " and naive");
  refuse_if(a.scale && !std::isfinite(*a.scale), "scale must be finite");
  refuse_if(a.window_left < -1 || a.window_right < -1,
            "window_left and window_right must be at least -1, which is unlimited");
  refuse_if(!(a.softcap >= 0) || !std::isfinite(a.softcap),
            "softcap must be above 0 and finite, or 0 for none");
  refuse_if(!a.cu_seqlens_q != !a.cu_seqlens_k, "give cu_seqlens_q and cu_seqlens_k, or neither");
  refuse_if(a.seen && a.added, "give seen or added, not both");
  refuse_if(a.cu_seqlens_q && (a.seen || a.added),
            "a mask is for batches without cu_seqlens_q; causal, a window and key_lengths serve "
            "both");
}

namespace detail::attention {

using namespace kernel::attention;

// What the kernels are told of a call.
inline Params params_of(const void* q, const void* k, const void* v, void* out,
                        const AttentionShape& s, const AttentionArguments& a) {
  const bool is_ragged = a.cu_seqlens_q;
  Params p = contiguous_params(q, k, v, out, int32_t(s.batch), int32_t(s.heads), int32_t(s.heads_k),
                               int32_t(s.seq_q), int32_t(s.seq_k), int32_t(s.head_dim),
                               int32_t(s.v_dim ? s.v_dim : s.head_dim), is_ragged);
  p.scale = a.scale.value_or(1.0f / std::sqrt(float(s.head_dim)));
  p.softcap = a.softcap;
  p.window = window_of(a.window_left, a.window_right, a.causal && !a.causal_each);
  p.lse = a.lse;
  p.key_lengths = a.key_lengths;
  p.q_starts = a.cu_seqlens_q;
  p.k_starts = a.cu_seqlens_k;
  p.causal_each = reinterpret_cast<const uint8_t*>(a.causal_each);
  p.sinks = a.sinks;
  if (a.seen || a.added)
    p.mask = {.data = a.seen ? static_cast<const void*>(a.seen) : a.added,
              .batch = a.mask_batch,
              .head = a.mask_head,
              .row = s.seq_q > 1 ? s.seq_k : 0,
              .key = s.seq_k > 1,
              .type = a.seen ? MaskType::bools : MaskType::float32s};
  return p;
}

}  // namespace detail::attention

}  // namespace tensorcraft::kernels
