// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/kernels/launch.cuh"
#include "tensorcraft/ops/rope/00_naive.cuh"
#include "tensorcraft/ops/rope/01_vectorized.cuh"
#include "tensorcraft/ops/rope/plan.h"

// Rotary position embedding. Compiled for each T, W and style: vectorized for heads of 64, 128 or
// 256 elements (15 kernels with and 15 without caches), and naive for the rest.
namespace tensorcraft::kernels {

using RopeStyle = kernel::rope::Style;  // which elements are a pair

// x is [tokens, heads, dim], `seq` tokens a sequence, one after another.
struct RopeShape {
  int64_t tokens;  // of all sequences together
  int64_t seq;     // tokens of one sequence
  int64_t heads;   // of x
  int64_t dim;     // of a head, even
};

// Arguments of launch_rope besides x. W: float or the type of x.
template <class T, class W = float>
struct RopeArguments {
  const W *cos = nullptr, *sin = nullptr;  // [max_seq, dim / 2] both; null: angles are computed
  int64_t max_seq = 0;                     // a position outside [0, max_seq) gives NaN then
  const int64_t* positions = nullptr;      // one for each token; null: they count from start_pos
  int64_t start_pos = 0;                   // in each sequence
  double base = 10000;                     // of the angles
  const T* k = nullptr;                    // [tokens, heads_k, dim], rotated too; null: none
  T* k_out = nullptr;                      // may be k
  int64_t heads_k = 0;                     // of k
};

namespace detail::rope {

using namespace kernel::rope;

template <class T, class W, Style style, bool has_cache>
struct Shares {
  static constexpr auto list = [] {
    std::array<Instance<Config>, 15> all{};
    for (int i = 0; i < 15; ++i) {
      Config c{.style = style,
               .lanes = int(sizeof(T)) * 2 << i / 5,
               .heads = 1 << i % 5,
               .has_cache = has_cache};
      all[size_t(i)] = {c, vectorized_min_blocks(c, Given{sizeof(T), sizeof(W), style})};
    }
    return all;
  }();
};
template <Style style>
inline constexpr std::array kPairs{Instance<Config>{{.style = style}}};

}  // namespace detail::rope

// Turns each pair of each head by position * base^(-2i/dim), i the number of the pair; out may be
// in. T: float, f16 or bf16; computed in float. Returns the name of the variant, empty if there is
// nothing to do. Errors and stream as launch_softmax.
template <RopeStyle style = RopeStyle::half, class T, class W = float>
std::string_view launch_rope(const T* in, T* out, const RopeShape& shape,
                             const RopeArguments<T, W>& arguments = {},
                             cudaStream_t stream = nullptr, DebugInfo where = {}) {
  namespace r = detail::rope;
  constexpr const char* kLauncher = "launch_rope";
  validate_sizes(kLauncher, {{"tokens", shape.tokens},
                             {"heads", shape.heads},
                             {"dim", shape.dim},
                             {"heads_k", arguments.heads_k}});
  if (shape.tokens == 0 || shape.heads == 0 || shape.dim == 0) return {};
  validate_arrays(kLauncher, {{"in", in}, {"out", out}});
  if (arguments.k) validate_pointer(kLauncher, "k_out", arguments.k_out);
  if (shape.dim % 2 != 0) throw std::invalid_argument("launch_rope: dim must be even");
  if (shape.seq < 1) throw std::invalid_argument("launch_rope: seq must be at least 1");
  if (!arguments.cos != !arguments.sin)
    throw std::invalid_argument("launch_rope: give both cos and sin, or neither");
  const r::Tensors tensors{.x = in,
                           .k = arguments.k,
                           .out = out,
                           .k_out = arguments.k_out,
                           .cos = arguments.cos,
                           .sin = arguments.sin,
                           .positions = arguments.positions};
  const r::Sizes sizes{.tokens = shape.tokens,
                       .seq = shape.seq,
                       .heads = shape.heads,
                       .heads_k = arguments.heads_k,
                       .dim = shape.dim,
                       .max_seq = arguments.max_seq};
  const r::CallParams p = r::contiguous_params(tensors, sizes, arguments.start_pos, arguments.base);
  return launch_ladder(
      r::kRungs, p, r::Given{sizeof(T), sizeof(W), style}, stream, where,
      Kernels<r::Vectorized, r::Shares<T, W, style, true>::list, T, W>{"vectorized"},
      Kernels<r::Vectorized, r::Shares<T, W, style, false>::list, T, W>{"vectorized"},
      Kernels<r::Naive, r::kPairs<style>, T, W>{"naive"});
}

}  // namespace tensorcraft::kernels
