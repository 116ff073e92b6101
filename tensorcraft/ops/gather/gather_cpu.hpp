// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"

#include <string_view>

namespace tensorcraft::kernel::gather {

// What both operators become: x and indices have the shape of out, with strides of 0 where they do
// not depend on an axis, and an index adds x_step elements to where x lies.
struct Problem {
  std::string_view op;
  TensorView out, x, indices;
  TensorView given;  // the indices as they were given
  int64_t axis_size, x_step;
};

// Host rows. Fail with kind index before they write where an index is outside the axis.
void cpu(const Problem& problem);
void reference(const Problem& problem);

}  // namespace tensorcraft::kernel::gather
