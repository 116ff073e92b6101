// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"

#include <optional>

namespace tensorcraft::kernel::causal_conv1d {

struct Problem {  // a checked call
  TensorView out, x, w;
  std::optional<TensorView> bias, state, new_state;
  bool silu;

  int64_t tokens() const { return x.shape(1); }
  int64_t channels() const { return x.shape(2); }
  int64_t width() const { return w.shape(1); }
};

// Host variants.
void cpu(const Problem& q);
void reference(const Problem& q);

}  // namespace tensorcraft::kernel::causal_conv1d
