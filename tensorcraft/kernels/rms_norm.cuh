// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/kernels/launch.cuh"
#include "tensorcraft/ops/rms_norm/01_block.cuh"
#include "tensorcraft/ops/rms_norm/02_vectorized.cuh"
#include "tensorcraft/ops/rms_norm/03_in_registers.cuh"
#include "tensorcraft/ops/rms_norm/06_quantized.cuh"
#include "tensorcraft/ops/rms_norm/07_quantized_in_registers.cuh"
#include "tensorcraft/ops/rms_norm/plan.h"

// Root mean square normalisation of rows. Compiled for each T, type of the weights, and for the
// form with and without a residual: in_registers with weight for aligned rows of the widths of
// kRegisterRows (18 kernels); vectorized for other aligned rows and block for the rest, for every
// choice of what is given (8). Compiled for codes, for each of their types too: the same widths in
// registers (18), and quantized for the rest (2).
namespace tensorcraft::kernels {
namespace detail::rms_norm {

using namespace kernel::rms_norm;

template <class T, class W, class C>
__global__ void __launch_bounds__(C::value.config.threads, C::value.fitting_blocks())
    rms_norm_in_registers(const __grid_constant__ Params p) {
  begin_kernel();
  in_registers<T, W, C::value.config>(p);
}
template <class T, class W, class C>
__global__ void __launch_bounds__(C::value.config.threads, C::value.fitting_blocks())
    rms_norm_vectorized(const __grid_constant__ Params p) {
  begin_kernel();
  vectorized<T, W, C::value.config>(p);
}
template <class T, class W, class C>
__global__ void __launch_bounds__(C::value.config.threads, C::value.fitting_blocks())
    rms_norm_block(const __grid_constant__ Params p) {
  begin_kernel();
  block<T, W, C::value.config>(p);
}

template <class T, class W, class Q, class C>
__global__ void __launch_bounds__(C::value.config.threads, C::value.fitting_blocks())
    rms_norm_quantized(const __grid_constant__ Params p) {
  begin_kernel();
  quantized<T, W, Q, C::value.config>(p);
}
template <class T, class W, class Q, class C>
__global__ void __launch_bounds__(C::value.config.threads, C::value.fitting_blocks())
    rms_norm_quantized_in_registers(const __grid_constant__ Params p) {
  begin_kernel();
  quantized_in_registers<T, W, Q, C::value.config>(p);
}

template <class T, bool has_residual, class Of, class MinBlocks>
constexpr auto register_instances(Of config_of, MinBlocks min_blocks) {
  std::array<Instance<Config>, kRegisterRows.size()> all{};
  for (size_t i = 0; i < all.size(); ++i) {
    Config c = config_of(kRegisterRows[i], 16 / int(sizeof(T)));
    c.has_residual = has_residual;
    c.has_weight = 1;
    all[i] = {c, min_blocks(c)};
  }
  return all;
}

template <class T, class W, bool has_residual>
struct InRegisters {
  static constexpr auto list = register_instances<T, has_residual>(
      in_registers_config,
      [](const Config& c) { return in_registers_min_blocks(c, sizeof(W) > sizeof(T)); });
  template <class C>
  static constexpr auto entry() {
    return &rms_norm_in_registers<T, W, C>;
  }
};
template <class T, class W, class Q, bool has_residual>
struct QuantizedInRegisters {
  static constexpr auto list = register_instances<T, has_residual>(
      quantized_in_registers_config, quantized_in_registers_min_blocks<Config>);
  template <class C>
  static constexpr auto entry() {
    return &rms_norm_quantized_in_registers<T, W, Q, C>;
  }
};

// The general rungs: two sizes of a block for each choice of what is given.
template <class T, class W, bool has_residual, int vector>
struct General {
  static constexpr auto list = [] {
    std::array<Instance<Config>, 4> all{};
    for (int i = 0; i < 4; ++i) {
      const int threads = i % 2 ? 256 : 128;
      all[size_t(i)].config = {.threads = threads,
                               .group = threads,
                               .vector = vector,
                               .has_residual = has_residual,
                               .has_weight = i / 2 % 2};
    }
    return all;
  }();
  template <class C>
  static constexpr auto entry() {
    if constexpr (vector > 1)
      return &rms_norm_vectorized<T, W, C>;
    else
      return &rms_norm_block<T, W, C>;
  }
};

// Two sizes of a block; what is given is asked at run time.
template <class T, class W, class Q>
struct Quantized {
  static constexpr std::array list{Instance<Config>{{.threads = 128, .group = 128}},
                                   Instance<Config>{}};
  template <class C>
  static constexpr auto entry() {
    return &rms_norm_quantized<T, W, Q, C>;
  }
};

inline Config given(const Tensors& t) {
  return {.has_residual = t.residual != nullptr, .has_weight = t.weight != nullptr};
}

template <class T, class W, class Q, bool has_residual>
std::string_view launch_codes(const Tensors& t, const CodeScale& scale, int64_t rows, int64_t cols,
                              float eps, cudaStream_t stream, DebugInfo where) {
  constexpr const char* kLauncher =
      has_residual ? "launch_rms_norm_residual_quantized" : "launch_rms_norm_quantized";
  validate_code_scale(kLauncher, scale);
  if (!validate_norm(kLauncher, t.x, t.out, rows, cols, eps)) return {};
  if (has_residual) validate_pointer(kLauncher, "residual", t.residual);
  Params p = contiguous_params(t, rows, cols, eps);
  p.scale = scale.scale;
  p.scales = scale.scales;
  if (in_registers_problem(p).empty() &&
      launch_listed<QuantizedInRegisters<T, W, Q, has_residual>>(
          quantized_in_registers_launch(p, given(t), int(sizeof(T))), p, stream, where))
    return "in_registers";
  return launch_or_fail<Quantized<T, W, Q>>("block", block_launch(p, Config{}), p, stream, where);
}

template <class T, class W, bool has_residual>
std::string_view launch_rows(const Tensors& t, int64_t rows, int64_t cols, float eps,
                             cudaStream_t stream, DebugInfo where) {
  constexpr const char* kLauncher = has_residual ? "launch_rms_norm_residual" : "launch_rms_norm";
  if (!validate_norm(kLauncher, t.x, t.out, rows, cols, eps)) return {};
  if (has_residual) validate_pointer(kLauncher, "residual", t.residual);
  const Params p = contiguous_params(t, rows, cols, eps);
  const Config given = rms_norm::given(t);
  constexpr int kBytes = int(sizeof(T));
  if (in_registers_problem(p).empty() &&
      launch_listed<InRegisters<T, W, has_residual>>(
          in_registers_launch(p, given, kBytes, int(sizeof(W))), p, stream, where))
    return "in_registers";
  if (vectorized_problem(p, kBytes).empty())
    return launch_or_fail<General<T, W, has_residual, 16 / kBytes>>(
        "vectorized", vectorized_launch(p, given, kBytes), p, stream, where);
  return launch_or_fail<General<T, W, has_residual, 1>>("block", block_launch(p, given), p, stream,
                                                        where);
}

}  // namespace detail::rms_norm

// out = in / sqrt(mean(in^2) + eps) * weight for each of `rows` rows of `cols` elements, one after
// another; weight [cols] may be null. T: float, f16 or bf16; W: T or float; computed in float. out
// may be in. Returns the name of the variant, empty if there is nothing to do. Errors and stream as
// launch_softmax.
template <class T, class W>
std::string_view launch_rms_norm(const T* in, const W* weight, T* out, int64_t rows, int64_t cols,
                                 float eps = 1e-6f, cudaStream_t stream = nullptr,
                                 DebugInfo where = {}) {
  return detail::rms_norm::launch_rows<T, W, false>({.x = in, .weight = weight, .out = out}, rows,
                                                    cols, eps, stream, where);
}

// The same of in + residual, which residual_out receives if it is not null; out and residual_out
// may be in or residual.
template <class T, class W>
std::string_view launch_rms_norm_residual(const T* in, const T* residual, const W* weight, T* out,
                                          T* residual_out, int64_t rows, int64_t cols,
                                          float eps = 1e-6f, cudaStream_t stream = nullptr,
                                          DebugInfo where = {}) {
  return detail::rms_norm::launch_rows<T, W, true>(
      {.x = in, .residual = residual, .weight = weight, .out = out, .residual_out = residual_out},
      rows, cols, eps, stream, where);
}

// The same result as codes of 8 bits, divided by one scale or by each row's own: its largest
// magnitude over the largest code, stored in scale.scales; 1 if that is 0. Rounded to nearest even,
// saturated; a NaN as int8_t is 0. Q: e4m3, e5m2 or int8_t. The variants are in_registers and
// block.
//   launch_rms_norm_quantized(in, weight, codes, {.scales = scales}, rows, cols);
template <class T, class W, class Q>
std::string_view launch_rms_norm_quantized(const T* in, const W* weight, Q* out,
                                           const CodeScale& scale, int64_t rows, int64_t cols,
                                           float eps = 1e-6f, cudaStream_t stream = nullptr,
                                           DebugInfo where = {}) {
  return detail::rms_norm::launch_codes<T, W, Q, false>({.x = in, .weight = weight, .out = out},
                                                        scale, rows, cols, eps, stream, where);
}

// The codes of in + residual, which residual_out receives if it is not null and which may be in or
// residual.
template <class T, class W, class Q>
std::string_view launch_rms_norm_residual_quantized(const T* in, const T* residual, const W* weight,
                                                    Q* out, T* residual_out, const CodeScale& scale,
                                                    int64_t rows, int64_t cols, float eps = 1e-6f,
                                                    cudaStream_t stream = nullptr,
                                                    DebugInfo where = {}) {
  return detail::rms_norm::launch_codes<T, W, Q, true>(
      {.x = in, .residual = residual, .weight = weight, .out = out, .residual_out = residual_out},
      scale, rows, cols, eps, stream, where);
}

}  // namespace tensorcraft::kernels
