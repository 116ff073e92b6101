// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/kernels/attention_arguments.hpp"
#include "tensorcraft/kernels/launch.cuh"
#include "tensorcraft/ops/attention/00_naive.cuh"
#include "tensorcraft/ops/attention/01_tiled.cuh"
#include "tensorcraft/ops/attention/02_tensor_core.cuh"

// Attention. Compiled for f16 and bf16: tensor_core for head_dims that fill up to 32, 64 and 128
// (4 kernels), and for windows, sinks and ragged batches with 64 and 128 (3); for float: tiled for
// the same head_dims (3); for each: naive, which takes all other head_dims, alignments, scales and
// options.
namespace tensorcraft::kernels {
namespace detail::attention {

using namespace kernel::attention;

inline constexpr int kShort = 1, kLong = 512;  // sequences, for the two tiles of head_dim 64
constexpr Instance<Config> with_ranges(Config config) {
  config.options = kRanges;
  return {config};
}
inline constexpr std::array kTensorCoreList{Instance<Config>{tensor_core_config(32, kShort)},
                                            Instance<Config>{tensor_core_config(64, kShort)},
                                            Instance<Config>{tensor_core_config(64, kLong)},
                                            Instance<Config>{tensor_core_config(128, kShort)},
                                            with_ranges(tensor_core_config(64, kShort)),
                                            with_ranges(tensor_core_config(64, kLong)),
                                            with_ranges(tensor_core_config(128, kShort))};
inline constexpr std::array kTiledList{Instance<Config>{tiled_config(32)},
                                       Instance<Config>{tiled_config(64)},
                                       Instance<Config>{tiled_config(128)}};
inline constexpr std::array kNaiveList{Instance<Config>{naive_config(1, 1)},
                                       Instance<Config>{naive_config(kMaxHeadDim, 1)}};

}  // namespace detail::attention

// out = softmax(scale q k^T + mask) v for each batch and head; query head h reads head
// h / (heads / heads_k) of k and v. T: float, f16 or bf16; scores and sums are float. A query that
// sees no key gives 0, and -inf or the sink in lse. Returns the name of the variant, empty if there
// is nothing to do. Errors and stream as launch_softmax. Strides, pages, float8 and the kernels on
// wgmma are the library's.
template <class T>
std::string_view launch_attention(const T* q, const T* k, const T* v, T* out,
                                  const AttentionShape& shape,
                                  const AttentionArguments& arguments = {},
                                  cudaStream_t stream = nullptr, DebugInfo where = {}) {
  namespace a = detail::attention;
  static_assert(sizeof(T) > 1,
                "launch_attention: float8 needs the library, tensorcraft::attention");
  validate_attention(shape);
  validate_attention(arguments, sizeof(T) == 2 ? "tensor_core" : "tiled");
  if (shape.heads == 0 || shape.seq_q == 0 || (shape.batch == 0 && !arguments.cu_seqlens_q))
    return {};
  validate_arrays("launch_attention", {{"q", q}, {"out", out}});
  if (shape.seq_k > 0) validate_arrays("launch_attention", {{"k", k}, {"v", v}});
  const a::Params p = a::params_of(q, k, v, out, shape, arguments);
  const a::Given given{sizeof(T)};
  if (const auto refusal = a::naive(p, given, {}).refusal; !refusal.empty())
    throw std::invalid_argument("launch_attention: " + std::string(refusal));
  using OnTiles = std::conditional_t<sizeof(T) == 2, Kernels<a::TensorCore, a::kTensorCoreList, T>,
                                     Kernels<a::Tiled, a::kTiledList, T>>;
  const OnTiles on_tiles{sizeof(T) == 2 ? "tensor_core" : "tiled"};
  const Kernels<a::Naive, a::kNaiveList, T> naive{"naive"};
  const auto launch = [&](const auto&... sets) {
    return launch_ladder(a::kRungs, p, given, stream, where, sets...);
  };
  if (arguments.variant == naive.variant) return launch(naive);
  return arguments.variant.empty() ? launch(on_tiles, naive) : launch(on_tiles);
}

// The same of one length: q, k, v and out are [batch, heads, seq_len, head_dim]. The weights of the
// softmax, seq_len^2 a head, are never in memory: `weights` is null, else std::invalid_argument.
template <class T>
std::string_view execute_attention(const T* q, const T* k, const T* v, T* out, float* weights,
                                   int64_t seq_len, int64_t heads, int64_t head_dim,
                                   int64_t batch = 1, const AttentionArguments& arguments = {},
                                   cudaStream_t stream = nullptr, DebugInfo where = {}) {
  if (weights)
    throw std::invalid_argument(
        "execute_attention: weights are not stored, pass null; they are exp(score - lse), with the "
        "lse that arguments ask for");
  return launch_attention(q, k, v, out, {batch, heads, heads, seq_len, seq_len, head_dim},
                          arguments, stream, where);
}

// The same by the variant that a configuration manager names: get_attention_config(shape).variant.
template <class Manager, class T>
std::string_view schedule_attention(Manager&& manager, const T* q, const T* k, const T* v, T* out,
                                    const AttentionShape& shape, AttentionArguments arguments = {},
                                    cudaStream_t stream = nullptr, DebugInfo where = {}) {
  arguments.variant = manager.get_attention_config(shape).variant;
  return launch_attention(q, k, v, out, shape, arguments, stream, where);
}

}  // namespace tensorcraft::kernels
