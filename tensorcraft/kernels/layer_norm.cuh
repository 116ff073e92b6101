// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/kernels/launch.cuh"
#include "tensorcraft/ops/layer_norm/01_block.cuh"
#include "tensorcraft/ops/layer_norm/02_vectorized.cuh"
#include "tensorcraft/ops/layer_norm/03_in_registers.cuh"
#include "tensorcraft/ops/layer_norm/06_quantized.cuh"
#include "tensorcraft/ops/layer_norm/07_quantized_in_registers.cuh"
#include "tensorcraft/ops/layer_norm/plan.h"

// Layer normalisation of rows. Compiled for each T, type of the weights and activation, and for the
// form with and without a residual: in_registers with weight and bias for aligned rows of the
// widths of kRegisterRows (18 kernels); vectorized for other aligned rows and block for the rest,
// for every choice of what is given (16). Compiled for codes, for each of their types too: the same
// widths in registers (18), and quantized for the rest (2, which serve every activation).
namespace tensorcraft::kernels {
namespace detail::layer_norm {

using namespace kernel::layer_norm;

template <class T, class W, class C>
__global__ void __launch_bounds__(C::value.config.threads, C::value.fitting_blocks())
    layer_norm_in_registers(const __grid_constant__ Params p) {
  begin_kernel();
  in_registers<T, W, C::value.config>(p);
}
template <class T, class W, class C>
__global__ void __launch_bounds__(C::value.config.threads, C::value.fitting_blocks())
    layer_norm_vectorized(const __grid_constant__ Params p) {
  begin_kernel();
  vectorized<T, W, C::value.config>(p);
}
template <class T, class W, class C>
__global__ void __launch_bounds__(C::value.config.threads, C::value.fitting_blocks())
    layer_norm_block(const __grid_constant__ Params p) {
  begin_kernel();
  block<T, W, C::value.config>(p);
}

template <class T, class W, class Q, class C>
__global__ void __launch_bounds__(C::value.config.threads, C::value.fitting_blocks())
    layer_norm_quantized(const __grid_constant__ Params p) {
  begin_kernel();
  quantized<T, W, Q, C::value.config>(p);
}
template <class T, class W, class Q, class C>
__global__ void __launch_bounds__(C::value.config.threads, C::value.fitting_blocks())
    layer_norm_quantized_in_registers(const __grid_constant__ Params p) {
  begin_kernel();
  quantized_in_registers<T, W, Q, C::value.config>(p);
}

template <class T, Activation activation, bool has_residual, class Of, class MinBlocks>
constexpr auto register_instances(Of config_of, MinBlocks min_blocks) {
  std::array<Instance<Config>, kRegisterRows.size()> all{};
  for (size_t i = 0; i < all.size(); ++i) {
    Config c = config_of(kRegisterRows[i], 16 / int(sizeof(T)));
    c.activation = activation;
    c.has_residual = has_residual;
    c.has_weight = c.has_bias = 1;
    all[i] = {c, min_blocks(c)};
  }
  return all;
}

template <class T, class W, Activation activation, bool has_residual>
struct InRegisters {
  static constexpr auto list = register_instances<T, activation, has_residual>(
      in_registers_config,
      [](const Config& c) { return in_registers_min_blocks(c, sizeof(W) > sizeof(T)); });
  template <class C>
  static constexpr auto entry() {
    return &layer_norm_in_registers<T, W, C>;
  }
};
template <class T, class W, class Q, Activation activation, bool has_residual>
struct QuantizedInRegisters {
  static constexpr auto list = register_instances<T, activation, has_residual>(
      quantized_in_registers_config, quantized_in_registers_min_blocks<Config>);
  template <class C>
  static constexpr auto entry() {
    return &layer_norm_quantized_in_registers<T, W, Q, C>;
  }
};

// The general rungs: two sizes of a block for each choice of what is given.
template <class T, class W, Activation activation, bool has_residual, int vector>
struct General {
  static constexpr auto list = [] {
    std::array<Instance<Config>, 8> all{};
    for (int i = 0; i < 8; ++i) {
      const int threads = i % 2 ? 256 : 128;
      all[size_t(i)].config = {.threads = threads,
                               .group = threads,
                               .vector = vector,
                               .activation = activation,
                               .has_residual = has_residual,
                               .has_weight = i / 2 % 2,
                               .has_bias = i / 4};
    }
    return all;
  }();
  template <class C>
  static constexpr auto entry() {
    if constexpr (vector > 1)
      return &layer_norm_vectorized<T, W, C>;
    else
      return &layer_norm_block<T, W, C>;
  }
};

// Two sizes of a block; what is given and the activation are asked at run time.
template <class T, class W, class Q>
struct Quantized {
  static constexpr std::array list{Instance<Config>{{.threads = 128, .group = 128}},
                                   Instance<Config>{}};
  template <class C>
  static constexpr auto entry() {
    return &layer_norm_quantized<T, W, Q, C>;
  }
};

inline Config given(const Tensors& t, Activation activation) {
  return {.activation = activation,
          .has_residual = t.residual != nullptr,
          .has_weight = t.weight != nullptr,
          .has_bias = t.bias != nullptr};
}

template <class T, class W, class Q, Activation activation, bool has_residual>
std::string_view launch_codes(const Tensors& t, const CodeScale& scale, int64_t rows, int64_t cols,
                              float eps, cudaStream_t stream, DebugInfo where) {
  constexpr const char* kLauncher =
      has_residual ? "launch_layer_norm_residual_quantized" : "launch_layer_norm_quantized";
  validate_code_scale(kLauncher, scale);
  if (!validate_norm(kLauncher, t.x, t.out, rows, cols, eps)) return {};
  if (has_residual) validate_pointer(kLauncher, "residual", t.residual);
  Params p = contiguous_params(t, rows, cols, eps);
  p.scale = scale.scale;
  p.activation = activation;
  p.scales = scale.scales;
  if (in_registers_problem(p).empty() &&
      launch_listed<QuantizedInRegisters<T, W, Q, activation, has_residual>>(
          quantized_in_registers_launch(p, given(t, activation), int(sizeof(T))), p, stream, where))
    return "in_registers";
  return launch_or_fail<Quantized<T, W, Q>>("block", block_launch(p, Config{}), p, stream, where);
}

template <class T, class W, Activation activation, bool has_residual>
std::string_view launch_rows(const Tensors& t, int64_t rows, int64_t cols, float eps,
                             cudaStream_t stream, DebugInfo where) {
  constexpr const char* kLauncher =
      has_residual ? "launch_layer_norm_residual" : "launch_layer_norm";
  if (!validate_norm(kLauncher, t.x, t.out, rows, cols, eps)) return {};
  if (has_residual) validate_pointer(kLauncher, "residual", t.residual);
  const Params p = contiguous_params(t, rows, cols, eps);
  const Config given = layer_norm::given(t, activation);
  constexpr int kBytes = int(sizeof(T));
  if (in_registers_problem(p).empty() &&
      launch_listed<InRegisters<T, W, activation, has_residual>>(
          in_registers_launch(p, given, kBytes, int(sizeof(W))), p, stream, where))
    return "in_registers";
  if (vectorized_problem(p, kBytes).empty())
    return launch_or_fail<General<T, W, activation, has_residual, 16 / kBytes>>(
        "vectorized", vectorized_launch(p, given, kBytes), p, stream, where);
  return launch_or_fail<General<T, W, activation, has_residual, 1>>("block", block_launch(p, given),
                                                                    p, stream, where);
}

}  // namespace detail::layer_norm

// out = activation((in - mean) / sqrt(variance + eps) * weight + bias) for each of `rows` rows of
// `cols` elements, one after another; weight and bias [cols], mean and rstd [rows] may each be
// null. T: float, f16 or bf16; W: T or float; computed in float. out may be in. Returns the name of
// the variant, empty if there is nothing to do. Errors and stream as launch_softmax.
template <Activation activation = Activation::none, class T, class W>
std::string_view launch_layer_norm(const T* in, const W* weight, const W* bias, T* out,
                                   int64_t rows, int64_t cols, float eps = 1e-5f,
                                   float* mean = nullptr, float* rstd = nullptr,
                                   cudaStream_t stream = nullptr, DebugInfo where = {}) {
  return detail::layer_norm::launch_rows<T, W, activation, false>(
      {.x = in, .weight = weight, .bias = bias, .out = out, .mean = mean, .rstd = rstd}, rows, cols,
      eps, stream, where);
}

// The same of in + residual, which residual_out receives if it is not null; out and residual_out
// may be in or residual.
template <Activation activation = Activation::none, class T, class W>
std::string_view launch_layer_norm_residual(const T* in, const T* residual, const W* weight,
                                            const W* bias, T* out, T* residual_out, int64_t rows,
                                            int64_t cols, float eps = 1e-5f,
                                            cudaStream_t stream = nullptr, DebugInfo where = {}) {
  return detail::layer_norm::launch_rows<T, W, activation, true>({.x = in,
                                                                  .residual = residual,
                                                                  .weight = weight,
                                                                  .bias = bias,
                                                                  .out = out,
                                                                  .residual_out = residual_out},
                                                                 rows, cols, eps, stream, where);
}

// The same result as codes of 8 bits, divided by one scale or by each row's own: its largest
// magnitude over the largest code, stored in scale.scales; 1 if that is 0. Rounded to nearest even,
// saturated; a NaN as int8_t is 0. Q: e4m3, e5m2 or int8_t. The variants are in_registers and
// block.
//   launch_layer_norm_quantized(in, weight, bias, codes, {.scales = scales}, rows, cols);
template <Activation activation = Activation::none, class T, class W, class Q>
std::string_view launch_layer_norm_quantized(const T* in, const W* weight, const W* bias, Q* out,
                                             const CodeScale& scale, int64_t rows, int64_t cols,
                                             float eps = 1e-5f, float* mean = nullptr,
                                             float* rstd = nullptr, cudaStream_t stream = nullptr,
                                             DebugInfo where = {}) {
  return detail::layer_norm::launch_codes<T, W, Q, activation, false>(
      {.x = in, .weight = weight, .bias = bias, .out = out, .mean = mean, .rstd = rstd}, scale,
      rows, cols, eps, stream, where);
}

// The codes of in + residual, which residual_out receives if it is not null and which may be in or
// residual.
template <Activation activation = Activation::none, class T, class W, class Q>
std::string_view launch_layer_norm_residual_quantized(const T* in, const T* residual,
                                                      const W* weight, const W* bias, Q* out,
                                                      T* residual_out, const CodeScale& scale,
                                                      int64_t rows, int64_t cols, float eps = 1e-5f,
                                                      cudaStream_t stream = nullptr,
                                                      DebugInfo where = {}) {
  return detail::layer_norm::launch_codes<T, W, Q, activation, true>({.x = in,
                                                                      .residual = residual,
                                                                      .weight = weight,
                                                                      .bias = bias,
                                                                      .out = out,
                                                                      .residual_out = residual_out},
                                                                     scale, rows, cols, eps, stream,
                                                                     where);
}

}  // namespace tensorcraft::kernels
