// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"

#include <string_view>

namespace tensorcraft::kernel::gather {

// Calls of both operators become this: x and indices have the shape of out, with strides of 0 along
// the axes on which they do not depend, and an index adds x_step elements to the place of x.
struct Problem {
  std::string_view op;
  TensorView out, x, indices;
  TensorView given;  // the indices as they were given
  int64_t axis_size, x_step;
};

// Host variants. Fail with kind index before they write if an index is outside the axis.
void cpu(const Problem& q);
void reference(const Problem& q);

}  // namespace tensorcraft::kernel::gather
