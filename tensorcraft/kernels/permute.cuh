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

template <class T, class C>
__global__ void __launch_bounds__(C::value.config.threads)
    permute_tiled(const __grid_constant__ Params p) {
  begin_kernel();
  tiled<T, C::value.config>(p);
}
template <class T, class C>
__global__ void __launch_bounds__(C::value.config.threads)
    permute_naive(const __grid_constant__ Params p) {
  begin_kernel();
  naive<T, C::value.config>(p);
}

template <class T>
struct Tiled {
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
  template <class C>
  static constexpr auto entry() {
    return &permute_tiled<T, C>;
  }
};
template <class T>
struct Naive {
  static constexpr std::array list{Instance<Config>{}, Instance<Config>{{.wide = 1}}};
  template <class C>
  static constexpr auto entry() {
    return &permute_naive<T, C>;
  }
};

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
  validate_size("launch_transpose", "rows", rows);
  validate_size("launch_transpose", "cols", cols);
  validate_size("launch_transpose", "count", count);
  if (rows == 0 || cols == 0 || count == 0) return {};
  validate_pointer("launch_transpose", "in", in);
  validate_pointer("launch_transpose", "out", out);
  const p::Move m = p::transpose_move(in, out, sizeof(T), count, rows, cols);
  if (p::tiled_problem(m).empty() && p::tiled_waste(m).empty()) {
    const int num_sms = device_attribute(cudaDevAttrMultiProcessorCount, where);
    return launch_or_fail<p::Tiled<Word>>("tiled", p::tiled_launch(m, num_sms),
                                          p::tiled_params(m, num_sms), stream, where);
  }
  return launch_or_fail<p::Naive<Word>>("naive", p::naive_launch(m), p::naive_params(m), stream,
                                        where);
}

}  // namespace tensorcraft::kernels
