// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/op/value.hpp"

#include <optional>

namespace tensorcraft::kernel::batch_norm {

using OptionalView = std::optional<TensorView>;

// Elements of a plane: what one channel of one sample has.
inline int64_t plane_size(const TensorView& x) {
  int64_t size = 1;
  for (int i = 2; i < x.rank(); ++i) size *= x.shape(i);
  return size;
}

// A checked call.
struct Problem {
  TensorView out, x;
  OptionalView running_mean, running_var, weight, bias;
  OptionalView mean, rstd, running_mean_out, running_var_out;
  float momentum, eps;
  Activation activation;
  bool training;
};

// A checked call of the backward direction.
struct BackwardProblem {
  TensorView grad_input, grad, x, mean, rstd;
  OptionalView weight, grad_weight, grad_bias;
};

// Host variants.
void cpu(const Problem& q);
void reference(const Problem& q);
void backward_cpu(const BackwardProblem& q);
void backward_reference(const BackwardProblem& q);

}  // namespace tensorcraft::kernel::batch_norm
