// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/op/value.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>
#include <utility>

namespace tensorcraft {

// Arguments of batch_norm() besides the arrays that it needs. Vectors are [channels], contiguous,
// and those given have one dtype, that of x or float32.
struct BatchNormOptions {
  std::optional<TensorView> running_mean = {}, running_var = {};  // inference needs both
  std::optional<TensorView> weight = {};     // multiplies the normalised values
  std::optional<TensorView> bias = {};       // added to them
  bool training = false;                     // statistics of the batch, not the running ones
  float momentum = 0.1f;                     // share of the batch in new running statistics
  float eps = 1e-5f;                         // added to the variance
  Activation activation = Activation::none;  // applied last
  // Further outputs of training, each written if given. mean, rstd: float32 [channels],
  // contiguous. running_mean_out, running_var_out: like running_mean and running_var, which they
  // may be.
  std::optional<TensorView> mean = {}, rstd = {}, running_mean_out = {}, running_var_out = {};
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// All but out are of training; the last two are there if the running statistics were given.
struct BatchNormResult {
  Tensor out, mean, rstd, running_mean_out, running_var_out;  // as in BatchNormOptions
  // Converts to out, so the result can be passed as a tensor.
  operator TensorView() const { return out; }  // NOLINT
  // Hands it over: Tensor y = ... takes the memory.
  operator Tensor() && { return std::move(out); }  // NOLINT
};

// out = activation((x - mean) / sqrt(variance + eps) * weight + bias), each channel, axis 1 of x,
// on its own. x: [batch, channels, ...] of any strides; float32, float16 or bfloat16; computed in
// float32. Inference: mean and variance are the running ones; each channel's parameters become one
// factor and one addend first. Training: mean and variance over all axes but 1, which needs 2
// values a channel; running_out = (1 - momentum) running + momentum of the batch, the variance with
// count - 1. A NaN in a channel is then in all of it. out: shape and dtype of x; may be x itself.
void batch_norm(const TensorView& out, const TensorView& x, const BatchNormOptions& options = {});
BatchNormResult batch_norm(const TensorView& x, const BatchNormOptions& options = {});

// Arguments of batch_norm_backward() besides the arrays that it needs. Vectors are [channels],
// contiguous.
struct BatchNormBackwardOptions {
  std::optional<TensorView> weight = {};           // as in the forward call; none: 1
  std::optional<TensorView> mean = {}, rstd = {};  // float32, as the forward call returned; needed
  // Further outputs, each written if given: dtype of weight, float32 without one.
  std::optional<TensorView> grad_weight = {}, grad_bias = {};
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// As in BatchNormBackwardOptions.
struct BatchNormBackwardResult {
  Tensor grad_input;   // shape and dtype of x
  Tensor grad_weight;  // [channels]
  Tensor grad_bias;    // [channels]
  // Converts to grad_input, so the result can be passed as a tensor.
  operator TensorView() const { return grad_input; }  // NOLINT
  // Hands it over: Tensor y = ... takes the memory.
  operator Tensor() && { return std::move(grad_input); }  // NOLINT
};

// The gradients of batch_norm() in training, without an activation, from the gradient of its
// result. With xhat = (x - mean) rstd and means over all axes but 1: grad_bias = sum(grad),
// grad_weight = sum(grad xhat), grad_input = weight rstd (grad - mean(grad) - xhat mean(grad
// xhat)). x: as for batch_norm(); grad, grad_input: shape and dtype of x, any strides; grad_input
// may be grad or x. Sums in float32.
void batch_norm_backward(const TensorView& grad_input, const TensorView& grad, const TensorView& x,
                         const BatchNormBackwardOptions& options);
BatchNormBackwardResult batch_norm_backward(const TensorView& grad, const TensorView& x,
                                            const BatchNormBackwardOptions& options);

}  // namespace tensorcraft
