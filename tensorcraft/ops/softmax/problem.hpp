// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/ops/softmax/params.h"

#include <optional>

namespace tensorcraft::kernel::softmax {

// A call that is checked. The mask has the shape of x; out has its rank, of logsumexp with one
// element along the axis.
struct Problem {
  Form form;
  TensorView out, x;
  int axis;
  float scale = 1;
  std::optional<TensorView> mask = {};

  int64_t cols() const { return x.shape(axis); }
  int64_t rows() const {
    if (form == Form::logsumexp) return out.size();
    return cols() ? x.size() / cols() : 0;
  }
};

// Host variants.
void cpu(const Problem& q);
void reference(const Problem& q);

}  // namespace tensorcraft::kernel::softmax
