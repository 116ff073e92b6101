// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/kernels/launch.cuh"
#include "tensorcraft/ops/norm/01_block.cuh"
#include "tensorcraft/ops/norm/02_vectorized.cuh"
#include "tensorcraft/ops/norm/03_in_registers.cuh"
#include "tensorcraft/ops/norm/06_quantized.cuh"
#include "tensorcraft/ops/norm/07_quantized_in_registers.cuh"
#include "tensorcraft/ops/norm/plan.h"

// Layer and root mean square normalisation of rows. Compiled for each T, type of the weights and
// activation, and for the form with and without a residual: in_registers with weight (and bias) for
// aligned rows of the widths of kRegisterRows (18 kernels); vectorized for other aligned rows and
// block for the rest, for every choice of what is given (16 of layer, 8 of rms). Compiled for
// codes, for each of their types too: the same widths in registers (18), and quantized for the rest
// (2, which serve every activation).
namespace tensorcraft::kernels {
namespace detail::norm {

using namespace kernel::norm;

// A Config as a launcher has it: all tensors that its form may have, but a residual if asked.
template <Form form, bool has_residual, Activation activation = Activation::none>
inline constexpr Config kFused{.activation = activation,
                               .has_residual = has_residual,
                               .has_weight = 1,
                               .has_bias = form == Form::layer,
                               .form = form};

// The widths in registers.
template <class T, class W, Config fused, bool is_quantized = false>
struct Widths {
  static constexpr auto list = [] {
    std::array<Instance<Config>, kRegisterRows.size()> all{};
    const Given given{fused, int(sizeof(T)), int(sizeof(W)), is_quantized};
    for (size_t i = 0; i < all.size(); ++i) {
      Config c = in_registers_config(given, kRegisterRows[i], 16 / int(sizeof(T)));
      c = with_given(c, fused);
      all[i] = {c, in_registers_min_blocks(given, c)};
    }
    return all;
  }();
};

// The general rungs: two sizes of a block for each choice of what is given.
template <Config fused, int vector>
struct General {
  static constexpr auto list = [] {
    std::array<Instance<Config>, fused.form == Form::layer ? 8 : 4> all{};
    for (int i = 0; i < int(all.size()); ++i) {
      const int threads = i % 2 ? 256 : 128;
      Config c{.threads = threads, .group = threads, .vector = vector};
      c = with_given(c, fused);
      c.has_weight = i / 2 % 2;
      c.has_bias = i / 4;
      all[size_t(i)].config = c;
    }
    return all;
  }();
};

// Two sizes of a block; what is given and the activation are asked at run time.
template <Form form>
inline constexpr std::array kCodes{Instance<Config>{{.threads = 128, .group = 128, .form = form}},
                                   Instance<Config>{{.form = form}}};

template <class T, class W>
Given given_of(const Tensors& t, Config config, bool is_quantized = false) {
  config.has_weight = t.weight != nullptr;
  config.has_bias = t.bias != nullptr;
  return {config, int(sizeof(T)), int(sizeof(W)), is_quantized};
}

// False if there is nothing to do; `name` is the launcher's own.
template <Config fused>
bool validate(const char* name, const Tensors& t, int64_t rows, int64_t cols, float eps) {
  if (!validate_norm(name, t.x, t.out, rows, cols, eps)) return false;
  if (fused.has_residual) validate_pointer(name, "residual", t.residual);
  return true;
}

template <Config fused, class T, class W>
std::string_view launch_rows(const char* name, const Tensors& t, int64_t rows, int64_t cols,
                             float eps, cudaStream_t stream, DebugInfo where) {
  if (!validate<fused>(name, t, rows, cols, eps)) return {};
  return launch_ladder(
      kRungs, contiguous_params(t, rows, cols, eps), given_of<T, W>(t, fused), stream, where,
      Kernels<InRegisters, Widths<T, W, fused>::list, T, W>{"in_registers"},
      Kernels<Vectorized, General<fused, 16 / int(sizeof(T))>::list, T, W>{"vectorized"},
      Kernels<Block, General<fused, 1>::list, T, W>{"block"});
}

template <Config fused, class T, class W, class Q>
std::string_view launch_codes(const char* name, const Tensors& t, const CodeScale& scale,
                              int64_t rows, int64_t cols, float eps, cudaStream_t stream,
                              DebugInfo where) {
  validate_code_scale(name, scale);
  if (!validate<fused>(name, t, rows, cols, eps)) return {};
  CallParams p = contiguous_params(t, rows, cols, eps);
  p.scale = scale.scale;
  p.activation = fused.activation;
  p.scales = scale.scales;
  return launch_ladder(
      kRungs, p, given_of<T, W>(t, fused, true), stream, where,
      Kernels<QuantizedInRegisters, Widths<T, W, fused, true>::list, T, W, Q>{"in_registers"},
      Kernels<Quantized, kCodes<fused.form>, T, W, Q>{"block"});
}

}  // namespace detail::norm

// out = activation((in - mean) / sqrt(variance + eps) * weight + bias) for each of `rows` rows of
// `cols` elements, one after another; weight and bias [cols], mean and rstd [rows] may each be
// null. T: float, f16 or bf16; W: T or float; computed in float. out may be in. Returns the name of
// the variant, empty if there is nothing to do. Errors and stream as launch_softmax.
template <Activation activation = Activation::none, class T, class W>
std::string_view launch_layer_norm(const T* in, const W* weight, const W* bias, T* out,
                                   int64_t rows, int64_t cols, float eps = 1e-5f,
                                   float* mean = nullptr, float* rstd = nullptr,
                                   cudaStream_t stream = nullptr, DebugInfo where = {}) {
  namespace n = detail::norm;
  return n::launch_rows<n::kFused<n::Form::layer, false, activation>, T, W>(
      "launch_layer_norm",
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
  namespace n = detail::norm;
  return n::launch_rows<n::kFused<n::Form::layer, true, activation>, T, W>(
      "launch_layer_norm_residual",
      {.x = in,
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
  namespace n = detail::norm;
  return n::launch_codes<n::kFused<n::Form::layer, false, activation>, T, W, Q>(
      "launch_layer_norm_quantized",
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
  namespace n = detail::norm;
  return n::launch_codes<n::kFused<n::Form::layer, true, activation>, T, W, Q>(
      "launch_layer_norm_residual_quantized",
      {.x = in,
       .residual = residual,
       .weight = weight,
       .bias = bias,
       .out = out,
       .residual_out = residual_out},
      scale, rows, cols, eps, stream, where);
}

// out = in / sqrt(mean(in^2) + eps) * weight for each of `rows` rows of `cols` elements, one after
// another; weight [cols] may be null. T: float, f16 or bf16; W: T or float; computed in float. out
// may be in. Returns the name of the variant, empty if there is nothing to do. Errors and stream as
// launch_softmax.
template <class T, class W>
std::string_view launch_rms_norm(const T* in, const W* weight, T* out, int64_t rows, int64_t cols,
                                 float eps = 1e-6f, cudaStream_t stream = nullptr,
                                 DebugInfo where = {}) {
  namespace n = detail::norm;
  return n::launch_rows<n::kFused<n::Form::rms, false>, T, W>(
      "launch_rms_norm", {.x = in, .weight = weight, .out = out}, rows, cols, eps, stream, where);
}

// The same of in + residual, which residual_out receives if it is not null; out and residual_out
// may be in or residual.
template <class T, class W>
std::string_view launch_rms_norm_residual(const T* in, const T* residual, const W* weight, T* out,
                                          T* residual_out, int64_t rows, int64_t cols,
                                          float eps = 1e-6f, cudaStream_t stream = nullptr,
                                          DebugInfo where = {}) {
  namespace n = detail::norm;
  return n::launch_rows<n::kFused<n::Form::rms, true>, T, W>(
      "launch_rms_norm_residual",
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
  namespace n = detail::norm;
  return n::launch_codes<n::kFused<n::Form::rms, false>, T, W, Q>(
      "launch_rms_norm_quantized", {.x = in, .weight = weight, .out = out}, scale, rows, cols, eps,
      stream, where);
}

// The codes of in + residual, which residual_out receives if it is not null and which may be in or
// residual.
template <class T, class W, class Q>
std::string_view launch_rms_norm_residual_quantized(const T* in, const T* residual, const W* weight,
                                                    Q* out, T* residual_out, const CodeScale& scale,
                                                    int64_t rows, int64_t cols, float eps = 1e-6f,
                                                    cudaStream_t stream = nullptr,
                                                    DebugInfo where = {}) {
  namespace n = detail::norm;
  return n::launch_codes<n::kFused<n::Form::rms, true>, T, W, Q>(
      "launch_rms_norm_residual_quantized",
      {.x = in, .residual = residual, .weight = weight, .out = out, .residual_out = residual_out},
      scale, rows, cols, eps, stream, where);
}

}  // namespace tensorcraft::kernels
