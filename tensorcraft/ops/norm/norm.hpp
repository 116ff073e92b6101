// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/op/value.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>
#include <utility>

namespace tensorcraft {

// Arguments of layer_norm() besides the arrays that it needs.
struct LayerNormOptions {
  std::optional<TensorView> weight = {}, bias = {};  // [cols], contiguous; dtype of x or float32
  float eps = 1e-5f;                                 // added to the variance
  std::optional<TensorView> residual = {};           // added to x first; shape and dtype of x
  Activation activation = Activation::none;          // applied last
  bool return_stats = false;  // the allocating form computes mean and rstd too
  // float8_e4m3fn, float8_e5m2 or int8: out holds codes, with one `scale` or one of each row's own.
  std::optional<DType> out_dtype = {};
  std::optional<float> scale = {};  // a code is the result / scale
  bool per_token = false;           // a row's scale: its largest magnitude / the largest code
  // Further outputs, each written if it is given. mean, rstd and, if per_token, scales: float32,
  // shape of x without its last axis, contiguous. residual_out: x + residual, shape and dtype of x.
  std::optional<TensorView> mean = {}, rstd = {}, residual_out = {}, scales = {};
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// Tensors that were not asked for are empty.
struct LayerNormResult {
  Tensor out, mean, rstd, residual_out, scales;  // as in LayerNormOptions
  // Converts to out, so the result can be passed as a tensor.
  operator TensorView() const { return out; }  // NOLINT
  // Hands it over: Tensor y = ... takes the memory.
  operator Tensor() && { return std::move(out); }  // NOLINT
};

// out = activation((h - mean) * rstd * weight + bias) over the last axis, with h = x + residual,
// mean(h), and rstd = 1 / sqrt(mean((h - mean)^2) + eps). x: float32, float16 or bfloat16, any
// strides, rank at least 1. Computed in float32 from the sum before it is rounded to residual_out.
// out: shape and dtype of x; out and residual_out may be exactly x or residual. With out_dtype the
// float32 result is quantised instead: divided by the scale, rounded to nearest even, saturated; a
// NaN is a NaN, or 0 as int8. A scale is 1 where it would be 0.
void layer_norm(const TensorView& out, const TensorView& x, const LayerNormOptions& options = {});
LayerNormResult layer_norm(const TensorView& x, const LayerNormOptions& options = {});

// Arguments of rms_norm() besides the arrays that it needs.
struct RmsNormOptions {
  std::optional<TensorView> weight = {};    // [cols], contiguous; dtype of x or float32
  float eps = 1e-6f;                        // added to the mean of squares
  std::optional<TensorView> residual = {};  // added to x first; shape and dtype of x
  // float8_e4m3fn, float8_e5m2 or int8: out holds codes, with one `scale` or one of each row's own.
  std::optional<DType> out_dtype = {};
  std::optional<float> scale = {};  // a code is the result / scale
  bool per_token = false;           // a row's scale: its largest magnitude / the largest code
  // Further outputs, each written if it is given. residual_out: x + residual, shape and dtype of x.
  // scales: if per_token, float32, shape of x without its last axis, contiguous.
  std::optional<TensorView> residual_out = {}, scales = {};
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// Tensors that were not asked for are empty.
struct RmsNormResult {
  Tensor out, residual_out, scales;  // as in RmsNormOptions
  // Converts to out, so the result can be passed as a tensor.
  operator TensorView() const { return out; }  // NOLINT
  // Hands it over: Tensor y = ... takes the memory.
  operator Tensor() && { return std::move(out); }  // NOLINT
};

// out = h / sqrt(mean(h^2) + eps) * weight over the last axis, with h = x + residual. x: float32,
// float16 or bfloat16, any strides, rank at least 1. Computed in float32 from the sum before it is
// rounded to residual_out. out: shape and dtype of x; out and residual_out may be exactly x or
// residual. With out_dtype the float32 result is quantised instead: divided by the scale, rounded
// to nearest even, saturated; a NaN is a NaN, or 0 as int8. A scale is 1 where it would be 0.
void rms_norm(const TensorView& out, const TensorView& x, const RmsNormOptions& options = {});
RmsNormResult rms_norm(const TensorView& x, const RmsNormOptions& options = {});

}  // namespace tensorcraft
