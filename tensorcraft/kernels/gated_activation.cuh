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

template <class T, class C>
__global__ void __launch_bounds__(C::value.config.threads)
    gated_activation_vectorized(const __grid_constant__ Params p) {
  begin_kernel();
  vectorized<T, C::value.config>(p);
}
template <class T, class C>
__global__ void __launch_bounds__(C::value.config.threads)
    gated_activation_naive(const __grid_constant__ Params p) {
  begin_kernel();
  naive<T, C::value.config>(p);
}

template <class T, Gate gate>
struct Vectorized {
  static constexpr auto list = [] {
    std::array<Instance<Config>, 12> all{};
    for (int i = 0; i < 12; ++i)
      all[size_t(i)].config = {.gate = gate, .group = 8 << i / 2, .vectors = 1 + i % 2};
    return all;
  }();
  template <class C>
  static constexpr auto entry() {
    return &gated_activation_vectorized<T, C>;
  }
};
template <class T, Gate gate>
struct Naive {
  static constexpr std::array list{Instance<Config>{{.gate = gate}}};
  template <class C>
  static constexpr auto entry() {
    return &gated_activation_naive<T, C>;
  }
};

template <Gate gate, class T>
std::string_view launch(const char* launcher, const T* in, T* out, int64_t rows, int64_t cols,
                        cudaStream_t stream, DebugInfo where) {
  validate_size(launcher, "rows", rows);
  validate_size(launcher, "cols", cols);
  if (rows == 0 || cols == 0) return {};
  validate_pointer(launcher, "in", in);
  validate_pointer(launcher, "out", out);
  Params p = contiguous_params(in, out, rows, cols);
  if (vectorized_problem(p, sizeof(T)).empty()) {
    const int sms = device_attribute(cudaDevAttrMultiProcessorCount, where);
    const Launch plan = vectorized_launch(p, gate, sizeof(T), sms);
    if (launch_listed<Vectorized<T, gate>>(plan, p, stream, where)) return "vectorized";
  }
  return launch_or_fail<Naive<T, gate>>("naive", naive_launch(p, gate), p, stream, where);
}

}  // namespace detail::gated_activation

// out[r, c] = silu(in[r, c]) * in[r, cols + c] for `rows` rows of 2 * `cols` elements of in and
// `cols` of out, one after another. T: float, f16 or bf16; computed in float. Returns the name of
// the variant, empty if there is nothing to do. Errors and stream as launch_softmax.
template <class T>
std::string_view launch_silu_and_mul(const T* in, T* out, int64_t rows, int64_t cols,
                                     cudaStream_t stream = nullptr, DebugInfo where = {}) {
  return detail::gated_activation::launch<kernel::gated_activation::Gate::silu>(
      "launch_silu_and_mul", in, out, rows, cols, stream, where);
}

// The same with gelu, exact or by its tanh form.
template <class T>
std::string_view launch_gelu_and_mul(const T* in, T* out, int64_t rows, int64_t cols,
                                     cudaStream_t stream = nullptr, DebugInfo where = {}) {
  return detail::gated_activation::launch<kernel::gated_activation::Gate::gelu>(
      "launch_gelu_and_mul", in, out, rows, cols, stream, where);
}
template <class T>
std::string_view launch_gelu_tanh_and_mul(const T* in, T* out, int64_t rows, int64_t cols,
                                          cudaStream_t stream = nullptr, DebugInfo where = {}) {
  return detail::gated_activation::launch<kernel::gated_activation::Gate::gelu_tanh>(
      "launch_gelu_tanh_and_mul", in, out, rows, cols, stream, where);
}

}  // namespace tensorcraft::kernels
