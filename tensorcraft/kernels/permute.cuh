// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/kernels/launch.cuh"
#include "tensorcraft/ops/permute/00_naive.cuh"
#include "tensorcraft/ops/permute/02_tiled.cuh"
#include "tensorcraft/ops/permute/plan.h"

// Matrices to their transposes. Compiled for each size of an element: tiled, both sides by units or
// elements (4 kernels, 8 for 4 bytes), and naive, which takes what has too few rows or columns.
namespace tensorcraft::kernels {
namespace detail::permute {

using namespace kernel::permute;

template <class T>
struct Tiles {
  static constexpr int unit = int(16 / sizeof(T)), large = sizeof(T) == 8 ? 32 : 128 / sizeof(T),
                       tile = sizeof(T) == 4 ? 64 : large;
  static constexpr std::array list{
      Instance<Config>{{.vector_in = unit, .vector_out = unit, .tile = tile}},
      Instance<Config>{{.vector_in = unit, .tile = tile}},
      Instance<Config>{{.vector_out = unit, .tile = tile}},
      Instance<Config>{{.tile = tile}},
      Instance<Config>{{.vector_in = unit, .vector_out = unit, .tile = large}},
      Instance<Config>{{.vector_in = unit, .tile = large}},
      Instance<Config>{{.vector_out = unit, .tile = large}},
      Instance<Config>{{.tile = large}}};
};
inline constexpr std::array kElements{Instance<Config>{}, Instance<Config>{{.wide = 1}}};

}  // namespace detail::permute

// out[b, j, i] = in[b, i, j] for `count` dense, row-major matrices of rows x cols; out is no part
// of in. T: any type of 1, 2, 4 or 8 bytes, moved as bits. Returns the name of the variant, empty
// if there is nothing to do. Errors and stream as launch_softmax.
template <class T>
std::string_view launch_transpose(const T* in, T* out, int64_t rows, int64_t cols,
                                  int64_t count = 1, cudaStream_t stream = nullptr,
                                  DebugInfo where = {}) {
  namespace p = detail::permute;
  using Word = detail::Bits<sizeof(T)>;
  validate_sizes("launch_transpose", {{"rows", rows}, {"cols", cols}, {"count", count}});
  if (rows == 0 || cols == 0 || count == 0) return {};
  validate_arrays("launch_transpose", {{"in", in}, {"out", out}});
  return launch_ladder(p::kRungs, p::contiguous_params(in, out, count, rows, cols),
                       p::Given{sizeof(T)}, stream, where,
                       Kernels<p::Tiled, p::Tiles<Word>::list, Word>{"tiled"},
                       Kernels<p::Naive, p::kElements, Word>{"naive"});
}

}  // namespace tensorcraft::kernels
