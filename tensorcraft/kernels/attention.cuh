// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/kernels/launch.cuh"
#include "tensorcraft/ops/attention/00_naive.cuh"
#include "tensorcraft/ops/attention/01_tiled.cuh"
#include "tensorcraft/ops/attention/02_tensor_core.cuh"
#include "tensorcraft/ops/attention/plan.h"

#include <cmath>
#include <optional>

// Attention. Compiled for f16 and bf16: tensor_core for head_dim 32, 64 and 128 (4 kernels); for
// float: tiled for the same (3); for each: naive, which takes every other head_dim, alignment and
// scale.
namespace tensorcraft::kernels {
namespace detail::attention {

using namespace kernel::attention;

inline constexpr int kShort = 1, kLong = 512;  // sequences, for the two tiles of head_dim 64
inline constexpr std::array kTensorCoreList{Instance<Config>{tensor_core_config(32, kShort)},
                                            Instance<Config>{tensor_core_config(64, kShort)},
                                            Instance<Config>{tensor_core_config(64, kLong)},
                                            Instance<Config>{tensor_core_config(128, kShort)}};
inline constexpr std::array kTiledList{Instance<Config>{tiled_config(32)},
                                       Instance<Config>{tiled_config(64)},
                                       Instance<Config>{tiled_config(128)}};
inline constexpr std::array kNaiveList{Instance<Config>{naive_config(1, 1)},
                                       Instance<Config>{naive_config(kMaxHeadDim, 1)}};

}  // namespace detail::attention

// Row-major q and out [batch, heads, seq_q, head_dim], k and v [batch, heads_k, seq_k, head_dim].
struct AttentionShape {
  // Each at most 2^30; head_dim 1 to 512; heads a multiple of heads_k.
  int64_t batch, heads, heads_k, seq_q, seq_k, head_dim;
};

// What need not be given.
struct AttentionArguments {
  std::optional<float> scale = {};  // of q k^T; 1 / sqrt(head_dim) if not given
  bool causal = false;  // query i sees keys j <= i + keys - seq_q; keys: seq_k, or key_lengths[b]
  const int32_t* key_lengths = nullptr;  // [batch]: keys in use, the first ones
  float* lse = nullptr;                  // [batch, heads, seq_q]: log(sum(exp(score)))
};

// Throws std::invalid_argument for a shape that breaks these bounds.
inline void validate_attention(const AttentionShape& s) {
  for (const int64_t size : {s.batch, s.heads, s.heads_k, s.seq_q, s.seq_k})
    if (size < 0 || size > int64_t(1) << 30)
      throw std::invalid_argument("launch_attention: sizes must be in [0, 2^30]");
  if (s.head_dim < 1 || s.head_dim > kernel::attention::kMaxHeadDim)
    throw std::invalid_argument("launch_attention: head_dim must be 1 to 512");
  if (s.heads != 0 && (s.heads_k == 0 || s.heads % s.heads_k != 0))
    throw std::invalid_argument("launch_attention: heads must be a multiple of heads_k");
}

// out = softmax(scale q k^T + mask) v for each batch and head; query head h reads head
// h / (heads / heads_k) of k and v. T: float, f16 or bf16; scores and sums are float. A query that
// sees no key gives 0, and -inf in lse. Returns the name of the variant, empty if there is
// nothing to do. Errors and stream as launch_softmax.
template <class T>
std::string_view launch_attention(const T* q, const T* k, const T* v, T* out,
                                  const AttentionShape& shape,
                                  const AttentionArguments& arguments = {},
                                  cudaStream_t stream = nullptr, DebugInfo where = {}) {
  namespace a = detail::attention;
  validate_attention(shape);
  if (shape.batch == 0 || shape.heads == 0 || shape.seq_q == 0) return {};
  validate_arrays("launch_attention", {{"q", q}, {"out", out}});
  if (shape.seq_k > 0) validate_arrays("launch_attention", {{"k", k}, {"v", v}});
  a::Params p = a::contiguous_params(q, k, v, out, int32_t(shape.batch), int32_t(shape.heads),
                                     int32_t(shape.heads_k), int32_t(shape.seq_q),
                                     int32_t(shape.seq_k), int32_t(shape.head_dim));
  p.scale = arguments.scale.value_or(1.0f / std::sqrt(float(shape.head_dim)));
  if (!std::isfinite(p.scale))
    throw std::invalid_argument("launch_attention: scale must be finite");
  p.window = window_of(-1, -1, arguments.causal);
  p.key_lengths = arguments.key_lengths;
  p.lse = arguments.lse;
  const a::Given given{sizeof(T)};
  if (const auto refusal = a::naive(p, given, {}).refusal; !refusal.empty())
    throw std::invalid_argument("launch_attention: " + std::string(refusal));
  using OnTiles = std::conditional_t<sizeof(T) == 2, Kernels<a::TensorCore, a::kTensorCoreList, T>,
                                     Kernels<a::Tiled, a::kTiledList, T>>;
  return launch_ladder(a::kRungs, p, given, stream, where,
                       OnTiles{sizeof(T) == 2 ? "tensor_core" : "tiled"},
                       Kernels<a::Naive, a::kNaiveList, T>{"naive"});
}

}  // namespace tensorcraft::kernels
