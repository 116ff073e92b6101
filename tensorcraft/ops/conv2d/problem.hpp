// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/op/checks/window.hpp"
#include "tensorcraft/ops/conv2d/conv2d.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft::kernel::conv2d {

// A checked call. Images are [batch, rows, columns, channels] and filters [filters, rows, columns,
// channels], whatever the layout of the call.
struct Problem {
  TensorView out, x, w;
  std::optional<TensorView> bias, residual;
  op::Window window;
  int64_t groups;
  ConvActivation activation;
  bool allow_tf32 = false;

  int64_t channels() const { return w.shape(3); }          // of a group
  int64_t filters() const { return w.shape(0) / groups; }  // of a group
  int64_t taps() const { return w.shape(1) * w.shape(2); }
};

struct Im2colProblem {
  TensorView out, x;  // x: [batch, rows, columns, channels]
  op::Window window;
  ImageLayout layout;
};

// Host variants.
void cpu(const Problem& q);
void reference(const Problem& q);
std::string_view onednn_refusal(const Problem& q);
void onednn(const Problem& q);
void im2col_cpu(const Im2colProblem& q);
void im2col_reference(const Im2colProblem& q);

}  // namespace tensorcraft::kernel::conv2d
