// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/op/checks/window.hpp"
#include "tensorcraft/ops/depthwise_separable_conv2d/depthwise_separable_conv2d.hpp"

#include <optional>

namespace tensorcraft::kernel::depthwise_separable_conv2d {

// A checked call. Images are [batch, rows, columns, channels], depthwise is [channels, rows,
// columns, 1] and pointwise [filters, 1, 1, channels], whatever the layout of the call.
struct Problem {
  TensorView out, x, depthwise, pointwise;
  std::optional<TensorView> depthwise_bias, bias, residual;
  op::Window window;
  ConvActivation depthwise_activation, activation;

  int64_t channels() const { return x.shape(3); }
  int64_t filters() const { return pointwise.shape(0); }
  int64_t taps() const { return window.rows.taps * window.columns.taps; }
};

// Host variants.
void cpu(const Problem& q);
void reference(const Problem& q);

}  // namespace tensorcraft::kernel::depthwise_separable_conv2d
