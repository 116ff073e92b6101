// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/kernels/launch.cuh"
#include "tensorcraft/ops/gated_activation/00_naive.cuh"
#include "tensorcraft/ops/gated_activation/01_vectorized.cuh"
#include "tensorcraft/ops/gated_activation/plan.h"

// Gated activations of rows. Compiled for each T and gate: vectorized for aligned rows of more than
// 4 accesses (12 kernels), and naive for the rest.
namespace tensorcraft::kernels {
namespace detail::gated_activation {

using namespace kernel::gated_activation;

template <Activation gate>
inline constexpr auto kVectorized = [] {
  std::array<Instance<Config>, 12> all{};
  for (int i = 0; i < 12; ++i)
    all[size_t(i)].config = {.gate = gate, .group = 8 << i / 2, .vectors = 1 + i % 2};
  return all;
}();
template <Activation gate>
inline constexpr std::array kNaive{Instance<Config>{{.gate = gate}}};

template <Activation gate, class T>
std::string_view launch(const char* launcher, const T* in, T* out, int64_t rows, int64_t cols,
                        cudaStream_t stream, DebugInfo where) {
  validate_sizes(launcher, {{"rows", rows}, {"cols", cols}});
  if (rows == 0 || cols == 0) return {};
  validate_arrays(launcher, {{"in", in}, {"out", out}});
  return launch_ladder(kRungs, contiguous_params(in, out, rows, cols), Given{gate, sizeof(T)},
                       stream, where, Kernels<Vectorized, kVectorized<gate>, T>{"vectorized"},
                       Kernels<Naive, kNaive<gate>, T>{"naive"});
}

}  // namespace detail::gated_activation

// out[r, c] = silu(in[r, c]) * in[r, cols + c] for `rows` rows of 2 * `cols` elements of in and
// `cols` of out, one after another. T: float, f16 or bf16; computed in float. Returns the name of
// the variant, empty if there is nothing to do. Errors and stream as launch_softmax.
template <class T>
std::string_view launch_silu_and_mul(const T* in, T* out, int64_t rows, int64_t cols,
                                     cudaStream_t stream = nullptr, DebugInfo where = {}) {
  return detail::gated_activation::launch<Activation::silu>("launch_silu_and_mul", in, out, rows,
                                                            cols, stream, where);
}

// The same with gelu, exact or by its tanh form.
template <class T>
std::string_view launch_gelu_and_mul(const T* in, T* out, int64_t rows, int64_t cols,
                                     cudaStream_t stream = nullptr, DebugInfo where = {}) {
  return detail::gated_activation::launch<Activation::gelu>("launch_gelu_and_mul", in, out, rows,
                                                            cols, stream, where);
}
template <class T>
std::string_view launch_gelu_tanh_and_mul(const T* in, T* out, int64_t rows, int64_t cols,
                                          cudaStream_t stream = nullptr, DebugInfo where = {}) {
  return detail::gated_activation::launch<Activation::gelu_tanh>("launch_gelu_tanh_and_mul", in,
                                                                 out, rows, cols, stream, where);
}

}  // namespace tensorcraft::kernels
